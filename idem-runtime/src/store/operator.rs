//! What operators see and decide.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use super::{Attempt, Fence, StepDecisions, StoredResponse};
use crate::{
    key::RecordId,
    state::{Event, Reason, State},
};

/// A decision of an operator, or of a recovery.
#[derive(Debug, Clone)]
pub struct Resolve {
    /// Which record.
    pub record: RecordId,
    /// The fence that the operator saw; another one by now means that something happened since.
    pub seen: Fence,
    /// What it becomes.
    pub to: Resolution,
    /// How long after the end of its lease a silent body may still act. Until then it is not released, and what is settled
    /// otherwise does not run again, however short its windows are.
    pub quarantine: Duration,
    /// How long from now on the operation may be run again, for [`Resolution::Resume`].
    pub rerun: Duration,
    /// [`Reason::Operator`] or [`Reason::Recovery`]: kept with the record.
    pub reason: Reason,
    /// Who, and why.
    pub by: Audit,
}

/// How an operator settles a record.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Resolution {
    /// It happened; retries get this answer.
    Complete(StoredResponse),
    /// Never to be run or answered: retries get 410 `idempotency-result-unavailable`.
    Void,
    /// It did not happen, and will not any more; the next retry runs. It has a new
    /// [provider key](crate::Execution::provider_key): if it did happen, the provider does not know it again.
    Release,
    /// To be run again as the same operation, whether or not it happened: all that it does outside must still know its
    /// [provider key](Record::provider_key), which stays. Its window for that (`provider_window`) begins anew, also where it was over.
    /// Only for an operation that is run again at all, and not where the next run could not go on: a step was begun that must
    /// not run again, and nobody knows what it came to. See [`ResumeWith`](Self::ResumeWith).
    Resume,
    /// As [`Resume`](Self::Resume), with what became of single [`Steps`](crate::Steps) that were begun and never ended.
    ResumeWith(StepDecisions),
}

impl Resolution {
    /// What this decision asks of [`state::next`](crate::state::next).
    #[must_use]
    pub fn event(&self) -> Event {
        match self {
            Self::Complete(_) | Self::Void => Event::ResolveDone,
            Self::Release => Event::ResolveReleased,
            Self::Resume | Self::ResumeWith(_) => Event::ResolveResumed,
        }
    }

    /// The answer to keep; `None` if the record is to keep none.
    #[must_use]
    pub fn response(&self) -> Option<&StoredResponse> {
        match self {
            Self::Complete(response) => Some(response),
            Self::Void | Self::Release | Self::Resume | Self::ResumeWith(_) => None,
        }
    }
}

/// Who settled a record, and why. Kept with the record's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// A person or a program.
    pub who: String,
    /// The reason, in words.
    pub why: String,
}

/// What a look over all records finds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// What is in doubt. An operation without doubts is left out.
    pub doubts: Vec<Doubts>,
    /// The look stopped short of the present: ask again at once.
    pub behind: bool,
}

/// What is in doubt of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubts {
    /// The operation; also one that this program does not know.
    pub op: String,
    /// How many records.
    pub count: u64,
    /// How long the oldest has been in doubt: since the report of its run, the end of its lease, or since it may not be
    /// run again any more.
    pub oldest: Duration,
    /// The oldest, for a log line: its process may have died without one.
    pub record: RecordId,
}

/// One record, as operators see it. Never contains the key; its `Debug` leaves the scope out.
#[derive(Clone)]
#[non_exhaustive]
pub struct Record {
    /// The identity.
    pub id: RecordId,
    /// The operation.
    pub op: String,
    /// Whose it is: the scope of the claim that took it last, as [`Scope::as_str`](crate::Scope::as_str) writes it.
    pub scope: String,
    /// Where it stands. An in-flight record whose lease has ended reads [`State::InDoubt`], or [`State::Resumable`] while its
    /// operation may be run again; and a resumable one reads [`State::InDoubt`] when it may not any more.
    pub state: State,
    /// Why, if there is a reason.
    pub reason: Option<Reason>,
    /// To be handed to [`Runtime::resolve`](crate::Runtime::resolve).
    pub fence: Fence,
    /// The current run.
    pub attempt: Attempt,
    /// Runs so far.
    pub attempts: u32,
    /// The fence of the claim by which the key last started afresh.
    pub epoch: Fence,
    /// When the current epoch's last claim was made, by the store's clock.
    pub created_at: SystemTime,
    /// Since then.
    pub age: Duration,
    /// How much longer the owner may be silent; zero once it may not.
    pub lease_left: Duration,
    /// How long ago its lease ended, by its owner's report or by silence; zero while it lasts. The quarantine counts from
    /// there.
    pub silent_for: Duration,
    /// How often recovery hooks have been asked about its current run.
    pub tries: u32,
    /// When its answer stops being replayed.
    pub expires_at: SystemTime,
    /// What providers call it, oldest first: (provider, id), of the current epoch.
    pub links: Vec<(String, String)>,
}

impl Record {
    /// A record's first run, begun at the epoch of the wall clock under a lease that is over. A store sets the fields
    /// that it knows better.
    #[must_use]
    pub fn new(id: RecordId, op: impl Into<String>, state: State, fence: Fence, attempt: Attempt) -> Self {
        Self {
            id,
            op: op.into(),
            scope: String::new(),
            state,
            reason: None,
            fence,
            attempt,
            attempts: 1,
            epoch: fence,
            created_at: SystemTime::UNIX_EPOCH,
            age: Duration::ZERO,
            lease_left: Duration::ZERO,
            silent_for: Duration::ZERO,
            tries: 0,
            expires_at: SystemTime::UNIX_EPOCH,
            links: Vec::new(),
        }
    }

    /// The key that its runs had for their provider ([`Execution::provider_key`](crate::Execution::provider_key)): what to
    /// ask the provider for. After a release the next run has another one.
    #[must_use]
    pub fn provider_key(&self) -> String {
        self.id.provider_key(self.epoch.0, "")
    }

    /// The key that this step had for its provider ([`StepKey`](crate::StepKey)): what to ask for, of an operation with
    /// [`Steps`](crate::Steps).
    #[must_use]
    pub fn step_key(&self, step: &str) -> String {
        self.id.provider_key(self.epoch.0, step)
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("id", &self.id)
            .field("op", &self.op)
            .field("state", &self.state)
            .field("reason", &self.reason)
            .field("fence", &self.fence)
            .field("attempt", &self.attempt)
            .field("attempts", &self.attempts)
            .field("epoch", &self.epoch)
            .field("created_at", &self.created_at)
            .field("age", &self.age)
            .field("lease_left", &self.lease_left)
            .field("silent_for", &self.silent_for)
            .field("tries", &self.tries)
            .field("expires_at", &self.expires_at)
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}
