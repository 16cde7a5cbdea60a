//! Removing what is over: statements and verbs, on a connection of their own, for which no claim waits.

use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::{
    argument::Arg,
    error::corrupt,
    record::{self, column},
    sql::Statement,
    verbs::{Verbs, contradiction, millis, uuid},
};
use crate::{
    key::RecordId,
    store::{Due, Mark, Purge, Purged, StoreError, Strip, Stripped, row::Millis},
};

/// From so much that is due on it also says of how many, and where it stops counting. Up to there it counts all records
/// instead of taking the server's estimate.
const COUNTED: (i64, i64) = (1_000, 50_000);

/// The statements of this module, of one schema.
#[derive(Debug)]
pub(super) struct Statements {
    due: Statement,
    pub(super) purge: Statement,
    pub(super) strip: Statement,
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        let statement = |template| Statement::new(schema, template);
        Self { due: statement(DUE), purge: statement(PURGE), strip: statement(STRIP) }
    }
}

/// Of how many is not counted where little is due. The server's estimate is -1 where it has never looked; of a table that was
/// split it looks at the parts only.
const DUE: &str = "
with due as materialized (
  select count(*) as records from (
    select from {schema}.idem_key k
     where k.guard_until < {now} - interval '1 minute' and k.state in (2, 3, 4) limit $2::int8) d
)
select floor(extract(epoch from {now} - m.purged_at) * 1000)::int8 as since, due.records as due,
       case when due.records <= $1::int8 then due.records
            else greatest((select sum(greatest(c.reltuples, 0))::int8 from pg_catalog.pg_class c
                            where c.relkind = 'r' and (c.oid = '{schema}.idem_key'::regclass or c.oid in (
                              select i.inhrelid from pg_catalog.pg_inherits i where i.inhparent = '{schema}.idem_key'::regclass))),
                          (select count(*) from (select from {schema}.idem_key limit $2::int8) k)) end as of
  from {schema}.idem_meta m, due where m.id = 1";

/// Removes what is over. `over` locks the latest version of each record and decides again on it; what somebody else holds is left to the
/// next time, and so is the note of the time, which many processes write: nothing here waits for a record. What is locked stays where it
/// is, so it is deleted by its place, which halves the work; a table that was split has that place in each part. `$2` is how long ago the
/// last purge may have been, in milliseconds, by the one instant of this statement.
const PURGE: &str = "
with trusted as materialized (
  select {now} - m.purged_at <= $2::int8 * interval '1 millisecond' as yes from {schema}.idem_meta m where m.id = 1
),
over as materialized (
  select k.ctid as at, k.kid from {schema}.idem_key k
   where (select t.yes from trusted t) and k.guard_until < {now} - interval '1 minute' and k.state in (2, 3, 4)
   order by k.guard_until limit $1::int8 for update of k skip locked
),
gone as (
  delete from {schema}.idem_key k using over where k.ctid = over.at and k.kid = over.kid returning k.kid
),
links as (
  delete from {schema}.idem_link l using gone where l.kid = gone.kid
),
steps as (
  delete from {schema}.idem_step s using gone where s.kid = gone.kid
),
inputs as (
  delete from {schema}.idem_input i using gone where i.kid = gone.kid
),
orders as (
  delete from {schema}.idem_order o
   where o.id in (select d.id from {schema}.idem_order d
                   where (select t.yes from trusted t) and d.guard_until < {now} - interval '1 minute'
                   order by d.guard_until limit $1::int8 for update of d skip locked)
  returning o.id
),
noted as (
  update {schema}.idem_meta m set purged_at = {now}
   where (select t.yes from trusted t)
     and m.id = (select n.id from {schema}.idem_meta n where n.id = 1 for update skip locked)
)
select (select count(*) from gone) as records, (select count(*) from orders) as orders, not t.yes as refused from trusted t";

