//! What is said about records that are over, and when one is.

use std::time::Duration;

use super::row::{Millis, Row};
use crate::{
    key::RecordId,
    state::{self, Facts},
};

/// How much longer than its windows a record stays: whoever read it at their very end is done with it by then.
pub(super) const GRACE: Duration = Duration::from_secs(60);

/// How far a purge would go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The time since the last [`purge`](super::Store::purge) of any process, or since the store was made, by the store's
    /// clock; zero if that was set back.
    pub since_purge: Duration,
    /// How many records a purge would remove. Exact up to a thousand. A store may stop counting a long way above that,
    /// and says then that it would remove all.
    pub records: u64,
    /// How many records there are, whatever their state; an estimate will do. At least `records`.
    pub of: u64,
}

/// What a purge may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purge {
    /// How many records to remove, at most.
    pub limit: u32,
    /// The last purge must have been no longer ago than this, by the store's clock. Else that clock went further than the
    /// caller's, and nothing is removed.
    pub within: Duration,
}

impl Purge {
    /// Whatever the clock says.
    #[must_use]
    pub fn at_any_time(limit: u32) -> Self {
        Self { limit, within: Duration::MAX }
    }
}

/// What one purge removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Purged {
    /// So many records, each with its answer and its links.
    pub records: u32,
    /// There may be more to remove.
    pub more: bool,
    /// Nothing was removed and nothing noted, because the last purge is longer ago than it may be.
    pub refused: bool,
}

/// Which answers to look for: those of records whose `guard_until` lies between `late - back` and `late` from now.
///
/// Where an operation refuses for `late` after its replay window, those are the ones whose window ended within the
/// last `back`. So one index, that of `guard_until`, serves both purposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strip {
    /// How much longer than its replay window a record is kept.
    pub late: Duration,
    /// How long ago this was last done.
    pub back: Duration,
    /// Goes on where an earlier call stopped.
    pub after: Option<Mark>,
    /// How many records to look at, at most.
    pub limit: u32,
}

/// What one [`strip`](super::Store::strip) did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stripped {
    /// So many answers were dropped.
    pub answers: u32,
    /// Where to go on; `None` at the end.
    pub next: Option<Mark>,
}

/// A place in the order of `guard_until` and record. Only the store that made it reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The record's `guard_until`, in the store's own unit.
    pub guard_until: i64,
    /// The record.
    pub record: RecordId,
}

impl Row {
    /// It may be removed: nobody runs it, nobody doubts it, and its windows are over for a while.
    pub(super) fn is_over(&self, now: Millis) -> bool {
        state::may_remove(&Facts { guard_over: self.guard_until.plus(GRACE) < now, ..self.facts(now) })
    }

    /// Its answer is not due any more.
    pub(super) fn is_bare(&self, now: Millis) -> bool {
        state::may_strip(&self.facts(now))
    }
}
