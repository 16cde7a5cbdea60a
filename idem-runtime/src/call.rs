//! One call of an annotated operation.

use std::{sync::Arc, time::Duration};

use crate::{
    error::{Error, ErrorKind},
    fingerprint::Fingerprint,
    key::RecordId,
    operation::Operation,
    store::Peek,
};

/// One request, job or event, with its identity.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) operation: &'static Operation,
    pub(crate) record: RecordId,
    pub(crate) scope: Arc<str>,
    pub(crate) fingerprint: Fingerprint,
    /// How long a duplicate waits for the first run; zero: not at all.
    pub(crate) patience: Duration,
}

impl Call {
    pub(crate) fn peek(&self) -> Peek {
        Peek { record: self.record, fingerprint: self.fingerprint, rerun: false }
    }

    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        self.explain(Error::new(kind))
    }

    pub(crate) fn explain(&self, error: Error) -> Error {
        error.with(|about| {
            about.op = Some(self.operation.op);
            about.record = Some(self.record);
        })
    }
}
