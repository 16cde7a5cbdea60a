//! The one error of the crate: why a call was not run or an answer is not to be had.

use std::{error::Error as StdError, fmt, time::Duration};

use crate::{key::RecordId, store::StoreError};

/// Why a call was refused, or why a request to the runtime failed.
///
/// Opaque: look at [`kind`](Self::kind). In a handler it answers as a problem (RFC 9457); a plain function's error
/// type is made from it. Never contains a key, a scope or a payload.
pub struct Error {
    kind: ErrorKind,
    about: Box<About>,
}

#[derive(Debug, Default)]
pub(crate) struct About {
    pub(crate) detail: Option<&'static str>,
    pub(crate) op: Option<&'static str>,
    pub(crate) record: Option<RecordId>,
    /// The status of an answer that was given but cannot be given again.
    pub(crate) original_status: Option<u16>,
    /// What providers call the operation.
    pub(crate) links: Vec<(String, String)>,
    /// A run that this version understands is under way; an unknown state looks the same from outside.
    pub(crate) under_way: bool,
    /// A recovery hook was asked about the doubt for the last time: it does not settle itself any more.
    pub(crate) given_up: bool,
    /// The operation has a hook that is asked about its doubts. (Handlers' problems ask the configuration.)
    pub(crate) recovers: bool,
    /// The body had run when this error came up, so a new key could do it twice.
    pub(crate) body_ran: bool,
    /// What the program's own log is told, and clients are not.
    pub(crate) told: Option<String>,
    /// What became of the run, where the kind alone says something else.
    pub(crate) fate: Option<Fate>,
    pub(crate) source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What became of a run: in a transaction, or where it may be run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing of it is kept, and the key is free.
    Undone,
    /// Whether it was committed could not be read.
    Unknown,
    /// It may have taken effect, and the next retry runs it again, which does not do twice what was done.
    RunAgain,
}

