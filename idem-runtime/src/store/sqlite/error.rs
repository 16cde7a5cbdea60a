//! What to make of an error of the driver.

pub(super) use crate::store::driver::{corrupt, setup};
use crate::store::{StoreError, StoreErrorKind, driver};

/// For `map_err`.
pub(super) fn failed(error: sqlx::Error) -> StoreError {
    driver::failed(error, |error| kind_of(primary_code(error)))
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
pub(super) const ERROR: i32 = 1;
pub(super) const BUSY: i32 = 5;
pub(super) const READONLY: i32 = 8;
const CORRUPT: i32 = 11;
pub(super) const CONSTRAINT: i32 = 19;
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
