//! What the completer asks of a store, and what becomes of a row by it.

use std::{fmt, time::Duration};

use bytes::Bytes;

use super::{
    Record,
    row::{Millis, Row},
};
use crate::state::{self, Event, Facts, State};

/// A search for operations that were interrupted, and that nobody goes on with.
#[derive(Debug, Clone)]
pub struct Resume {
    /// Of these operations.
    pub ops: Vec<&'static str>,
    /// How long nobody else gets what this search finds.
    pub lease: Duration,
    /// How much longer than its lease a silent owner is left alone. One that has reported is not waited for.
    pub grace: Duration,
    /// At most so many records.
    pub limit: u32,
}

/// An operation that whoever asked may now go on with: by a claim, as any retry does. Its `Debug` leaves the input out.
#[derive(Clone)]
pub struct Resuming {
    /// The record, with its links. It is left as it was.
    pub record: Record,
    /// What the claim of its current epoch has kept last.
    pub input: Bytes,
}

impl fmt::Debug for Resuming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resuming").field("record", &self.record).finish_non_exhaustive()
    }
}

impl Resume {
    /// How long after the end of its last run an operation is gone on with: 1 s, 2 s, 4 s … up to 5 min, by the runs so far.
    #[must_use]
    pub fn back_off(attempts: u32) -> Duration {
        let doubled = 1_u64 << attempts.saturating_sub(1).min(9);
        Duration::from_secs(doubled.min(300))
    }
}

impl Row {
    /// What the completer makes of this row; `None` if it may not go on with it (now).
    pub(super) fn resuming(&self, resume: &Resume, now: Millis) -> Option<Self> {
        if now < self.recover_at || now < self.lease_until.plus(Resume::back_off(self.attempts)) {
            return None;
        }
        let grace = if self.state == State::InFlight { resume.grace } else { Duration::ZERO };
        let lease_over = self.lease_until.plus(grace) <= now;
        let retry = Facts { same_payload: true, lease_over, ..self.facts(now) };
        let goes_on = matches!(self.state, State::InFlight | State::Resumable);
        let may = goes_on && state::next(&retry, Event::Claim { rerun: true }).is_some();
        may.then(|| Self { recover_at: now.plus(resume.lease), ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clause_25_an_operation_that_fails_again_and_again_is_tried_less_often() {
        let seconds: Vec<u64> = (1..=11).map(|attempts| Resume::back_off(attempts).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(Resume::back_off(u32::MAX).as_secs(), 300);
        assert_eq!(Resume::back_off(0).as_secs(), 1);
    }
}
