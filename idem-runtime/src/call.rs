//! One call of an annotated operation.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;

use crate::{
    error::{Error, ErrorKind, Fate},
    fingerprint::Fingerprint,
    key::{Key, RecordId, Scope},
    observe::Watch,
    operation::{ForeignScope, Operation},
    store::{Order, Peek},
};

/// Where an operation's key comes from.
pub enum KeySource {
    /// A header line of the request.
    Header,
    /// An expression.
    Given(Vec<u8>),
}

/// Without the key.
impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "Header",
            Self::Given(_) => "Given(..)",
        })
    }
}

/// One request, job or event, with its identity.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) operation: &'static Operation,
    pub(crate) record: RecordId,
    pub(crate) scope: Arc<str>,
    pub(crate) fingerprint: Fingerprint,
    /// Kept with the claim, so that the completer can make this call again.
    pub(crate) input: Option<Bytes>,
    /// Where its event stands; the store compares it.
    pub(crate) order: Option<Order>,
    /// How long a duplicate waits for the first run; zero: not at all.
    pub(crate) patience: Duration,
    /// While the first run is under way, a duplicate is told where to fetch its result.
    pub(crate) accepts: bool,
    pub(crate) watch: Watch,
}

/// A scope is either part of the identity, so that another one's key is another key, or part of what must be the same.
impl Operation {
    /// The record that `key` names.
    pub(crate) fn identity(&self, namespace: &str, scope: &Scope, key: &Key) -> RecordId {
        match self.foreign_scope {
            ForeignScope::Isolate => RecordId::new(namespace, scope, self.op, key),
            ForeignScope::Reject => RecordId::of_all_scopes(namespace, self.op, key),
        }
    }

    /// What must be the same in a retry with this payload.
    pub(crate) fn bound(&self, scope: &Scope, payload: Fingerprint) -> Fingerprint {
        match self.foreign_scope {
            ForeignScope::Isolate => payload,
            ForeignScope::Reject => payload.within(scope),
        }
    }
}

impl Call {
    pub(crate) fn peek(&self) -> Peek {
        Peek { record: self.record, fingerprint: self.fingerprint, rerun: self.operation.reruns() }
    }

    /// Why a body that ran has no answer.
    pub(crate) fn failed(&self, kind: ErrorKind) -> Error {
        let fate = self.operation.reruns().then_some(Fate::RunAgain);
        self.error(kind).with(|about| about.fate = fate)
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
