//! Rows of the database, read.

use sqlx::{Row as _, sqlite::SqliteRow};

use super::error::{corrupt, failed};
use crate::{
    fingerprint::Fingerprint,
    state::{Reason, State},
    store::{
        Attempt, Fence, StoreError, StoredResponse,
        row::{Millis, Row},
    },
};

/// A record as `ROW` and `LOOK` select it.
pub(super) struct Stored {
    pub(super) row: Row,
    pub(super) op: String,
    pub(super) scope: String,
    /// When the statement ran. A transaction has its own instant and does not look at this one.
    pub(super) now: Millis,
}

pub(super) fn found(row: &SqliteRow) -> Result<Stored, StoreError> {
    let (op, scope) = (row.try_get("op").map_err(failed)?, row.try_get("scope").map_err(failed)?);
    let (row, now) = looked(row)?;
    Ok(Stored { row, op, scope, now })
}

/// Without what nobody but a person wants to know.
pub(super) fn looked(row: &SqliteRow) -> Result<(Row, Millis), StoreError> {
    let stored = Row {
        state: State::from_code(integer(row, "state")?),
        reason: Reason::from_code(integer(row, "reason")?),
        fence: Fence(integer(row, "fence")?),
        attempt: Attempt::from(bytes::<16>(row, "attempt")?),
        attempts: integer(row, "attempts")?,
        epoch: Fence(integer(row, "epoch")?),
        fingerprint: Fingerprint::from_parts(integer(row, "fp_alg")?, bytes(row, "fp")?),
        lease_until: Millis(integer(row, "lease_until")?),
        created_at: Millis(integer(row, "created_at")?),
        expires_at: Millis(integer(row, "expires_at")?),
        guard_until: Millis(integer(row, "guard_until")?),
        tries: integer(row, "tries")?,
        recover_at: Millis(integer(row, "recover_at")?),
        rerun_until: Millis(integer(row, "rerun_until")?),
    };
    Ok((stored, Millis(integer(row, "now")?)))
}

/// The answer that `LOOK` joins, if there is one.
pub(super) fn response(row: &SqliteRow) -> Result<Option<StoredResponse>, StoreError> {
    if !row.try_get::<bool, _>("answered").map_err(failed)? {
        return Ok(None);
    }
    let status: Option<i64> = row.try_get("status").map_err(failed)?;
    let status = status.map(u16::try_from).transpose().map_err(|_| corrupt("`status` is out of range"))?;
    let headers: Vec<u8> = row.try_get("headers").map_err(failed)?;
    let body: Option<Vec<u8>> = row.try_get("body").map_err(failed)?;
    Ok(Some(StoredResponse { status, headers: headers.into(), body: body.map(Into::into) }))
}

/// SQLite's integers have 64 bits, whatever was meant.
fn integer<T: TryFrom<i64>>(row: &SqliteRow, column: &'static str) -> Result<T, StoreError> {
    let value: i64 = row.try_get(column).map_err(failed)?;
    T::try_from(value).map_err(|_| corrupt(format!("`{column}` is out of range")))
}

fn bytes<const N: usize>(row: &SqliteRow, column: &'static str) -> Result<[u8; N], StoreError> {
    let value: &[u8] = row.try_get(column).map_err(failed)?;
    value.try_into().map_err(|_| corrupt(format!("`{column}` has {} bytes instead of {N}", value.len())))
}
