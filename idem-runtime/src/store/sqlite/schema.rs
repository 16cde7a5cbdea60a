//! The tables: bringing them up to date, and seeing whether they are.

use sqlx::{Connection, SqliteConnection};

use super::{
    connect,
    error::{self, failed, setup},
    sql,
};
use crate::store::StoreError;

/// Migration n + 1 at index n. One that has been released is never edited.
const MIGRATIONS: [&str; 1] = [include_str!("../../../migrations/sqlite/0001_records.sql")];

/// Runs what has not run yet. Call it in a transaction that holds the write lock: processes that start together then
/// come one after the other, and all but the first find nothing to do.
pub(super) async fn migrate(transaction: &mut SqliteConnection) -> Result<(), StoreError> {
    let done = version(transaction).await?;
    if done > MIGRATIONS.len() {
        return Err(setup(newer(done)));
    }
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(done) {
        sqlx::raw_sql(*migration).execute(&mut *transaction).await.map_err(failed)?;
        let mark = i64::try_from(index + 1).unwrap_or(i64::MAX);
        sqlx::query(sql::MARK).bind(mark).execute(&mut *transaction).await.map_err(failed)?;
    }
    Ok(())
}

/// Everything that is wrong, at once.
pub(super) async fn check(connection: &mut SqliteConnection) -> Result<Vec<String>, StoreError> {
    let mut faults = connect::weaknesses(connection).await?;
    let version = version(connection).await?;
    if version < MIGRATIONS.len() {
        faults.push(String::from("the tables are missing or out of date; call `store.migrate().await?` first"));
    } else if version > MIGRATIONS.len() {
        faults.push(newer(version));
    }
    match writes(connection).await {
        Ok(()) => {}
        Err(error) if error::primary_code(&error) == Some(error::READONLY) => faults.push(format!(
            "the database cannot be written ({error}); give this process write access to the file and its folder, \
             and leave `query_only` off"
        )),
        Err(error) => return Err(failed(error)),
    }
    Ok(faults)
}

/// The number of migrations that ran.
async fn version(connection: &mut SqliteConnection) -> Result<usize, StoreError> {
    let migrated: bool = sqlx::query_scalar(sql::MIGRATED).fetch_one(&mut *connection).await.map_err(failed)?;
    if !migrated {
        return Ok(0);
    }
    let version: i64 = sqlx::query_scalar(sql::SCHEMA).fetch_one(connection).await.map_err(failed)?;
    usize::try_from(version).map_err(|_| error::corrupt("the schema version in `idem_meta` is negative"))
}

/// A transaction that writes nothing. SQLite refuses the write lock itself where it could not write: by `query_only`,
/// and by the rights to the file.
async fn writes(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    connection.begin_with(sql::BEGIN).await?.rollback().await
}

fn newer(version: usize) -> String {
    format!(
        "the tables have schema {version}, of a newer version of this library, which knows up to {}; update this program",
        MIGRATIONS.len()
    )
}
