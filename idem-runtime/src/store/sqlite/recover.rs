//! Trying to settle doubts.

use sqlx::SqliteConnection;

use super::{
    error::{corrupt, failed},
    list, record,
    sql::now,
    verbs,
};
use crate::{
    key::RecordId,
    state::Reason,
    store::{PutOff, Recover, Recovering, StoreError, row::Millis, row::Row},
};

/// What may be due of one operation, by the index of open records; `recovering` decides.
const DUE: &str = concat!(
    "select k.recover_at, k.kid from idem_key k indexed by idem_key_open
      where k.state in (1, 5, 6) and k.op = ?1 and k.tries < ?2 and k.recover_at <= ",
    now!(),
    " and (k.state = 5 or max(k.rerun_until, case k.state when 1 then k.lease_until + ?3 else 0 end) <= ",
    now!(),
    ") order by k.recover_at, k.kid limit ?4"
);

/// After ROW in the same transaction said what it is, which the write lock keeps true.
const TRY: &str = "
    update idem_key set state = ?2, reason = ?3, fence = ?4, attempt = ?5, tries = ?6, recover_at = ?7 where kid = ?1";

const PUT_OFF: &str = "update idem_key set recover_at = ?3 where kid = ?1 and fence = ?2";

/// What may be due: for a look without the write lock, so that a look that finds nothing keeps nobody waiting, and once
/// more under it.
pub(super) async fn due(connection: &mut SqliteConnection, recover: &Recover) -> Result<Vec<RecordId>, StoreError> {
    let mut due: Vec<(i64, Vec<u8>)> = Vec::new();
    for op in &recover.ops {
        let of_op = sqlx::query_as(DUE)
            .bind(op)
            .bind(recover.tries)
            .bind(Millis(0).plus(recover.grace).0)
            .bind(recover.limit)
            .fetch_all(&mut *connection);
        due.extend(of_op.await.map_err(failed)?);
    }
    due.sort_unstable();
    due.truncate(usize::try_from(recover.limit).unwrap_or(usize::MAX));
    let id = |(_, kid): (i64, Vec<u8>)| {
        <[u8; 16]>::try_from(kid).map(RecordId::from).map_err(|_| corrupt("`kid` has not 16 bytes"))
    };
    due.into_iter().map(id).collect()
}

pub(super) async fn recover(
    transaction: &mut SqliteConnection,
    recover: &Recover,
) -> Result<Vec<Recovering>, StoreError> {
    let now = verbs::now(transaction).await?;
    let mut taken = Vec::new();
    for id in due(transaction, recover).await? {
        let Some(found) = verbs::row(transaction, id).await? else { continue };
        let Some(row) = found.row.recovering(recover, now) else { continue };
        let row = Row { fence: verbs::next_fence(transaction).await?, ..row };
        sqlx::query(TRY)
            .bind(id.as_bytes().as_slice())
            .bind(row.state.code())
            .bind(row.reason.map_or(0, Reason::code))
            .bind(row.fence.0)
            .bind(row.attempt.as_bytes().as_slice())
            .bind(row.tries)
            .bind(row.recover_at.0)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        let tries = row.tries;
        let record = list::shown(transaction, id, record::Stored { row, now, ..found }).await?;
        taken.push(Recovering { record, tries });
    }
    Ok(taken)
}

pub(super) async fn put_off(transaction: &mut SqliteConnection, put_off: &PutOff) -> Result<bool, StoreError> {
    let now = verbs::now(transaction).await?;
    let found = verbs::row(transaction, put_off.record).await?;
    let Some(row) = found.and_then(|found| found.row.put_off(put_off, now)) else { return Ok(false) };
    let kid = put_off.record.as_bytes().as_slice();
    let done = sqlx::query(PUT_OFF).bind(kid).bind(row.fence.0).bind(row.recover_at.0).execute(transaction).await;
    Ok(done.map_err(failed)?.rows_affected() == 1)
}
