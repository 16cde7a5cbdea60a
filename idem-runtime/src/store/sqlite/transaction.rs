//! A run in one transaction. It holds the one write lock of the file, and of this process the one connection that writes.

use std::time::Duration;

use sqlx::{SqlSafeStr, Sqlite, pool::PoolConnection};

use super::{
    error::{self, failed, setup},
    sql, step, verbs,
};
use crate::store::{
    Begin, Begun, Claimed, Commit, Committed, EndStep, Finished, OpenTransaction, Order, Owned, StartStep, Started,
    StepBegun, StepEnded, StoreError,
    open::{BACK_TO_SAVEPOINT, LEFT_OPEN, Open, SAVEPOINT},
};

pub(super) async fn begin(writer: PoolConnection<Sqlite>, begin: Begin) -> Result<Begun, StoreError> {
    let mut open = open(writer).await?;
    let Some(claim) = &begin.claim else {
        set_savepoint(&mut open, &begin).await?;
        return Ok(Begun::Open(Owned::unclaimed(), Box::new(open)));
    };
    let owned = match verbs::claim(&mut open, std::slice::from_ref(claim), true).await?.pop() {
        Some(Claimed::Owner(owned)) => owned,
        Some(Claimed::Found(found)) => {
            let _ = open.rollback().await; // nothing was written
            return Ok(Begun::Found(found));
        }
        None => return Err(error::corrupt("the claim was not decided")),
    };
    set_savepoint(&mut open, &begin).await?;
    // After the savepoint: what is noted goes with the rows, also where an answer is kept without them.
    match &begin.order {
        Some(order) if !note(&mut open, order).await? => Ok(Begun::Stale(owned, Box::new(open))),
        _ => Ok(Begun::Open(owned, Box::new(open))),
    }
}

async fn set_savepoint(open: &mut Open<Sqlite>, begin: &Begin) -> Result<(), StoreError> {
    if begin.savepoint {
        sqlx::query(SAVEPOINT).execute(&mut **open).await.map_err(failed)?;
    }
    Ok(())
}

/// Whether it is the highest of its order.
async fn note(open: &mut Open<Sqlite>, order: &Order) -> Result<bool, StoreError> {
    let now = verbs::now(open).await?;
    let note =
        sqlx::query(sql::ORDER).bind(order.id.as_bytes().as_slice()).bind(order.sequence).bind(now.plus(order.keep).0);
    Ok(note.execute(&mut **open).await.map_err(failed)?.rows_affected() > 0)
}

/// As `begin`, for a step of a run that holds its record already.
pub(super) async fn begin_step(writer: PoolConnection<Sqlite>, start: StartStep) -> Result<StepBegun, StoreError> {
    let mut open = open(writer).await?;
    match step::begin(&mut open, &start).await? {
        Started::Step(step) if step.result.is_none() => Ok(StepBegun::Open(Box::new(open))),
        found => {
            let _ = open.rollback().await; // nothing was written
            Ok(StepBegun::Found(found))
        }
    }
}

async fn open(writer: PoolConnection<Sqlite>) -> Result<Open<Sqlite>, StoreError> {
    Open::begin(writer, sql::BEGIN.into_sql_str()).await.map_err(failed)
}

/// What `open` gave.
fn opened(transaction: OpenTransaction) -> Result<Open<Sqlite>, StoreError> {
    let open = transaction.downcast::<Open<Sqlite>>();
    open.map(|open| *open).map_err(|_| setup("the transaction is another store's"))
}

pub(super) async fn commit(transaction: OpenTransaction, commit: Commit) -> Result<Committed, StoreError> {
    let mut open = opened(transaction)?;
    if commit.undoes_all() {
        return Ok(match open.rollback().await {
            Err(error) if error::primary_code(&error) == Some(error::ERROR) => Committed::Lost, // there is none to roll back
            _ => Committed::Stored { ttl_left: Duration::ZERO },
        });
    }
    let settled = settle(&mut open, &commit).await;
    conclude(open, settled).await
}

pub(super) async fn commit_step(transaction: OpenTransaction, end: EndStep) -> Result<Committed, StoreError> {
    let mut open = opened(transaction)?;
    let ended = step::commit(&mut open, &end).await.map(|ended| match ended {
        StepEnded::Stored => Finished::Stored { ttl_left: Duration::ZERO },
        StepEnded::Lost => Finished::Lost,
    });
    conclude(open, ended).await
}

/// COMMIT, if what goes before it was done.
async fn conclude(open: Open<Sqlite>, settled: Result<Finished, StoreError>) -> Result<Committed, StoreError> {
    let ttl_left = match settled {
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
    let finished = verbs::finish(open, std::slice::from_ref(finish)).await?.pop();
    let finished = finished.ok_or_else(|| error::corrupt("the outcome was not decided"))?;
    if finished != Finished::Lost && !commit.links.is_empty() {
        verbs::link(open, &commit.links).await?;
    }
    Ok(finished)
}

/// SQLite leaves a transaction open whose COMMIT it refuses: for a constraint that was deferred, or a lock. What else goes
/// wrong may have gone wrong after the commit.
fn is_refused(error: &sqlx::Error) -> bool {
    matches!(error::primary_code(error), Some(error::BUSY | error::CONSTRAINT))
}
