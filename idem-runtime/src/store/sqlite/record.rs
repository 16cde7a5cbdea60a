//! Rows of the database, read.

use std::collections::HashMap;

use sqlx::{Row as _, sqlite::SqliteRow};

use super::error::{corrupt, failed};
use crate::{
    fingerprint::Fingerprint,
    key::RecordId,
    state::{Reason, State},
    store::{
        Attempt, Claimed, Fence, Peek, StoreError, StoredResponse,
        row::{Millis, Row},
    },
};

/// What `LOOK` finds of the records that it was asked about, at one instant.
pub(super) struct Seen {
    pub(super) now: Millis,
    /// The last one that was drawn.
    pub(super) fence: Fence,
    records: HashMap<RecordId, (Row, Option<StoredResponse>)>,
}

impl Seen {
    pub(super) fn read(rows: &[SqliteRow]) -> Result<Self, StoreError> {
        let first = rows.first().ok_or_else(|| corrupt("`idem_meta` has lost its row"))?;
        let (now, fence) = (Millis(integer(first, "now")?), Fence(integer(first, "last")?));
        let mut records = HashMap::with_capacity(rows.len());
        for row in rows {
            let kid: Option<&[u8]> = row.try_get("kid").map_err(failed)?;
            if kid.is_some() {
                records.insert(id(row)?, (looked(row)?, response(row)?));
            }
        }
        Ok(Self { now, fence, records })
    }

    /// Also of others.
    pub(super) fn add(&mut self, others: Self) {
        self.records.extend(others.records);
    }

    pub(super) fn row(&self, record: RecordId) -> Option<&Row> {
        self.records.get(&record).map(|(row, _)| row)
    }

    /// What the transaction has made of a record, for what comes after it.
    pub(super) fn put(&mut self, record: RecordId, row: &Row) {
        self.records.insert(record, (row.clone(), None));
    }

    /// What a claim finds; `None` where it may take the record.
    pub(super) fn look(&self, peek: &Peek, asker: Option<Attempt>) -> Option<Claimed> {
        let (row, response) = self.records.get(&peek.record)?;
        row.look(peek, asker, response.clone(), self.now)
    }
}

/// A record as `ROW` selects it.
pub(super) struct Stored {
    pub(super) row: Row,
    pub(super) op: String,
    pub(super) scope: String,
    /// When the statement ran. A transaction has its own instant and does not look at this one.
    pub(super) now: Millis,
}

pub(super) fn found(row: &SqliteRow) -> Result<Stored, StoreError> {
    let (op, scope) = (row.try_get("op").map_err(failed)?, row.try_get("scope").map_err(failed)?);
    Ok(Stored { row: looked(row)?, op, scope, now: Millis(integer(row, "now")?) })
}

pub(super) fn id(row: &SqliteRow) -> Result<RecordId, StoreError> {
    bytes::<16>(row, "kid").map(RecordId::from)
}

pub(super) fn attempt(row: &SqliteRow) -> Result<Attempt, StoreError> {
    bytes::<16>(row, "attempt").map(Attempt::from)
}

/// Without what nobody but a person wants to know.
fn looked(row: &SqliteRow) -> Result<Row, StoreError> {
    Ok(Row {
        state: State::from_code(integer(row, "state")?),
        reason: Reason::from_code(integer(row, "reason")?),
        fence: Fence(integer(row, "fence")?),
        attempt: attempt(row)?,
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
    })
}

/// The answer that `LOOK` joins, if there is one.
fn response(row: &SqliteRow) -> Result<Option<StoredResponse>, StoreError> {
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
