//! All leases of a process, and what dropped ones left behind.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

use super::{Held, left::Left};
use crate::store::Attempt;

/// While the store is down, every claim leaves one of these. More are not kept: at worst, a claim that was granted
/// without our knowing is then in doubt although its body never ran.
const MAX_LEFT: usize = 10_000;

/// All leases of this process.
pub(crate) struct Leases {
    pub(super) length: Duration,
    pub(super) somebody_left: Notify,
    /// Shutdown's time is up.
    pub(super) given_up: AtomicBool,
    held: Mutex<HashMap<Attempt, Arc<Held>>>,
    left: Mutex<Vec<Left>>,
}

impl Leases {
    pub(crate) fn new(length: Duration) -> Self {
        let (held, left, somebody_left, given_up) = Default::default();
        Self { length, somebody_left, given_up, held, left }
    }

    /// Shutdown's time is up, and what it found has been settled. A claim that is granted now must not start.
    pub(crate) fn are_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    pub(super) fn held(&self) -> MutexGuard<'_, HashMap<Attempt, Arc<Held>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are held; each is one body, whatever its age.
    pub(crate) fn count(&self) -> usize {
        self.held().len()
    }

    pub(super) fn hold(&self, held: Arc<Held>) {
        self.held().insert(held.attempt, held);
    }

    pub(super) fn let_go(&self, held: &Held) {
        self.held().remove(&held.attempt);
    }

    pub(super) fn left(&self) -> MutexGuard<'_, Vec<Left>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn leave(&self, left: Left) {
        let mut waiting = self.left();
        if waiting.len() < MAX_LEFT {
            waiting.push(left);
        }
        drop(waiting);
        self.somebody_left.notify_one();
    }

    /// Without a wake-up, which would make the loop a busy one.
    pub(super) fn leave_again(&self, mut again: Vec<Left>) {
        let mut waiting = self.left();
        again.append(&mut waiting);
        again.truncate(MAX_LEFT);
        *waiting = again;
    }
}
