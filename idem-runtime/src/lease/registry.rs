//! All leases of a process, and what dropped ones left behind.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::Held;
use crate::store::{Attempt, Finish};

/// An outcome that a dropped lease could not store itself.
pub(super) struct Left {
    pub(super) finish: Finish,
    /// When to stop trying.
    pub(super) until: Instant,
    /// The claim's reply was lost, so the claim may still be on its way: a finish that finds nothing is tried again.
    pub(super) may_not_be_there_yet: bool,
    /// When the store first said that there is nothing.
    pub(super) missing_since: Option<Instant>,
}

/// While the store is down, every claim leaves one of these. More are not kept: at worst, a claim that was granted
/// without our knowing is then in doubt although its body never ran.
const MAX_LEFT: usize = 10_000;

/// All leases of this process.
pub(crate) struct Leases {
    pub(super) length: Duration,
    pub(super) somebody_left: Notify,
    held: Mutex<HashMap<Attempt, Arc<Held>>>,
    left: Mutex<Vec<Left>>,
}

impl Leases {
    pub(crate) fn new(length: Duration) -> Self {
        Self { length, held: Mutex::default(), left: Mutex::default(), somebody_left: Notify::new() }
    }

    pub(super) fn held(&self) -> MutexGuard<'_, HashMap<Attempt, Arc<Held>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
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
        let urgent = !left.may_not_be_there_yet; // the others come by the hundreds, while the store is down
        let mut waiting = self.left();
        if waiting.len() < MAX_LEFT {
            waiting.push(left);
        }
        drop(waiting);
        if urgent {
            self.somebody_left.notify_one();
        }
    }
}
