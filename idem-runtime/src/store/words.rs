//! The vocabulary between engine and stores.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use uuid::Uuid;

use crate::{
    fingerprint::Fingerprint,
    key::RecordId,
    state::{Event, Reason, State},
};

/// The random id of one run: the owner's token. Every write of an owner is compared with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt(Uuid);

impl Attempt {
    /// A new one, which nobody can guess. The engine draws it before it claims; a store draws one where a decision fences
    /// the old attempt off.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// The 16 bytes, as stores keep them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl From<[u8; 16]> for Attempt {
    fn from(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number that grows with every attempt at a record: a fencing token to hand to systems downstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub i64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A wish to run. Its `Debug` leaves the scope out.
#[derive(Clone)]
pub struct Claim {
    /// Which record.
    pub record: RecordId,
    /// The scope in words. Kept with the record that the claim takes, and shown with it: [`Record::scope`](super::Record::scope).
    pub scope: Arc<str>,
    /// The operation.
    pub op: &'static str,
    /// Who asks.
    pub attempt: Attempt,
    /// Of the payload.
    pub fingerprint: Fingerprint,
    /// How long an owner may be silent.
    pub lease: Duration,
    /// How long an answer is replayed.
    pub ttl: Duration,
    /// How long a late retry is refused; at least `ttl`.
    pub guard: Duration,
    /// How long after it has started afresh the operation may be run again, where a run failed or was lost; zero: never.
    /// The window is that of the claim by which it started.
    pub rerun: Duration,
    /// The argument by which the operation can be called again when nobody else does: kept with the record if the claim takes
    /// it, until the record is removed or a claim takes it with another one.
    pub input: Option<Bytes>,
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("record", &self.record)
            .field("op", &self.op)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

impl Claim {
    /// The same look, without claiming.
    #[must_use]
    pub fn peek(&self) -> Peek {
        Peek { record: self.record, fingerprint: self.fingerprint, rerun: !self.rerun.is_zero() }
    }
}

/// A look at a record.
#[derive(Debug, Clone, Copy)]
pub struct Peek {
    /// Which record.
    pub record: RecordId,
    /// Of the payload; [`Fingerprint::unknown`] where whoever asks knows the record only.
    pub fingerprint: Fingerprint,
    /// Whoever asks could run it again: what may be run again is told as free then, else as in doubt.
    pub rerun: bool,
}

/// What a claim gets.
#[derive(Debug, Clone)]
pub enum Claimed {
    /// The attempt owns the record: run.
    Owner(Owned),
    /// It does not.
    Found(Found),
}

impl Found {
    /// The same, as it is `by` later: a reply takes its time.
    pub(crate) fn aged(mut self, by: Duration) -> Self {
        if let Self::Replay(replay) = &mut self {
            replay.ttl_left = replay.ttl_left.saturating_sub(by);
        }
        self
    }
}

impl Claimed {
    /// What stands in the way, if anything does.
    #[must_use]
    pub fn found(self) -> Option<Found> {
        match self {
            Self::Owner(_) => None,
            Self::Found(found) => Some(found),
        }
    }
}

/// What stands in the way of a claim.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Found {
    /// Another attempt runs.
    InFlight {
        /// Since its claim.
        age: Duration,
    },
    /// The outcome is unknown.
    InDoubt(Reason),
    /// There is an answer.
    Replay(Replay),
    /// There was an answer that could not be kept, or an operator voided the operation.
    NotRetained {
        /// The first answer's status; `None` for a plain function or a voided operation.
        status: Option<u16>,
    },
    /// The replay window is over; the retry is too late to run.
    Expired,
    /// Another payload holds the key.
    Mismatch,
    /// A newer version wrote a state that this one cannot read.
    Unknown,
}

/// What an owner gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owned {
    /// Grows with every attempt.
    pub fence: Fence,
    /// Attempts so far, this one included.
    pub attempts: u32,
    /// The fence of the claim by which the key started afresh: the same for all runs of one operation, and never that of
    /// another, so provider keys are made of it.
    pub epoch: Fence,
}

impl Owned {
    /// Of a run without a claim.
    #[must_use]
    pub const fn unclaimed() -> Self {
        Self { fence: Fence(0), attempts: 1, epoch: Fence(0) }
    }

