//! The one task that renews leases; `left` is its other half.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{Held, Leases, Stage};
use crate::{
    outcome::Body,
    state::Reason,
    store::{Outcome, Renewal, Renewed, Store},
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
    /// Runs until `stop`: one loop for renewals, one for what was left, so that a store which is slow to take the one
    /// does not cost the other.
    pub(crate) async fn run(self) {
        tokio::join!(self.renew_leases(), self.write_what_is_left());
    }

    /// Six ticks a lease, so that a body older than a third of its lease is renewed in good time and a shorter one
    /// never is.
    async fn renew_leases(&self) {
        let every = self.leases.length / 6;
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(every) => self.renew().await,
            }
        }
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
        // A store that panics costs one tick, not the ticker.
        let renewing = AssertUnwindSafe(timeout(length / 3, self.store.renew(&renewals, length))).catch_unwind();
        match renewing.await {
            Ok(Ok(Ok(renewed))) => {
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
    pub(crate) async fn give_up(&self, store: &dyn Store, limit: Duration) -> GivenUp {
        self.given_up.store(true, Ordering::Release); // before the look: what is held later sees it
        let (mut given_up, mut finishes) = (GivenUp::default(), Vec::new());
        for held in self.held().values() {
            let mut progress = held.progress();
            let (outcome, body) = match progress.stage {
                Stage::Running | Stage::Finishing => (Outcome::InDoubt(Reason::Shutdown), Body::StillRuns),
                Stage::Owned => {
                    progress.stage = Stage::Over; // it must not start any more
                    (Outcome::Released(Reason::Shutdown), Body::Ended)
                }
                Stage::Claiming | Stage::Over => continue,
            };
            drop(progress);
            match outcome {
                Outcome::Released(_) => given_up.released += 1,
                _ => given_up.in_doubt += 1,
            }
            held.cancelled.cancel();
            finishes.push(held.finish(outcome, body));
        }
        if !finishes.is_empty() {
            match timeout(limit, store.finish(&finishes)).await {
                Ok(Ok(_)) => {}
                failed => {
                    tracing::error!(target: "idem::engine", ?failed, count = finishes.len(), "bodies still running at shutdown could not be marked; their leases will end");
                }
            }
        }
        given_up
    }
}
