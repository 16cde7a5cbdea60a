//! What the SQL drivers' errors have in common.

use super::{StoreError, StoreErrorKind};

/// A sentence of ours, about how the store is set up.
pub(in crate::store) fn setup(sentence: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Setup, sentence.into())
}

/// A value in the database that no version of ours writes.
pub(in crate::store) fn corrupt(sentence: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, sentence.into())
}

/// An error of the driver; `of_database` says what to make of one that the database reported.
pub(in crate::store) fn failed(
    error: sqlx::Error,
    of_database: impl FnOnce(&sqlx::Error) -> StoreErrorKind,
) -> StoreError {
    let kind = match &error {
        sqlx::Error::Configuration(_) => StoreErrorKind::Setup,
        sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::Decode(_)
        | sqlx::Error::ColumnNotFound(_)
        | sqlx::Error::ColumnIndexOutOfBounds { .. }
        | sqlx::Error::TypeNotFound { .. }
        | sqlx::Error::RowNotFound => StoreErrorKind::Corrupt,
        sqlx::Error::Database(_) => of_database(&error),
        // Time-outs and closing of the pool, a dead connection: another try may work.
        _ => StoreErrorKind::Unavailable,
    };
    StoreError::new(kind, error)
}
