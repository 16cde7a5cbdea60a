//! The verbs on one connection. Those that write are called in a transaction that holds the write lock, at `now`.

use std::time::Duration;

use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    error::{corrupt, failed},
    record, sql, step,
};
use crate::{
    key::RecordId,
    state::Reason,
    store::{
        Attempt, Claim, Claimed, Doubts, Fence, Finish, Finished, Link, Peek, Renewal, Renewed, Resolution, Resolve,
        StoreError, StoredResponse,
        row::{Ending, Millis, Row},
    },
};

/// What a look at a record finds.
pub(super) enum Looked {
    /// A claim may take it; with the row that it has, if any.
    Free(Option<Row>),
    /// It is not free.
    Taken(Claimed),
}

/// Looks at a record. `now` is the transaction's instant; without one, the statement's own counts.
pub(super) async fn look(
    connection: &mut SqliteConnection,
    peek: &Peek,
    asker: Option<Attempt>,
    now: Option<Millis>,
) -> Result<Looked, StoreError> {
    let kid = peek.record.as_bytes().as_slice();
    let Some(found) = sqlx::query(sql::LOOK).bind(kid).fetch_optional(connection).await.map_err(failed)? else {
        return Ok(Looked::Free(None));
    };
    let (row, read) = record::looked(&found)?;
    let claimed = row.look(peek, asker, record::response(&found)?, now.unwrap_or(read));
    Ok(claimed.map_or(Looked::Free(Some(row)), Looked::Taken))
}

/// Claims what may be claimed, and looks at the rest.
pub(super) async fn claim(
    transaction: &mut SqliteConnection,
    claims: &[Claim],
    now: Millis,
) -> Result<Vec<Claimed>, StoreError> {
    let mut claimed = Vec::with_capacity(claims.len());
    for claim in claims {
        let looked = look(transaction, &claim.peek(), Some(claim.attempt), Some(now)).await?;
        claimed.push(match looked {
            Looked::Taken(found) => found,
            Looked::Free(before) => {
                let row = Row::taken(before.as_ref(), claim, next_fence(transaction).await?, now);
                take(transaction, claim, &row).await?;
                Claimed::Owner(row.owned())
            }
        });
    }
    Ok(claimed)
}

async fn take(transaction: &mut SqliteConnection, claim: &Claim, row: &Row) -> Result<(), StoreError> {
    sqlx::query(sql::CLAIM)
        .bind(claim.record.as_bytes().as_slice())
        .bind(&*claim.scope)
        .bind(claim.op)
        .bind(row.state.code())
        .bind(row.reason.map_or(0, Reason::code))
        .bind(row.fence.0)
        .bind(row.attempt.as_bytes().as_slice())
        .bind(row.attempts)
        .bind(row.epoch.0)
        .bind(row.fingerprint.algorithm())
        .bind(row.fingerprint.digest().as_slice())
        .bind(row.lease_until.0)
        .bind(row.created_at.0)
        .bind(row.expires_at.0)
        .bind(row.guard_until.0)
        .bind(row.rerun_until.0)
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
    if let Some(input) = &claim.input {
        let kid = claim.record.as_bytes().as_slice();
        let keep = sqlx::query(sql::INPUT).bind(kid).bind(row.epoch.0).bind(&**input);
        keep.execute(transaction).await.map_err(failed)?;
    }
    Ok(())
}

pub(super) async fn next_fence(transaction: &mut SqliteConnection) -> Result<Fence, StoreError> {
    sqlx::query_scalar(sql::FENCE).fetch_one(transaction).await.map(Fence).map_err(failed)
}

/// Ends one run. A lost one writes nothing, so its neighbours in the transaction are not touched by it.
pub(super) async fn finish(
    transaction: &mut SqliteConnection,
    finish: &Finish,
    now: Millis,
) -> Result<Finished, StoreError> {
    let Some(record::Stored { row, .. }) = row(transaction, finish.record).await? else { return Ok(Finished::Lost) };
    let row = match row.finish(finish, now) {
        Ending::Lost => return Ok(Finished::Lost),
        Ending::Repeated => return Ok(Finished::Stored { ttl_left: row.ttl_left(now) }),
        Ending::Moved(row) => row,
    };
    sqlx::query(sql::FINISH)
        .bind(finish.record.as_bytes().as_slice())
        .bind(finish.attempt.as_bytes().as_slice())
        .bind(row.state.code())
        .bind(row.reason.map_or(0, Reason::code))
        .bind(row.lease_until.0)
        .bind(row.expires_at.0)
        .bind(row.guard_until.0)
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
    if let Some(response) = finish.outcome.response() {
        answer(transaction, finish.record, response).await?;
    }
    Ok(Finished::Stored { ttl_left: row.ttl_left(now) })
}

