//! What a recovery asks of a store, and what becomes of a row by it.

use std::time::Duration;

use super::{
    Attempt, Fence, Record,
    row::{Millis, Row},
};
use crate::{
    key::RecordId,
    state::{self, Event, Facts, Reason, State},
};

/// A search for doubts that a hook may settle.
#[derive(Debug, Clone)]
pub struct Recover {
    /// Of these operations.
    pub ops: Vec<&'static str>,
    /// How long nobody else may try.
    pub lease: Duration,
    /// How much longer than its lease a silent owner is left alone. One that has reported is not waited for.
    pub grace: Duration,
    /// Whoever has been tried so often is left to operators.
    pub tries: u32,
    /// At most so many records.
    pub limit: u32,
}

/// A record that whoever asked may now try to settle: with [`resolve`](super::Store::resolve), or by putting it off.
#[derive(Debug, Clone)]
pub struct Recovering {
    /// The record, with its links, its new fence and an attempt that is nobody's.
    pub record: Record,
    /// How often it has been tried, this time included.
    pub tries: u32,
}

/// A try that did not settle anything.
#[derive(Debug, Clone, Copy)]
pub struct PutOff {
    /// Which record.
    pub record: RecordId,
    /// The fence that [`Recovering`] had.
    pub seen: Fence,
    /// Until the next try.
    pub by: Duration,
}

impl Row {
    /// What a recovery makes of this row, but for its new fence; `None` if it may not have it. The end of its lease
    /// stays: the quarantine counts from there, however often it is tried.
    pub(super) fn recovering(&self, recover: &Recover, now: Millis) -> Option<Self> {
        if self.tries >= recover.tries || now < self.recover_at {
            return None;
        }
        let grace = if self.state == State::InFlight { recover.grace } else { Duration::ZERO };
        let lease_over = self.lease_until.plus(grace) <= now;
        let state = state::next(&Facts { lease_over, ..self.facts(now) }, Event::Recover)?;
        Some(Self {
            state,
            reason: self.shown(now).1.or(Some(Reason::LeaseExpired)),
            attempt: Attempt::random(),
            tries: self.tries.saturating_add(1),
            recover_at: now.plus(recover.lease),
            ..self.clone()
        })
    }

    /// The same, to be tried later; `None` if it is somebody else's by now.
    pub(super) fn put_off(&self, put_off: &PutOff, now: Millis) -> Option<Self> {
        let mine = self.fence == put_off.seen && self.state == State::InDoubt;
        mine.then(|| Self { recover_at: now.plus(put_off.by), ..self.clone() })
    }
}
