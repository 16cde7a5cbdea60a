//! What to make of an error of the driver.

use crate::store::{StoreError, StoreErrorKind};

/// A sentence of ours, about how the store is set up.
pub(super) fn setup(sentence: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Setup, sentence.into())
}

/// A value in the database that no version of ours writes.
pub(super) fn corrupt(sentence: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, sentence.into())
}

/// For `map_err`.
pub(super) fn failed(error: sqlx::Error) -> StoreError {
    let kind = match &error {
        sqlx::Error::Configuration(_) => StoreErrorKind::Setup,
        sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::Decode(_)
        | sqlx::Error::ColumnNotFound(_)
        | sqlx::Error::ColumnIndexOutOfBounds { .. }
        | sqlx::Error::TypeNotFound { .. }
        | sqlx::Error::RowNotFound => StoreErrorKind::Corrupt,
        sqlx::Error::Database(_) => kind_of(primary_code(&error)),
        // Time-outs and closing of the pool, a dead connection: another try may work.
        _ => StoreErrorKind::Unavailable,
    };
    StoreError::new(kind, error)
}

fn kind_of(code: Option<i32>) -> StoreErrorKind {
    match code {
        Some(ERROR) => StoreErrorKind::Setup, // no such table or column
        Some(CORRUPT | CONSTRAINT | MISMATCH | NOTADB) => StoreErrorKind::Corrupt,
        _ => StoreErrorKind::Unavailable, // busy, full, read-only, an I/O error, cannot be opened, …
    }
}

/// SQLite's result code, without what extends it.
pub(super) fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

// SQLite's result codes, from its documentation.
const ERROR: i32 = 1;
pub(super) const BUSY: i32 = 5;
pub(super) const READONLY: i32 = 8;
const CORRUPT: i32 = 11;
const CONSTRAINT: i32 = 19;
const MISMATCH: i32 = 20;
const NOTADB: i32 = 26;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_unavailable_and_what_cannot_be_read_is_corrupt() {
        const LOCKED: i32 = 6;
        const IOERR: i32 = 10;
        const FULL: i32 = 13;
        const CANTOPEN: i32 = 14;
        for code in [BUSY, LOCKED, READONLY, IOERR, FULL, CANTOPEN] {
            assert_eq!(kind_of(Some(code)), StoreErrorKind::Unavailable, "{code}");
        }
        assert_eq!(kind_of(Some(NOTADB)), StoreErrorKind::Corrupt);
        for (error, kind) in [
            (sqlx::Error::PoolTimedOut, StoreErrorKind::Unavailable),
            (sqlx::Error::WorkerCrashed, StoreErrorKind::Unavailable),
            (sqlx::Error::Decode("not a number".into()), StoreErrorKind::Corrupt),
            (sqlx::Error::Configuration("unknown mode".into()), StoreErrorKind::Setup),
        ] {
            assert_eq!(failed(error).kind, kind);
        }
    }
}
