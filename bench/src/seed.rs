//! Many finished records, made by the database out of one that a server has made: so they are what this version writes.

use std::time::Duration;

use sqlx::{AssertSqlSafe, PgConnection};

use crate::{
    Result,
    cell::setting,
    child::Process,
    load::{Client, Request, unique},
    place::Place,
    variant::Variant,
};

const NOT_POSTGRES: &str = "records are seeded on Postgres only";

/// A column that is a moment goes back by as much as its record is older. Each record is one millisecond older than the next,
/// and all are older by `age`.
const COLUMNS: &str = "
select string_agg(format('%I', a.attname), ', ' order by a.attnum),
       string_agg(case when a.attname = 'kid' then 's.kid'
                       when a.atttypid = 'timestamptz'::regtype
                         then format('case when t.%1$I = ''epoch'' then t.%1$I else t.%1$I - s.older end', a.attname)
                       else format('t.%I', a.attname) end, ', ' order by a.attnum)
  from pg_catalog.pg_attribute a
 where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''";

/// Tables of the library that have rows of records.
const TABLES: &str = "
select format('%I.%I', n.nspname, c.relname) from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where n.nspname = 'idem' and c.relkind in ('r', 'p') and not c.relispartition
   and exists (select from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attname = 'kid' and not a.attisdropped)";

/// Empties the tables and fills them with `count` records that are `age` old, under random ids, in the order of their age.
pub(crate) async fn records(place: &mut Place, variant: Variant, count: u64, age: Duration) -> Result<()> {
    place.clear().await?;
    let process = Process::start(&setting(place, variant)).await?;
    let mut client = Client::new(process.address());
    let reply = client.send(Request::new(Duration::ZERO).with_key(unique())).await?;
    if reply.status != 201 {
        return Err(format!("the first of the records was answered {}", reply.status).into());
    }
    process.stop().await?;
    place.wal().await?; // when its sessions have ended
    let Place::Postgres { look, .. } = place else { return Err(NOT_POSTGRES.into()) };
    let seeds = format!(
        "create temp table seeds as
         select gen_random_uuid() as kid, ({count} - n + {} ) * interval '1 millisecond' as older
           from generate_series(1, {count}) as n",
        age.as_millis(),
    );
    sqlx::raw_sql(AssertSqlSafe(seeds)).execute(&mut *look).await?;
    for table in sqlx::query_scalar::<_, String>(TABLES).fetch_all(&mut *look).await? {
        multiply(look, &table).await?;
    }
    sqlx::raw_sql("drop table seeds").execute(&mut *look).await?;
    sqlx::raw_sql("vacuum analyze").execute(&mut *look).await?;
    sqlx::raw_sql("checkpoint").execute(look).await?;
    Ok(())
}

async fn multiply(look: &mut PgConnection, table: &str) -> Result<()> {
    let (columns, values): (String, String) = sqlx::query_as(COLUMNS).bind(table).fetch_one(&mut *look).await?;
    let insert = format!("insert into {table} ({columns}) select {values} from {table} t cross join seeds s");
    sqlx::raw_sql(AssertSqlSafe(insert)).execute(look).await?;
    Ok(())
}

/// How many records are there that are so old.
pub(crate) async fn expired(place: &mut Place) -> Result<i64> {
    let Place::Postgres { look, .. } = place else { return Err(NOT_POSTGRES.into()) };
    let expired = "select count(*) from idem.idem_key where guard_until < now() - interval '1 hour'";
    Ok(sqlx::query_scalar(expired).fetch_one(look).await?)
}

/// What the library's tables have, with their indexes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored {
    pub(crate) records: f64,
    pub(crate) bytes: f64,
    pub(crate) updates: f64,
    /// Of those, such as touched no index.
    pub(crate) hot: f64,
}

/// When all sessions have ended that have written.
pub(crate) async fn stored(place: &mut Place) -> Result<Stored> {
    place.wal().await?;
    let Place::Postgres { look, .. } = place else { return Err(NOT_POSTGRES.into()) };
    let bytes = "select sum(pg_total_relation_size(c.oid))::float8 from pg_catalog.pg_class c
                  where c.relnamespace = 'idem'::regnamespace and c.relkind = 'r'";
    let bytes = sqlx::query_scalar(bytes).fetch_one(&mut *look).await?;
    let records = "select count(*)::float8 from idem.idem_key";
    let records = sqlx::query_scalar(records).fetch_one(&mut *look).await?;
    let updates = "select sum(n_tup_upd)::float8, sum(n_tup_hot_upd)::float8 from pg_stat_user_tables
                    where schemaname = 'idem' and relname <> 'idem_meta'";
    let (updates, hot) = sqlx::query_as(updates).fetch_one(look).await?;
    Ok(Stored { records, bytes, updates, hot })
}
