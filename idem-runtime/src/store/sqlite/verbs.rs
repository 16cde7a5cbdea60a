//! The verbs on one connection. Those that write are called in a transaction that holds the write lock.

use std::{collections::HashSet, time::Duration};

use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    error::failed,
    record::{self, Seen},
    repeated, sql, step,
};
use crate::{
    key::RecordId,
    state::Reason,
    store::{
        Claim, Claimed, Doubts, Fence, Finish, Finished, Link, Renewal, Renewed, Resolution, Resolve, StoreError,
        StoredResponse,
        row::{Ending, Millis, Row},
    },
};

/// What is there of these records. Under the write lock it stays so.
pub(super) async fn look(
    connection: &mut SqliteConnection,
    records: impl Iterator<Item = RecordId> + Send,
) -> Result<Seen, StoreError> {
    let records: Vec<RecordId> = records.collect();
    let (first, others) = records.split_at(records.len().min(repeated::MOST));
    let mut seen = look_at(connection, first).await?;
    for more in others.chunks(repeated::MOST) {
        seen.add(look_at(connection, more).await?);
    }
    Ok(seen)
}

async fn look_at(connection: &mut SqliteConnection, records: &[RecordId]) -> Result<Seen, StoreError> {
    let (mut look, length) = sql::LOOK.of(records.len());
    for place in 0..length {
        look = look.bind(records.get(place).map(|record| record.as_bytes().as_slice()));
    }
    Seen::read(&look.fetch_all(connection).await.map_err(failed)?)
}

/// The instant of the transaction.
pub(super) async fn now(transaction: &mut SqliteConnection) -> Result<Millis, StoreError> {
    sqlx::query_scalar(sql::NOW).fetch_one(transaction).await.map(Millis).map_err(failed)
}

/// Claims what may be claimed, and looks at the rest. With `must_finish`, the transaction cannot be committed before the
/// outcome.
pub(super) async fn claim(
    transaction: &mut SqliteConnection,
    claims: &[Claim],
    must_finish: bool,
) -> Result<Vec<Claimed>, StoreError> {
    let mut seen = look(transaction, claims.iter().map(|claim| claim.record)).await?;
    let mut fence = seen.fence;
    let (mut claimed, mut taken) = (Vec::with_capacity(claims.len()), Vec::new());
    for claim in claims {
        claimed.push(match seen.look(&claim.peek(), Some(claim.attempt)) {
            Some(found) => found,
            None => {
                fence = Fence(fence.0 + 1);
                let row = Row::taken(seen.row(claim.record), claim, fence, seen.now);
                seen.put(claim.record, &row);
                let owned = row.owned();
                taken.push((claim, row));
                Claimed::Owner(owned)
            }
        });
    }
    for taken in taken.chunks(repeated::MOST) {
        take(transaction, taken, fence, must_finish).await?;
    }
    Ok(claimed)
}

async fn take(
    transaction: &mut SqliteConnection,
    taken: &[(&Claim, Row)],
    last: Fence,
    must_finish: bool,
) -> Result<(), StoreError> {
    let (mut take, length) = sql::CLAIM.of(taken.len());
    take = take.bind(last.0);
    for (claim, row) in taken {
        let kid = claim.record.as_bytes().as_slice();
        take = take
            .bind(kid)
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
            .bind(must_finish.then_some(kid));
    }
    take = repeated::nulls(take, 17 * (length - taken.len()));
    take.execute(&mut *transaction).await.map_err(failed)?;
    for (claim, row) in taken {
        let Some(input) = &claim.input else { continue };
        let kid = claim.record.as_bytes().as_slice();
        let keep = sqlx::query(sql::INPUT).bind(kid).bind(row.epoch.0).bind(&**input);
        keep.execute(&mut *transaction).await.map_err(failed)?;
    }
    Ok(())
}

pub(super) async fn next_fence(transaction: &mut SqliteConnection) -> Result<Fence, StoreError> {
    sqlx::query_scalar(sql::FENCE).fetch_one(transaction).await.map(Fence).map_err(failed)
}

