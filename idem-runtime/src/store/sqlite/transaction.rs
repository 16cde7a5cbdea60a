//! A run in one transaction. It holds the one write lock of the file, and of this process the one connection that writes.

use std::time::Duration;

use sqlx::{SqlSafeStr, Sqlite, pool::PoolConnection};

use super::{
    error::{self, failed, setup},
    sql, verbs,
};
use crate::{
    key::RecordId,
    store::{
        Begin, Begun, Claimed, Commit, Committed, Finished, OpenTransaction, Owned, StoreError,
        open::{BACK_TO_SAVEPOINT, LEFT_OPEN, Open, SAVEPOINT},
        row::Millis,
    },
};

pub(super) async fn begin(writer: PoolConnection<Sqlite>, begin: Begin) -> Result<Begun, StoreError> {
    let mut open = Open::<Sqlite>::begin(writer, sql::BEGIN.into_sql_str()).await.map_err(failed)?;
    let owned = match &begin.claim {
        None => Owned::unclaimed(),
        Some(claim) => {
            let now = now(&mut open).await?;
            match verbs::claim(&mut open, std::slice::from_ref(claim), now).await?.pop() {
                Some(Claimed::Owner(owned)) => {
                    must_finish(&mut open, claim.record).await?;
                    owned
                }
                Some(Claimed::Found(found)) => {
                    let _ = open.rollback().await; // nothing was written
                    return Ok(Begun::Found(found));
                }
                None => return Err(error::corrupt("the claim was not decided")),
            }
        }
    };
    if begin.savepoint {
        sqlx::query(SAVEPOINT).execute(&mut *open).await.map_err(failed)?;
    }
    Ok(Begun::Open(owned, Box::new(open)))
}

async fn now(open: &mut Open<Sqlite>) -> Result<Millis, StoreError> {
    sqlx::query_scalar(sql::NOW).fetch_one(&mut **open).await.map(Millis).map_err(failed)
}

/// From here on the database refuses a COMMIT before the outcome.
async fn must_finish(open: &mut Open<Sqlite>, record: RecordId) -> Result<(), StoreError> {
    sqlx::query(sql::MUST_FINISH)
        .bind(record.as_bytes().as_slice())
        .execute(&mut **open)
        .await
        .map(drop)
        .map_err(failed)
}

pub(super) async fn commit(transaction: OpenTransaction, commit: Commit) -> Result<Committed, StoreError> {
    let Ok(open) = transaction.downcast::<Open<Sqlite>>() else {
        return Err(setup("the transaction is another store's"));
    };
    let mut open = *open;
    if commit.undoes_all() {
        return Ok(match open.rollback().await {
            Err(error) if error::primary_code(&error) == Some(error::ERROR) => Committed::Lost, // there is none to roll back
            _ => Committed::Stored { ttl_left: Duration::ZERO },
        });
    }
    let ttl_left = match settle(&mut open, &commit).await {
        Ok(Finished::Stored { ttl_left }) => ttl_left,
        Ok(Finished::Lost) => return Ok(Committed::Lost),
        Err(error) => return Ok(Committed::Undone(error)),
    };
    match open.commit().await {
        Ok(true) => Ok(Committed::Stored { ttl_left }),
        Ok(false) => Ok(Committed::Undone(setup(LEFT_OPEN))),
        Err(error) if is_refused(&error) => Ok(Committed::Undone(failed(error))),
        Err(error) => Err(failed(error)),
    }
}

/// All that goes before the COMMIT.
async fn settle(open: &mut Open<Sqlite>, commit: &Commit) -> Result<Finished, StoreError> {
    let Some(finish) = &commit.finish else {
        // A transaction of the body's own inside of this one, if it was dropped, ends before the next statement.
        sqlx::query("select 1").execute(&mut **open).await.map_err(failed)?;
        return Ok(Finished::Stored { ttl_left: Duration::ZERO });
    };
    if !commit.keeps_rows {
        match sqlx::query(BACK_TO_SAVEPOINT).execute(&mut **open).await {
            // Only the end of the transaction takes a savepoint away.
            Err(error) if error::primary_code(&error) == Some(error::ERROR) => return Ok(Finished::Lost),
            done => done.map_err(failed)?,
        };
    }
    let now = now(open).await?;
    let finished = verbs::finish(open, finish, now).await?;
    if finished != Finished::Lost {
        for link in &commit.links {
            verbs::link(open, link, now).await?;
        }
    }
    Ok(finished)
}

/// SQLite leaves a transaction open whose COMMIT it refuses: for a constraint that was deferred, or a lock. What else goes
/// wrong may have gone wrong after the commit.
fn is_refused(error: &sqlx::Error) -> bool {
    matches!(error::primary_code(error), Some(error::BUSY | error::CONSTRAINT))
}
