//! Rows of the database, read.

use sqlx::{Decode, Postgres, Row as _, Type, postgres::PgRow};
use uuid::Uuid;

use super::error::{corrupt, failed};
use crate::{
    fingerprint::Fingerprint,
    state::{Reason, State},
    store::{
        Attempt, Fence, StoreError, StoredResponse,
        row::{Millis, Row},
    },
};

/// A record as the statements select it, and their instant. Whose it is and what it is called is read only where it is shown
/// (`list`).
pub(super) fn found(row: &PgRow) -> Result<(Row, Millis), StoreError> {
    let stored = Row {
        state: State::from_code(column(row, "state")?),
        reason: Reason::from_code(column(row, "reason")?),
        fence: Fence(column(row, "fence")?),
        attempt: Attempt::from(column::<Uuid>(row, "attempt")?.into_bytes()),
        attempts: count(row, "attempts")?,
        epoch: Fence(column(row, "epoch")?),
        fingerprint: Fingerprint::from_parts(column(row, "fp_alg")?, digest(row)?),
        lease_until: Millis(column(row, "lease_until")?),
        created_at: Millis(column(row, "created_at")?),
        expires_at: Millis(column(row, "expires_at")?),
        guard_until: Millis(column(row, "guard_until")?),
        tries: count(row, "tries")?,
        recover_at: Millis(column(row, "recover_at")?),
        rerun_until: Millis(column(row, "rerun_until")?),
    };
    Ok((stored, Millis(column(row, "now")?)))
}

/// The answer, if there is one that is due.
pub(super) fn response(row: &PgRow) -> Result<Option<StoredResponse>, StoreError> {
    let Some(headers) = column::<Option<Vec<u8>>>(row, "headers")? else { return Ok(None) };
    let status: Option<i32> = column(row, "status")?;
    let status = status.map(u16::try_from).transpose().map_err(|_| corrupt("`status` is out of range"))?;
    let body: Option<Vec<u8>> = column(row, "body")?;
    Ok(Some(StoredResponse { status, headers: headers.into(), body: body.map(Into::into) }))
}

/// Which record it is.
pub(super) fn kid(row: &PgRow) -> Result<Uuid, StoreError> {
    column(row, "kid")
}

/// One value, in either protocol's format.
pub(super) fn column<'r, T>(row: &'r PgRow, name: &'static str) -> Result<T, StoreError>
where
    T: Decode<'r, Postgres> + Type<Postgres>,
{
    row.try_get(name).map_err(failed)
}

fn count(row: &PgRow, name: &'static str) -> Result<u32, StoreError> {
    u32::try_from(column::<i32>(row, name)?).map_err(|_| corrupt(format!("`{name}` is out of range")))
}

fn digest(row: &PgRow) -> Result<[u8; 32], StoreError> {
    let value: Vec<u8> = column(row, "fp")?; // text has no bytes to borrow
    value.try_into().map_err(|value: Vec<u8>| corrupt(format!("`fp` has {} bytes instead of 32", value.len())))
}
