//! Outcomes that leases could not store themselves, and the loop that stores them.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use tokio::time::{Instant, timeout};

use super::{RETRY, ticker::Ticker};
use crate::store::{Finish, Finished};

/// An outcome that a lease could not store itself.
pub(super) struct Left {
    pub(super) finish: Finish,
    /// When to stop trying.
    pub(super) until: Instant,
    /// The claim's reply was lost, so the claim may still be on its way: a finish that finds nothing is tried again.
    pub(super) may_not_be_there_yet: bool,
    /// When the store first said that there is nothing.
    pub(super) missing_since: Option<Instant>,
}

impl Left {
    pub(super) fn new(finish: Finish, patience: Duration) -> Self {
        Self { finish, until: Instant::now() + patience, may_not_be_there_yet: false, missing_since: None }
    }
}

/// So many in one call: a store that has just healed must not be held by one large transaction.
const AT_ONCE: usize = 500;

impl Ticker {
    pub(super) async fn write_what_is_left(&self) {
        loop {
            // While the store is down they come by the hundreds: one attempt a second is enough for all of them.
            let backlog = !self.leases.left().is_empty();
            let stopped = tokio::select! {
                () = self.stop.cancelled() => true,
                () = self.leases.somebody_left.notified(), if !backlog => false,
                () = tokio::time::sleep(RETRY.1), if backlog => false,
            };
            self.write_all().await;
            if stopped {
                return;
            }
        }
    }

    /// Until all are settled, or the store fails.
    async fn write_all(&self) {
        let mut left = std::mem::take(&mut *self.leases.left());
        let mut again = Vec::new();
        while !left.is_empty() {
            let some: Vec<Left> = left.drain(..left.len().min(AT_ONCE)).collect();
            match self.write(some).await {
                Ok(unsettled) => again.extend(unsettled),
                Err(some) => {
                    again.extend(some);
                    break;
                }
            }
        }
        again.append(&mut left);
        self.leases.leave_again(again);
    }

    /// What is to be tried again; all of it, as an error, if the store failed.
    async fn write(&self, some: Vec<Left>) -> Result<Vec<Left>, Vec<Left>> {
        let finishes: Vec<Finish> = some.iter().map(|left| left.finish.clone()).collect();
        // A store that panics costs one attempt, not what is left.
        let finishing = AssertUnwindSafe(timeout(self.leases.length / 3, self.store.finish(&finishes))).catch_unwind();
        let finished = match finishing.await {
            Ok(Ok(Ok(finished))) => finished,
            failed => {
                tracing::warn!(target: "idem::engine", ?failed, count = some.len(), "outcomes of dropped leases not stored yet, trying again");
                let now = Instant::now();
                return Err(some.into_iter().filter(|left| now < left.until).collect());
            }
        };
        let now = Instant::now();
        let again = some.into_iter().zip(finished).filter_map(|(mut left, finished)| match finished {
            // A claim that was under way when its reply was lost shows up within a lease, or never.
            Finished::Lost if left.may_not_be_there_yet => {
                let missing_since = *left.missing_since.get_or_insert(now);
                (now < missing_since + self.leases.length).then_some(left)
            }
            Finished::Stored { .. } | Finished::Lost => None,
        });
        Ok(again.collect())
    }
}