/// Drops answers that are not due any more. `$1` is `late`, `$2` is `back`, `$3` and `$4` are the mark, in microseconds.
const STRIP: &str = "
with looked as materialized (
  select k.kid, k.guard_until, k.state, k.expires_at
    from {schema}.idem_key k
   where k.guard_until >= greatest({now} + ($1::int8 - $2::int8) * interval '1 millisecond',
                                   timestamptz 'epoch' + $3::int8 * interval '1 microsecond')
     and k.guard_until <= {now} + $1::int8 * interval '1 millisecond'
     and (k.guard_until, k.kid) > (timestamptz 'epoch' + $3::int8 * interval '1 microsecond', $4::uuid)
   order by k.guard_until, k.kid limit $5::int8
),
bare as materialized (
  select k.kid from looked join {schema}.idem_key k on k.kid = looked.kid
   where looked.state = 2 and looked.expires_at <= {now} and k.state = 2 and k.expires_at <= {now}
     and k.headers is not null
     for update of k skip locked
),
dropped as (
  update {schema}.idem_key k set status = null, headers = null, body = null from bare where k.kid = bare.kid returning k.kid
)
select (select count(*) from looked) as looked, (select count(*) from dropped) as answers, last.kid,
       (extract(epoch from last.guard_until) * 1000000)::int8 as guard_until
  from (select) one
  left join (select looked.kid, looked.guard_until from looked order by looked.guard_until desc, looked.kid desc limit 1)
            last on true";

impl Verbs {
    pub(super) async fn due(&self) -> Result<Due, StoreError> {
        let args = [Arg::Long(COUNTED.0), Arg::Long(COUNTED.1)];
        let rows = self.purging.rows(&self.statements.purging.due, &args).await?;
        let row = rows.first().ok_or_else(|| corrupt("`idem_meta` is empty"))?;
        let (since, due, of) = (column(row, "since")?, column::<i64>(row, "due")?, column(row, "of")?);
        let of = i64::max(due, of);
        let records = if due < COUNTED.1 { due } else { of };
        Ok(Due { since_purge: Millis(since).since(Millis(0)), records: records.unsigned_abs(), of: of.unsigned_abs() })
    }

    pub(super) async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        let args = [Arg::Long(purge.limit.into()), Arg::Long(millis(purge.within))];
        let rows = self.purging.rows(&self.statements.purging.purge, &args).await?;
        let row = rows.first().ok_or_else(contradiction)?;
        let (records, orders, refused) =
            (count(row, "records")?, count(row, "orders")?, column::<bool>(row, "refused")?);
        Ok(Purged { records, more: !refused && records.max(orders) >= purge.limit, refused })
    }

    pub(super) async fn strip(&self, strip: &Strip) -> Result<Stripped, StoreError> {
        let (at, kid) = strip.after.map_or((0, Uuid::nil()), |mark| (mark.guard_until, uuid(mark.record)));
        let args = [
            Arg::Long(millis(strip.late)),
            Arg::Long(millis(strip.back)),
            Arg::Long(at),
            Arg::Uuid(kid),
            Arg::Long(strip.limit.into()),
        ];
        let rows = self.purging.rows(&self.statements.purging.strip, &args).await?;
        let row = rows.first().ok_or_else(contradiction)?;
        let next = match count(row, "looked")? {
            looked if looked == 0 || looked < strip.limit => None,
            _ => {
                let record = RecordId::from(record::kid(row)?.into_bytes());
                Some(Mark { guard_until: column(row, "guard_until")?, record })
            }
        };
        Ok(Stripped { answers: count(row, "answers")?, next })
    }
}

fn count(row: &PgRow, name: &'static str) -> Result<u32, StoreError> {
    u32::try_from(column::<i64>(row, name)?).map_err(|_| contradiction())
}

#[cfg(test)]
impl Statements {
    /// What a test looks at the plans of.
    pub(super) fn tried(&self) -> [(&Statement, Vec<Arg<'static>>); 3] {
        let strip = vec![Arg::Long(1_000), Arg::Long(1_000), Arg::Long(0), Arg::Uuid(Uuid::nil()), Arg::Long(100)];
        let due = vec![Arg::Long(COUNTED.0), Arg::Long(COUNTED.1)];
        [(&self.due, due), (&self.purge, vec![Arg::Long(100), Arg::Long(60_000)]), (&self.strip, strip)]
    }
}
