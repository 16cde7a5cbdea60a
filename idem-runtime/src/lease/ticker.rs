//! The one task that renews leases and writes down what dropped leases left behind.

use std::sync::{Arc, atomic::Ordering};

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{Held, Leases, RETRY, Stage};
use crate::{
    state::Reason,
    store::{Finish, Finished, Outcome, Renewal, Renewed, Store},
};

pub(crate) struct Ticker {
    pub(crate) leases: Arc<Leases>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) stop: CancellationToken,
}

/// What happened to the bodies that were still there when the time for shutdown was up.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct GivenUp {
    pub(crate) in_doubt: usize,
    pub(crate) released: usize,
}

impl Ticker {
    /// Runs until `stop`. Six ticks a lease, so that a body older than a third of its lease is renewed in good time
    /// and a shorter one never is.
    pub(crate) async fn run(self) {
        let every = self.leases.length / 6;
        loop {
            // While the store is down they come by the hundreds: one attempt a second is enough for all of them.
            let backlog = !self.leases.left().is_empty();
            let stopped = tokio::select! {
                () = self.stop.cancelled() => true,
                () = self.leases.somebody_left.notified(), if !backlog => false,
                () = tokio::time::sleep(if backlog { every.min(RETRY.1) } else { every }) => false,
            };
            if stopped {
                return self.write_what_was_left().await;
            }
            // At once: a store that is slow to take outcomes must not cost the others their leases.
            tokio::join!(self.write_what_was_left(), self.renew());
        }
    }

    async fn write_what_was_left(&self) {
        let left = std::mem::take(&mut *self.leases.left());
        if left.is_empty() {
            return;
        }
        let finishes: Vec<Finish> = left.iter().map(|left| left.finish.clone()).collect();
        let finished = match timeout(self.leases.length / 3, self.store.finish(&finishes)).await {
            Ok(Ok(finished)) => finished,
            failed => {
                tracing::warn!(target: "idem::engine", ?failed, count = left.len(), "dropped leases not written yet, trying again");
                Vec::new()
            }
        };
        let now = Instant::now();
        let mut finished = finished.into_iter();
        let again = left.into_iter().filter_map(|mut left| {
            let settled = match finished.next() {
                Some(Finished::Stored { .. }) => true,
                // A claim that was under way when its reply was lost shows up within a lease, or never.
                Some(Finished::Lost) if left.may_not_be_there_yet => {
                    *left.missing_since.get_or_insert(now) + self.leases.length <= now
                }
                Some(Finished::Lost) => true,
                None => false,
            };
            (!settled && now < left.until).then_some(left)
        });
        // Not through `leave`, whose wake-up would make this a busy loop.
        self.leases.left().extend(again);
    }

    async fn renew(&self) {
        let due = self.due();
        if due.is_empty() {
            return;
        }
        let renewals: Vec<Renewal> =
            due.iter().map(|held| Renewal { record: held.record, attempt: held.attempt }).collect();
        let sent = Instant::now();
        let length = self.leases.length;
        match timeout(length / 3, self.store.renew(&renewals, length)).await {
            Ok(Ok(renewed)) => {
                for (held, renewed) in due.iter().zip(renewed) {
                    match renewed {
                        Renewed::Held => held.progress().renewed = sent,
                        Renewed::Busy => {}
                        Renewed::Lost => held.cancelled.cancel(),
                    }
                }
            }
            failed => {
                tracing::warn!(target: "idem::engine", ?failed, count = due.len(), "leases not renewed, trying again");
            }
        }
        for held in due.iter().filter(|held| held.progress().renewed + length <= Instant::now()) {
            held.cancelled.cancel();
        }
    }

    fn due(&self) -> Vec<Arc<Held>> {
        let third = self.leases.length / 3;
        let due = |held: &&Arc<Held>| {
            let progress = held.progress();
            matches!(progress.stage, Stage::Owned | Stage::Running) && progress.renewed.elapsed() >= third
        };
        self.leases.held().values().filter(due).cloned().collect()
    }
}

impl Leases {
    /// Shutdown's time is up. What had not started is released; what had is in doubt at once, without waiting for
    /// its lease. A body that ends after all may still store its outcome.
    pub(crate) async fn give_up(&self, store: &dyn Store) -> GivenUp {
        self.given_up.store(true, Ordering::Release); // before the look: what is held later sees it
        let (mut given_up, mut finishes) = (GivenUp::default(), Vec::new());
        for held in self.held().values() {
            let mut progress = held.progress();
            let outcome = match progress.stage {
                Stage::Running | Stage::Finishing => Outcome::InDoubt(Reason::Shutdown),
                Stage::Owned => {
                    progress.stage = Stage::Over; // it must not start any more
                    Outcome::Released(Reason::Shutdown)
                }
                Stage::Claiming | Stage::Over => continue,
            };
            drop(progress);
            match outcome {
                Outcome::Released(_) => given_up.released += 1,
                _ => given_up.in_doubt += 1,
            }
            held.cancelled.cancel();
            finishes.push(held.finish(outcome));
        }
        if !finishes.is_empty()
            && let Err(error) = store.finish(&finishes).await
        {
            tracing::error!(target: "idem::engine", error = &error as &dyn std::error::Error, count = finishes.len(), "bodies still running at shutdown could not be marked; their leases will end");
        }
        given_up
    }
}
