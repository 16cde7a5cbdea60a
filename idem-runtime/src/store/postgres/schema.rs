//! The tables: bringing them up to date, and seeing whether they are.

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, Row as _,
    postgres::{PgConnectOptions, PgRow},
};

use super::{
    error::{corrupt, failed, setup},
    record::column,
    verbs::Verbs,
};
use crate::store::StoreError;

/// Migration n + 1 at index n. One that has been released is never edited.
const MIGRATIONS: [&str; 1] = [include_str!("../../../migrations/postgres/0001_records.sql")];

/// The oldest server whose `extract` is exact.
const OLDEST: i32 = 14;

/// Whether `name` may be written into a statement as it is.
pub(super) fn is_identifier(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    first && name.len() <= 63 && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// Runs what has not run yet, on a connection of its own: whoever drops this closes it, and the server undoes what was
/// begun. Where there is nothing to do it only reads, so a program without the rights to create tables may call it.
pub(super) async fn migrate(options: &PgConnectOptions, schema: &str) -> Result<(), StoreError> {
    let mut connection = options.clone().extra_float_digits(None).connect().await.map_err(failed)?;
    if version(&mut connection, schema).await? < MIGRATIONS.len() {
        run(&mut connection, schema, "begin isolation level read committed, read write").await?;
        // Processes that start together come one after the other: `create schema if not exists` alone would let two
        // of them through, and one would fail. The transaction's end gives the lock back.
        run(&mut connection, schema, "select pg_advisory_xact_lock(hashtext('idem {schema}'))").await?;
        let done = version(&mut connection, schema).await?;
        for (index, migration) in MIGRATIONS.iter().enumerate().skip(done) {
            if index == 0 {
                create_schema(&mut connection, schema).await?;
            }
            run(&mut connection, schema, "set local search_path = \"{schema}\"").await?;
            run(&mut connection, schema, migration).await?;
            run(&mut connection, schema, &format!("update idem_meta set schema = {} where id = 1", index + 1)).await?;
        }
        run(&mut connection, schema, "commit").await?;
    }
    connection.close().await.map_err(failed)
}

/// `if not exists` would ask for the right to create even where the schema is there.
async fn create_schema(connection: &mut PgConnection, schema: &str) -> Result<(), StoreError> {
    if is_there(connection, format!("pg_catalog.pg_namespace where nspname = '{schema}'")).await? {
        return Ok(());
    }
    run(connection, schema, "create schema \"{schema}\"").await
}

/// Reads the catalog's tables and not `to_regclass`: that one may remember, from before the wait for the lock, that there
/// was nothing.
async fn is_there(connection: &mut PgConnection, what: String) -> Result<bool, StoreError> {
    let exists = AssertSqlSafe(format!("select exists (select from {what})"));
    sqlx::raw_sql(exists).fetch_one(connection).await.map_err(failed)?.try_get(0).map_err(failed)
}

async fn run(connection: &mut PgConnection, schema: &str, sql: &str) -> Result<(), StoreError> {
    let sql = AssertSqlSafe(sql.replace("{schema}", schema));
    sqlx::raw_sql(sql).execute(connection).await.map(drop).map_err(failed)
}

/// The number of migrations that ran; an error if some are of a newer version.
async fn version(connection: &mut PgConnection, schema: &str) -> Result<usize, StoreError> {
    let meta = format!("pg_catalog.pg_tables where schemaname = '{schema}' and tablename = 'idem_meta'");
    if !is_there(connection, meta).await? {
        return Ok(0);
    }
    let version = format!("select schema from \"{schema}\".idem_meta where id = 1");
    let version = sqlx::raw_sql(AssertSqlSafe(version)).fetch_one(connection).await.map_err(failed)?;
    let version = number(version.try_get(0).map_err(failed)?)?;
    if version > MIGRATIONS.len() { Err(setup(newer(version))) } else { Ok(version) }
}

/// Everything that is wrong, at once, as the store's own connections see it.
pub(super) async fn check(verbs: &Verbs) -> Result<Vec<String>, StoreError> {
    let rows = verbs.connections.rows(&verbs.statements.settings, &[]).await?;
    let row = rows.first().ok_or_else(|| corrupt("the server did not tell its settings"))?;
    let mut faults = Vec::new();
    let server = column::<i32>(row, "server")? / 10_000;
    if server < OLDEST {
        faults.push(format!("the server is PostgreSQL {server}; use {OLDEST} or newer"));
    }
    if !column::<bool>(row, "fsync")? {
        faults.push(String::from(
            "fsync is off, so a power cut can destroy the whole database; set `fsync = on` in postgresql.conf",
        ));
    }
    faults.extend(weaknesses(row)?);
    let version = if column(row, "migrated")? {
        let rows = verbs.connections.rows(&verbs.statements.schema, &[]).await?;
        number(column(rows.first().ok_or_else(|| corrupt("`idem_meta` is empty"))?, "schema")?)?
    } else {
        0
    };
    if version < MIGRATIONS.len() {
        faults.push(String::from("the tables are missing or out of date; call `store.migrate().await?` first"));
    } else if version > MIGRATIONS.len() {
        faults.push(newer(version));
    }
    Ok(faults)
}

/// What is wrong with a session.
pub(super) fn weaknesses(row: &PgRow) -> Result<Vec<String>, StoreError> {
    let mut faults = Vec::new();
    if column::<String>(row, "synchronous_commit")? == "off" {
        faults.push(String::from(
            "synchronous_commit is off, so a crash can undo an answer that was given; set it to `on` for this role, \
             database or connection",
        ));
    }
    if column(row, "standby")? {
        faults.push(String::from(
            "the server is a standby, which cannot be written; connect to the primary \
             (`target_session_attrs` is not known here: name its host)",
        ));
    } else if column(row, "read_only")? {
        faults.push(String::from(
            "transactions are read-only here; set `default_transaction_read_only = off` for this role, database or \
             connection",
        ));
    }
    if column(row, "unchecked")? {
        faults.push(String::from(
            "session_replication_role is `replica`, so no constraint is checked, and a body could commit its transaction \
             without its outcome; leave it at `origin`",
        ));
    }
    Ok(faults)
}

fn number(version: i32) -> Result<usize, StoreError> {
    usize::try_from(version).map_err(|_| corrupt("the schema version in `idem_meta` is negative"))
}

fn newer(version: usize) -> String {
    format!(
        "the tables have schema {version}, of a newer version of this library, which knows up to {}; update this program",
        MIGRATIONS.len()
    )
}