async fn answer(
    transaction: &mut SqliteConnection,
    record: RecordId,
    response: &StoredResponse,
) -> Result<(), StoreError> {
    sqlx::query(sql::ANSWER)
        .bind(record.as_bytes().as_slice())
        .bind(response.status)
        .bind(&*response.headers)
        .bind(response.body.as_deref())
        .execute(transaction)
        .await
        .map_err(failed)?;
    Ok(())
}

/// Prolongs one lease.
pub(super) async fn renew(
    transaction: &mut SqliteConnection,
    renewal: &Renewal,
    lease: Duration,
    now: Millis,
) -> Result<Renewed, StoreError> {
    let renewed = sqlx::query(sql::RENEW)
        .bind(renewal.record.as_bytes().as_slice())
        .bind(renewal.attempt.as_bytes().as_slice())
        .bind(now.plus(lease).0)
        .execute(transaction)
        .await
        .map_err(failed)?;
    Ok(if renewed.rows_affected() == 1 { Renewed::Held } else { Renewed::Lost })
}

/// Records one link.
pub(super) async fn link(transaction: &mut SqliteConnection, link: &Link, now: Millis) -> Result<(), StoreError> {
    sqlx::query(sql::LINK)
        .bind(&link.provider)
        .bind(&link.id)
        .bind(link.record.as_bytes().as_slice())
        .bind(link.epoch.0)
        .bind(link.attempt.as_bytes().as_slice())
        .bind(now.0)
        .execute(transaction)
        .await
        .map_err(failed)?;
    Ok(())
}

/// The row of a record, without its answer.
pub(super) async fn row(
    connection: &mut SqliteConnection,
    record: RecordId,
) -> Result<Option<record::Stored>, StoreError> {
    let kid = record.as_bytes().as_slice();
    let row = sqlx::query(sql::ROW).bind(kid).fetch_optional(connection).await.map_err(failed)?;
    row.as_ref().map(record::found).transpose()
}

/// The links of one epoch of a record: (provider, id), oldest first.
pub(super) async fn links(
    connection: &mut SqliteConnection,
    record: RecordId,
    epoch: Fence,
) -> Result<Vec<(String, String)>, StoreError> {
    let rows = sqlx::query(sql::LINKS).bind(record.as_bytes().as_slice()).bind(epoch.0).fetch_all(connection).await;
    let rows = rows.map_err(failed)?;
    rows.iter().map(|row| Ok((row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?))).collect()
}

/// Settles a record.
pub(super) async fn resolve(
    transaction: &mut SqliteConnection,
    resolve: &Resolve,
    now: Millis,
) -> Result<bool, StoreError> {
    let Some(record::Stored { row: before, .. }) = row(transaction, resolve.record).await? else { return Ok(false) };
    let steps = step::steps(transaction, resolve.record).await?;
    let Some(row) = before.resolved(resolve, &steps, now) else { return Ok(false) };
    let row = Row { fence: next_fence(transaction).await?, ..row };
    let kid = resolve.record.as_bytes().as_slice();
    sqlx::query(sql::RESOLVE)
        .bind(kid)
        .bind(resolve.seen.0)
        .bind(row.state.code())
        .bind(row.reason.map_or(0, Reason::code))
        .bind(row.fence.0)
        .bind(row.attempt.as_bytes().as_slice())
        .bind(row.expires_at.0)
        .bind(row.guard_until.0)
        .bind(row.recover_at.0)
        .bind(row.rerun_until.0)
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
    match &resolve.to {
        Resolution::Complete(response) => answer(transaction, resolve.record, response).await?,
        Resolution::Void => {
            sqlx::query(sql::VOID).bind(kid).execute(&mut *transaction).await.map_err(failed)?;
        }
        Resolution::Release | Resolution::Resume => {}
        Resolution::ResumeWith(decisions) => step::decide(transaction, resolve.record, row.epoch, decisions).await?,
    }
    sqlx::query(sql::AUDIT)
        .bind(now.0)
        .bind(kid)
        .bind(resolve.seen.0)
        .bind(before.settled_from().code())
        .bind(row.state.code())
        .bind(&resolve.by.who)
        .bind(&resolve.by.why)
        .execute(transaction)
        .await
        .map_err(failed)?;
    Ok(true)
}

/// What is in doubt, by operation.
pub(super) async fn doubts(connection: &mut SqliteConnection) -> Result<Vec<Doubts>, StoreError> {
    let rows = sqlx::query(sql::DOUBTS).fetch_all(connection).await.map_err(failed)?;
    let doubts = |row: &SqliteRow| {
        let (since, now) = (row.try_get("since").map_err(failed)?, row.try_get("now").map_err(failed)?);
        let kid: &[u8] = row.try_get("kid").map_err(failed)?;
        Ok(Doubts {
            op: row.try_get("op").map_err(failed)?,
            count: row.try_get::<u32, _>("count").map_err(failed)?.into(),
            oldest: Millis(now).since(Millis(since)),
            record: <[u8; 16]>::try_from(kid).map_err(|_| corrupt("`kid` has not 16 bytes"))?.into(),
        })
    };
    rows.iter().map(doubts).collect()
}
