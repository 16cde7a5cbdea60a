//! What operators may ask for, when they look at more than one record.

use std::{fmt, time::Duration};

use crate::{
    key::{RecordId, Scope, ScopePart},
    state::State,
};

/// Which records to list; all of them, unless something is said. Its `Debug` leaves the scope out.
///
/// ```
/// use std::time::Duration;
///
/// use idem_runtime::{Filter, state::State};
///
/// let stuck = Filter::default().op("charge").state(State::InDoubt).older_than(Duration::from_secs(3600));
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// Of this operation.
    pub op: Option<String>,
    /// Of this scope, as [`Record::scope`](super::Record::scope) has it.
    pub scope: Option<String>,
    /// That stand there, as [`Record::state`](super::Record::state) has it: what is in flight and has lost its lease is
    /// [`State::InDoubt`], or [`State::Resumable`] while it may be run again.
    pub state: Option<State>,
    /// Whose last claim was made so long ago, or longer.
    pub older_than: Option<Duration>,
}

impl Filter {
    /// Only those of this operation.
    #[must_use]
    pub fn op(self, op: impl Into<String>) -> Self {
        Self { op: Some(op.into()), ..self }
    }

    /// Only those of this scope ([`Global`](crate::Global) where the annotation says `global`).
    #[must_use]
    pub fn scope(self, scope: impl ScopePart) -> Self {
        Self { scope: Some(Scope::of(&scope).as_str().to_owned()), ..self }
    }

    /// Only those that stand there.
    #[must_use]
    pub fn state(self, state: State) -> Self {
        Self { state: Some(state), ..self }
    }

    /// Only those whose last claim was made so long ago, or longer.
    #[must_use]
    pub fn older_than(self, age: Duration) -> Self {
        Self { older_than: Some(age), ..self }
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter")
            .field("op", &self.op)
            .field("state", &self.state)
            .field("older_than", &self.older_than)
            .finish_non_exhaustive()
    }
}

/// One page of a list. Its order is that of the records' ids, which never changes: a record that is there from the first
/// page to the last is listed exactly once, whatever comes and goes between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Goes on behind this record, the last one of the page before; `None`: from the beginning.
    pub after: Option<RecordId>,
    /// At most so many records.
    pub limit: u32,
}

impl Page {
    /// The longest page. A longer one is cut to it.
    pub const MAX: u32 = 1_000;

    /// The first page, of at most so many records.
    #[must_use]
    pub fn first(limit: u32) -> Self {
        Self { after: None, limit }
    }

    /// The page behind `last`, of the same length.
    #[must_use]
    pub fn after(self, last: RecordId) -> Self {
        Self { after: Some(last), ..self }
    }

    /// How many records it may have.
    pub(super) fn size(&self) -> u32 {
        self.limit.clamp(1, Self::MAX)
    }
}

/// A first page of 100 records.
impl Default for Page {
    fn default() -> Self {
        Self::first(100)
    }
}

/// The most records that are told of one link.
pub(super) const LINKED: u32 = 100;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl Filter {
    /// It asks for what is open only, which stores find without looking at the rest.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, Some(State::InFlight | State::InDoubt | State::Resumable))
    }
}