/// Ends runs. A lost one writes nothing, so its neighbours in the transaction are not touched by it.
pub(super) async fn finish(
    transaction: &mut SqliteConnection,
    finishes: &[Finish],
) -> Result<Vec<Finished>, StoreError> {
    let mut seen = look(transaction, finishes.iter().map(|finish| finish.record)).await?;
    let (mut finished, mut moved) = (Vec::with_capacity(finishes.len()), Vec::with_capacity(finishes.len()));
    for finish in finishes {
        let Some(before) = seen.row(finish.record) else {
            finished.push(Finished::Lost);
            continue;
        };
        finished.push(match before.finish(finish, seen.now) {
            Ending::Lost => Finished::Lost,
            Ending::Repeated => Finished::Stored { ttl_left: before.ttl_left(seen.now) },
            Ending::Moved(row) => {
                let ttl_left = row.ttl_left(seen.now);
                seen.put(finish.record, &row);
                moved.push((finish, row));
                Finished::Stored { ttl_left }
            }
        });
    }
    for moved in moved.chunks(repeated::MOST) {
        end(transaction, moved).await?;
    }
    Ok(finished)
}

async fn end(transaction: &mut SqliteConnection, moved: &[(&Finish, Row)]) -> Result<(), StoreError> {
    let (mut end, length) = sql::FINISH.of(moved.len());
    for (finish, row) in moved {
        end = end
            .bind(finish.record.as_bytes().as_slice())
            .bind(finish.attempt.as_bytes().as_slice())
            .bind(row.state.code())
            .bind(row.reason.map_or(0, Reason::code))
            .bind(row.lease_until.0)
            .bind(row.expires_at.0)
            .bind(row.guard_until.0);
    }
    end = repeated::nulls(end, 7 * (length - moved.len()));
    let answers = moved.iter().filter_map(|(finish, _)| Some((finish.record, finish.outcome.response()?)));
    let mut left = length;
    for (record, response) in answers {
        end = end
            .bind(record.as_bytes().as_slice())
            .bind(response.status)
            .bind(&*response.headers)
            .bind(response.body.as_deref());
        left -= 1;
    }
    end = repeated::nulls(end, 4 * left);
    end.execute(transaction).await.map(drop).map_err(failed)
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

/// Prolongs leases.
pub(super) async fn renew(
    transaction: &mut SqliteConnection,
    renewals: &[Renewal],
    lease: Duration,
) -> Result<Vec<Renewed>, StoreError> {
    let until = now(transaction).await?.plus(lease);
    let mut held = HashSet::with_capacity(renewals.len());
    for renewals in renewals.chunks(repeated::MOST) {
        let (mut renew, length) = sql::RENEW.of(renewals.len());
        for renewal in renewals {
            renew = renew.bind(renewal.record.as_bytes().as_slice()).bind(renewal.attempt.as_bytes().as_slice());
        }
        renew = repeated::nulls(renew, 2 * (length - renewals.len())).bind(until.0);
        for row in renew.fetch_all(&mut *transaction).await.map_err(failed)? {
            held.insert((record::id(&row)?, record::attempt(&row)?));
        }
    }
    let is_held = |renewal: &Renewal| held.contains(&(renewal.record, renewal.attempt));
    Ok(renewals.iter().map(|renewal| if is_held(renewal) { Renewed::Held } else { Renewed::Lost }).collect())
}

/// Records links.
pub(super) async fn link(transaction: &mut SqliteConnection, links: &[Link]) -> Result<(), StoreError> {
    let now = now(transaction).await?;
    for link in links {
        sqlx::query(sql::LINK)
            .bind(&link.provider)
            .bind(&link.id)
            .bind(link.record.as_bytes().as_slice())
            .bind(link.epoch.0)
            .bind(link.attempt.as_bytes().as_slice())
            .bind(now.0)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
    }
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
pub(super) async fn resolve(transaction: &mut SqliteConnection, resolve: &Resolve) -> Result<bool, StoreError> {
    let now = now(transaction).await?;
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
        Ok(Doubts {
            op: row.try_get("op").map_err(failed)?,
            count: row.try_get::<u32, _>("count").map_err(failed)?.into(),
            oldest: Millis(now).since(Millis(since)),
            record: record::id(row)?,
        })
    };
    rows.iter().map(doubts).collect()
}
