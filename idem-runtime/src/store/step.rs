//! What engine and stores say about the recorded steps of an operation.

use std::{fmt, time::Duration};

use bytes::Bytes;

use super::{Attempt, OpenTransaction};
use crate::key::RecordId;

/// How a step is run, and so what may be done about one that was started and never ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StepKind {
    /// Again, with the same derived key.
    Run,
    /// Its rows and its result are one commit, so it is never found started.
    Transaction,
    /// Not again: whether it took effect is to be found out.
    Once,
    /// Written by a newer version.
    Unknown(i16),
}

impl StepKind {
    /// The number that stores keep.
    #[must_use]
    pub const fn code(self) -> i16 {
        match self {
            Self::Run => 1,
            Self::Transaction => 2,
            Self::Once => 3,
            Self::Unknown(code) => code,
        }
    }

    /// The kind that [`code`](Self::code) gave.
    #[must_use]
    pub const fn from_code(code: i16) -> Self {
        match code {
            1 => Self::Run,
            2 => Self::Transaction,
            3 => Self::Once,
            code => Self::Unknown(code),
        }
    }
}

/// A step as it is kept. Its `Debug` shows the size of its result only.
#[derive(Clone, PartialEq, Eq)]
pub struct Step {
    /// Its name, the same over deploys.
    pub name: String,
    /// How it is run.
    pub kind: StepKind,
    /// Digest of what it was given, where the program says so.
    pub input: Option<[u8; 32]>,
    /// What it came to; `None`: it was started, and has not ended.
    pub result: Option<Bytes>,
    /// Since it was started for the first time in its epoch, by the store's clock.
    pub age: Duration,
}

impl Step {
    /// It was begun, and what it came to is not known.
    pub(crate) fn is_open(&self) -> bool {
        self.result.is_none()
    }

    /// The run that comes to it may ask its provider (`once_or_find`), as far as its kind says.
    pub(crate) fn may_be_asked(&self) -> bool {
        matches!(self.kind, StepKind::Once | StepKind::Unknown(_))
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("result_bytes", &self.result.as_ref().map(Bytes::len))
            .field("age", &self.age)
            .finish_non_exhaustive()
    }
}

/// A step that is about to be run.
#[derive(Debug, Clone)]
pub struct StartStep {
    /// Of which record; the epoch is the record's.
    pub record: RecordId,
    /// By which run.
    pub attempt: Attempt,
    /// Its name, 1 to 128 bytes.
    pub name: String,
    /// How it is run.
    pub kind: StepKind,
    /// Digest of what it is given, if the program says so.
    pub input: Option<[u8; 32]>,
}

/// What a [`StartStep`] gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// The step as it is kept now: new, or as an earlier run in the same epoch has left it. What that one had noted (kind,
    /// input, result) stays.
    Step(Step),
    /// The record is no longer in flight for this attempt, and nothing was written.
    Lost,
}

/// What a step came to. Its `Debug` shows the size of the result only.
#[derive(Clone)]
pub struct EndStep {
    /// Of which record.
    pub record: RecordId,
    /// By which run.
    pub attempt: Attempt,
    /// Its name.
    pub name: String,
    /// Its result.
    pub result: Bytes,
}

impl fmt::Debug for EndStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndStep")
            .field("record", &self.record)
            .field("attempt", &self.attempt)
            .field("name", &self.name)
            .field("result_bytes", &self.result.len())
            .finish()
    }
}

/// Whether the end of a step counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepEnded {
    /// It did.
    Stored,
    /// The record is another attempt's by now, or settled; or the step was never started.
    Lost,
}

/// What a step that is to run in a transaction gets.
pub enum StepBegun {
    /// The step is noted in it, which nobody else sees: run, then `commit_step`.
    Open(OpenTransaction),
    /// It has been run already, or may not be; nothing is open.
    Found(Started),
}

impl fmt::Debug for StepBegun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(_) => f.write_str("Open(..)"),
            Self::Found(started) => f.debug_tuple("Found").field(started).finish(),
        }
    }
}
