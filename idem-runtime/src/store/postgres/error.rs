//! What to make of an error of the driver.

pub(super) use crate::store::driver::{corrupt, setup};
use crate::store::{StoreError, StoreErrorKind, driver};

/// For `map_err`.
pub(super) fn failed(error: sqlx::Error) -> StoreError {
    if code(&error) == NOT_PERMITTED {
        return StoreError::new(StoreErrorKind::Setup, NotPermitted(error));
    }
    driver::failed(error, |error| kind_of(&code(error)))
}

const NOT_PERMITTED: &str = "42501";

/// Says what to do, before what the server says.
#[derive(Debug, thiserror::Error)]
#[error(
    "this role lacks a right: `migrate` needs `create` on the database, or a schema that is the role's own (`create schema \
     idem authorization ROLE`); all else needs `usage` on the schema and its sequence, and `select, insert, update, delete` \
     on its tables"
)]
struct NotPermitted(#[source] sqlx::Error);

/// By the class of a SQLSTATE: its first two characters.
fn kind_of(code: &str) -> StoreErrorKind {
    match code.get(..2) {
        _ if matches!(code, "25006" | "25P03" | "25P04") => StoreErrorKind::Unavailable, // read-only; silent for too long
        // No such table, column, schema or prepared statement; not permitted; a transaction that was left aborted, or ended.
        Some("42" | "3F" | "26" | "25" | "3B") => StoreErrorKind::Setup,
        // A value out of its range, a constraint broken, a page or an index damaged.
        Some("22" | "23" | "XX") => StoreErrorKind::Corrupt,
        // No connection or no room for one, no memory or disk, read-only, a time-out, shutting down, …
        _ => StoreErrorKind::Unavailable,
    }
}

/// The server undid the statement for another's sake, and it may be sent again as it is.
pub(super) fn is_undone(error: &sqlx::Error) -> bool {
    matches!(&*code(error), "40001" | "40P01")
}

/// The connection may be unusable, and with it all that were made before this.
pub(super) fn breaks_connections(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(_) => {
            let code = code(error);
            // An administrator's command, a crash of another session, a fail-over that left us on a standby.
            code.starts_with("08") || matches!(&*code, "57P01" | "57P02" | "57P03" | "57P05" | "25006")
        }
        _ => false,
    }
}

/// The server answered, and refused: nothing of it is kept.
pub(super) fn is_refusal(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(_)) && !breaks_connections(error)
}

/// There is no transaction any more in which this could be done, or not the one that had our savepoint. Without one, a pooler may have given us another server, which
/// does not have our statement.
pub(super) fn is_outside(error: &sqlx::Error) -> bool {
    matches!(&*code(error), "25P01" | "26000" | "3B001")
}

/// What is put off to the commit was refused at the end of the statement: so that was the commit, and there was no transaction.
pub(super) fn is_refused_at_once(error: &sqlx::Error) -> bool {
    code(error) == "23503"
}

/// The SQLSTATE; empty if the server did not give one.
fn code(error: &sqlx::Error) -> String {
    error.as_database_error().and_then(|error| error.code()).map(String::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_unavailable_and_what_cannot_be_read_is_corrupt() {
        for code in ["57P01", "57P03", "53100", "53300", "25006", "25P03", "57014", "55P03", "40001", "08006", ""] {
            assert_eq!(kind_of(code), StoreErrorKind::Unavailable, "{code}");
        }
        for code in ["42P01", "25P02", "3B001"] {
            assert_eq!(kind_of(code), StoreErrorKind::Setup, "{code}");
        }
        assert_eq!(kind_of("23502"), StoreErrorKind::Corrupt);
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
