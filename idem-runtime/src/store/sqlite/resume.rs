//! Going on with what was interrupted.

use bytes::Bytes;
use sqlx::SqliteConnection;

use super::{
    error::{corrupt, failed},
    list, record,
    sql::now,
    verbs,
};
use crate::{
    key::RecordId,
    store::{Resume, Resuming, StoreError, row::Millis},
};

/// What may be due of one operation, by the index of open records; `resuming` decides.
const DUE: &str = concat!(
    "select k.recover_at, k.kid from idem_key k indexed by idem_key_open
       join idem_input i on i.kid = k.kid and i.epoch = k.epoch
      where k.state in (1, 5, 6) and k.state <> 5 and k.op = ?1 and k.recover_at <= ",
    now!(),
    " and k.rerun_until > ",
    now!(),
    " and k.lease_until + min(300000, 1000 << min(k.attempts - 1, 9)) <= ",
    now!(),
    " and (k.state = 6 or k.lease_until + ?2 <= ",
    now!(),
    ") order by k.recover_at, k.kid limit ?3"
);

/// After ROW in the same transaction said that it is due, which the write lock keeps true.
const TAKE: &str = "update idem_key set recover_at = ?2 where kid = ?1";

const INPUT: &str = "select body from idem_input where kid = ?1 and epoch = ?2";

/// What may be due: for a look without the write lock, so that a look that finds nothing keeps nobody waiting, and once
/// more under it.
pub(super) async fn due(connection: &mut SqliteConnection, resume: &Resume) -> Result<Vec<RecordId>, StoreError> {
    let mut due: Vec<(i64, Vec<u8>)> = Vec::new();
    for op in &resume.ops {
        let of_op = sqlx::query_as(DUE).bind(op).bind(Millis(0).plus(resume.grace).0).bind(resume.limit);
        due.extend(of_op.fetch_all(&mut *connection).await.map_err(failed)?);
    }
    due.sort_unstable();
    due.truncate(usize::try_from(resume.limit).unwrap_or(usize::MAX));
    let id = |(_, kid): (i64, Vec<u8>)| {
        <[u8; 16]>::try_from(kid).map(RecordId::from).map_err(|_| corrupt("`kid` has not 16 bytes"))
    };
    due.into_iter().map(id).collect()
}

pub(super) async fn interrupted(
    transaction: &mut SqliteConnection,
    resume: &Resume,
) -> Result<Vec<Resuming>, StoreError> {
    let now = verbs::now(transaction).await?;
    let mut taken = Vec::new();
    for id in due(transaction, resume).await? {
        let Some(found) = verbs::row(transaction, id).await? else { continue };
        let Some(row) = found.row.resuming(resume, now) else { continue };
        let kid = id.as_bytes().as_slice();
        let input = sqlx::query_scalar::<_, Vec<u8>>(INPUT).bind(kid).bind(row.epoch.0);
        let Some(input) = input.fetch_optional(&mut *transaction).await.map_err(failed)? else { continue };
        let take = sqlx::query(TAKE).bind(kid).bind(row.recover_at.0);
        take.execute(&mut *transaction).await.map_err(failed)?;
        let record = list::shown(transaction, id, record::Stored { row, now, ..found }).await?;
        taken.push(Resuming { record, input: Bytes::from(input) });
    }
    Ok(taken)
}