/// What an [`Error`] means, and so what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request has no key.
    MissingKey,
    /// The key is malformed.
    InvalidKey,
    /// The key belongs to another payload.
    Mismatch,
    /// The first run is under way: come back with the same key.
    InProgress {
        /// When it is worth it.
        retry_after: Duration,
    },
    /// The first run may have taken effect, and is not run again by itself.
    InDoubt,
    /// The first run's answer is gone, and it is too late to run again.
    Expired,
    /// The operation is completed, but its answer was not retained.
    ResultUnavailable,
    /// The operation ended without an effect, and nothing of it is kept: send it again with the same key.
    Released,
    /// The caller has no such operation.
    UnknownOperation,
    /// The store cannot be asked: come back with the same key.
    Unavailable {
        /// When it is worth it.
        retry_after: Duration,
    },
    /// This process is shutting down: come back with the same key.
    Draining,
    /// The body ran into its `timeout`; whether it took effect is unknown, but in a transaction, where it is undone.
    TimedOut,
    /// The body panicked; whether it took effect is unknown, but in a transaction, where it is undone.
    Panicked,
    /// The request's body is longer than `max_request`, or a function's `input` than `max_input`.
    TooLarge,
    /// The request's body could not be read to its end, or a function's `input` cannot be written as JSON.
    Unreadable,
    /// A webhook's signature is wrong, missing or out of date (feature `webhook`).
    Unverified,
    /// A webhook's event has no id, or cannot be read (feature `webhook`).
    InvalidEvent,
    /// Where an event stands in its `order` cannot be read from its body.
    OrderUnreadable,
    /// `authorize_replay` said no.
    ReplayForbidden,
    /// A provider's id that cannot be recorded.
    InvalidLink,
    /// [`claim_many`](crate::Runtime::claim_many) was asked for an operation that cannot be claimed ahead, or for too much.
    InvalidBatch,
    /// `resolve` came too early, too late, or for a record that is not in doubt.
    Conflict,
    /// The body's transaction could not be opened or committed, for a fault of the program: see the error's text.
    Transaction,
    /// A recorded step could not be run or recorded, for a fault of the program: see the error's text.
    Step,
    /// This runtime was told not to serve the operation.
    NotServed,
    /// The store holds something that cannot be read.
    Store,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self { kind, about: Box::default() }
    }

    /// A failure of the store while nothing has run: 503, or [`ErrorKind::Store`] if waiting will not help.
    pub(crate) fn from_store(error: StoreError) -> Self {
        use crate::store::StoreErrorKind;
        let kind = match error.kind {
            StoreErrorKind::Unavailable | StoreErrorKind::Overloaded => {
                ErrorKind::Unavailable { retry_after: Duration::from_secs(fastrand::u64(1..=5)) }
            }
            StoreErrorKind::Corrupt | StoreErrorKind::Setup => ErrorKind::Store,
        };
        Self::new(kind).with(|about| about.source = Some(Box::new(error)))
    }

    pub(crate) fn with(mut self, tell: impl FnOnce(&mut About)) -> Self {
        tell(&mut self.about);
        self
    }

    /// Of a run in a transaction of which surely nothing is kept.
    pub(crate) fn undone(self) -> Self {
        self.with(|about| about.fate = Some(Fate::Undone))
    }

    /// What it means.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The record it is about, if one is known: what [`Runtime::find`](crate::Runtime::find) calls `id`.
    #[must_use]
    pub fn record(&self) -> Option<RecordId> {
        self.about.record
    }

    pub(crate) fn about(&self) -> &About {
        &self.about
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.kind {
            ErrorKind::MissingKey => "the request has no idempotency key",
            ErrorKind::InvalidKey => "the idempotency key is invalid",
            ErrorKind::Mismatch => "the idempotency key was used with another payload",
            ErrorKind::InProgress { .. } => "the first request with this idempotency key is in progress",
            ErrorKind::InDoubt => "the outcome of the first request with this idempotency key is unknown",
            ErrorKind::Expired => "the result of this idempotency key has expired",
            ErrorKind::ResultUnavailable => "the operation is completed, but its result is not retained",
            ErrorKind::Released => "the operation ended without an effect",
            ErrorKind::UnknownOperation => "the caller has no such operation",
            ErrorKind::Unavailable { .. } => "the idempotency store is unavailable",
            ErrorKind::Draining => "the service is shutting down",
            ErrorKind::TimedOut => "the operation ran into its time limit",
            ErrorKind::Panicked => "the operation panicked",
            ErrorKind::TooLarge => "the request is too large",
            ErrorKind::Unreadable => "the request could not be read",
            ErrorKind::Unverified => "the webhook's signature does not hold",
            ErrorKind::InvalidEvent => "the webhook's event cannot be read",
            ErrorKind::OrderUnreadable => "where the event stands in its order cannot be read",
            ErrorKind::ReplayForbidden => "the stored result may not be shown to this caller",
            ErrorKind::InvalidLink => "a provider's id cannot be recorded",
            ErrorKind::InvalidBatch => "the batch cannot be claimed",
            ErrorKind::Conflict => "the record is not in the state that was seen, or may not be settled yet",
            ErrorKind::Transaction => "the operation's transaction failed",
            ErrorKind::Step => "a step of the operation failed",
            ErrorKind::NotServed => "this runtime does not serve the operation",
            ErrorKind::Store => "the idempotency store holds something that cannot be read",
        };
        match (&self.about.told, self.about.detail) {
            (Some(told), _) => write!(f, "{text}: {told}"),
            (None, Some(detail)) => write!(f, "{text}: {detail}"),
            (None, None) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind)
            .field("op", &self.about.op)
            .field("record", &self.about.record)
            .field("detail", &self.about.detail)
            .field("told", &self.about.told)
            .field("source", &self.about.source)
            .finish_non_exhaustive()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.about.source.as_deref().map(|source| source as _)
    }
}
