//! Transactions that failed: what their callers are told, and what the log is.

use crate::{
    error::{Error, ErrorKind},
    key::RecordId,
    operation::Operation,
    store::{StoreError, StoreErrorKind},
};

pub(crate) fn fault(detail: &'static str) -> Error {
    Error::new(ErrorKind::Transaction).with(|about| about.detail = Some(detail))
}

pub(super) fn kept() -> Error {
    fault("its body did not give the `Tx` back").undone()
}

/// What it wrote after that is committed already.
pub(super) fn ended_by_itself() -> Error {
    fault("its body has ended the transaction by itself")
}

/// The database refused what the body wrote, or was gone before the COMMIT.
pub(crate) fn undone(error: StoreError) -> Error {
    let error = match error.kind {
        StoreErrorKind::Unavailable | StoreErrorKind::Overloaded => Error::from_store(error),
        StoreErrorKind::Corrupt | StoreErrorKind::Setup => {
            fault("what its body has left cannot be committed").with(|about| about.source = Some(Box::new(error)))
        }
    };
    error.undone()
}

pub(super) fn not_begun(operation: &Operation, error: StoreError) -> Error {
    if error.kind == StoreErrorKind::Overloaded {
        return Error::from_store(error); // as many as are refused, and metrics count them
    }
    tracing::warn!(target: "idem::engine", op = operation.op, error = &error as &dyn std::error::Error, "a transaction could not be opened; the request is refused and nothing runs");
    Error::from_store(error)
}

/// Says it where an operator looks. Not what came of a COMMIT without a reply, which is said where that is found out.
pub(crate) fn tell(operation: &Operation, record: Option<RecordId>, error: &Error) {
    let (op, record, said) = (operation.op, record.map(tracing::field::display), error as &dyn std::error::Error);
    match error.kind() {
        ErrorKind::Transaction => {
            tracing::error!(target: "idem::engine", op, record, error = said, "a transaction failed by a fault of the program");
        }
        ErrorKind::Unavailable { .. } if error.about().fate == Some(crate::error::Fate::Undone) => {
            tracing::warn!(target: "idem::engine", op, record, error = said, "a transaction was undone because the store failed; a retry runs again");
        }
        _ => {}
    }
}