    /// An earlier run of the same operation came before this one, and may have taken effect.
    #[must_use]
    pub fn continues(&self) -> bool {
        self.fence != self.epoch
    }
}

/// A stored answer that is due.
#[derive(Debug, Clone)]
pub struct Replay {
    /// The answer; its body is there.
    pub response: StoredResponse,
    /// Of the payload that was answered.
    pub fingerprint: Fingerprint,
    /// How much longer it is due.
    pub ttl_left: Duration,
    /// It cannot change any more (`done`), so it may be cached; a rejection may not.
    pub is_final: bool,
}

/// The end of a run.
#[derive(Debug, Clone)]
pub struct Finish {
    /// Which record.
    pub record: RecordId,
    /// Whose run.
    pub attempt: Attempt,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a run ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Outcome {
    /// Final; the answer is replayed for the claim's `ttl`.
    Done(StoredResponse),
    /// A client error, replayed this long to the same payload, but not beyond `ttl`.
    Rejected(StoredResponse, Duration),
    /// Surely nothing happened.
    Released(Reason),
    /// Something may have happened. Ends the lease: the owner's own report means that nobody need wait for it.
    InDoubt(Reason),
    /// Something may have happened, and the operation may be run again. Ends the lease, too.
    Resumable(Reason),
}

impl Outcome {
    /// What this outcome asks of [`state::next`](crate::state::next).
    #[must_use]
    pub fn event(&self) -> Event {
        match self {
            Self::Done(_) => Event::Complete,
            Self::Rejected(..) => Event::Reject,
            Self::Released(_) => Event::Release,
            Self::InDoubt(_) => Event::Hold,
            Self::Resumable(_) => Event::Suspend,
        }
    }

    /// The answer to keep; `None` if the record is to keep none.
    #[must_use]
    pub fn response(&self) -> Option<&StoredResponse> {
        match self {
            Self::Done(response) | Self::Rejected(response, _) => Some(response),
            Self::Released(_) | Self::InDoubt(_) | Self::Resumable(_) => None,
        }
    }

    /// The state this outcome leads to.
    #[must_use]
    pub fn state(&self) -> State {
        match self {
            Self::Done(_) => State::Done,
            Self::Rejected(..) => State::Rejected,
            Self::Released(_) => State::Released,
            Self::InDoubt(_) => State::InDoubt,
            Self::Resumable(_) => State::Resumable,
        }
    }

    /// Why, for those that need a reason.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Released(reason) | Self::InDoubt(reason) | Self::Resumable(reason) => Some(*reason),
            Self::Done(_) | Self::Rejected(..) => None,
        }
    }
}

/// An answer as it is kept. Its `Debug` shows sizes only.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// The HTTP status; `None` for the value of a plain function.
    pub status: Option<u16>,
    /// The header lines that are replayed, encoded by the HTTP side.
    pub headers: Bytes,
    /// The body, byte for byte; `None` if it is not retained.
    pub body: Option<Bytes>,
}

impl fmt::Debug for StoredResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredResponse")
            .field("status", &self.status)
            .field("header_bytes", &self.headers.len())
            .field("body_bytes", &self.body.as_ref().map(Bytes::len))
            .finish()
    }
}

/// Whether a finish counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// It did.
    Stored {
        /// How much longer the answer is due.
        ttl_left: Duration,
    },
    /// The record is another attempt's by now, or settled.
    Lost,
}

/// A lease to prolong.
#[derive(Debug, Clone, Copy)]
pub struct Renewal {
    /// Which record.
    pub record: RecordId,
    /// Whose lease.
    pub attempt: Attempt,
}

/// Whether a renewal counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// It did.
    Held,
    /// The record was locked; ask again.
    Busy,
    /// The record is another attempt's by now, or settled.
    Lost,
}

/// A provider's id, recorded with the operation that caused it.
#[derive(Debug, Clone)]
pub struct Link {
    /// Which record.
    pub record: RecordId,
    /// Of the run that made it.
    pub epoch: Fence,
    /// The run that made it.
    pub attempt: Attempt,
    /// Whose id it is: `"stripe"`.
    pub provider: String,
    /// The id: `"ch_1"`.
    pub id: String,
}
