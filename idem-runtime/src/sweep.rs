//! Looks for doubts that nobody meets: a key whose process has died is met by its retry, or by nobody.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    observe::Observer,
    store::{Doubts, Store},
};

/// A look takes at most this part of the time.
const SHARE: u32 = 10;

pub(crate) struct Sweeper {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) every: Duration,
    pub(crate) store_timeout: Duration,
    pub(crate) observer: Arc<Observer>,
    pub(crate) stop: CancellationToken,
}

impl Sweeper {
    /// Runs until `stop`.
    pub(crate) async fn run(self) {
        let (mut known, mut failing, mut pause) = (HashMap::new(), false, self.every);
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = sleep(pause.mul_f32(0.75 + fastrand::f32() / 2.0)) => {}
            }
            let asked = Instant::now();
            // A store that panics costs one look, not the sweeper.
            let looking = AssertUnwindSafe(timeout(self.store_timeout, self.store.survey())).catch_unwind();
            let behind = match looking.await {
                Ok(Ok(Ok(survey))) => {
                    failing = false;
                    self.observer.doubts(&survey.doubts);
                    known = tell(&known, &survey.doubts);
                    survey.behind
                }
                failed => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(target: "idem::sweep", ?failed, "could not look for operations in doubt, trying again");
                    }
                    false
                }
            };
            pause = if behind { Duration::ZERO } else { self.every.max(asked.elapsed() * SHARE) };
        }
    }
}

/// Says what is new since the last look; gives what to compare the next one with.
fn tell(known: &HashMap<String, u64>, doubts: &[Doubts]) -> HashMap<String, u64> {
    for Doubts { op, count, oldest } in doubts {
        if *count > known.get(op).copied().unwrap_or(0) {
            let oldest = oldest.as_secs();
            tracing::warn!(target: "idem::sweep", op, count, oldest_seconds = oldest, "operations are in doubt: whether they took effect is not known; they wait for `Runtime::resolve`");
        }
    }
    for (op, count) in known {
        if !doubts.iter().any(|doubts| doubts.op == *op) {
            tracing::info!(target: "idem::sweep", op, count, "no operation is in doubt any more");
        }
    }
    doubts.iter().map(|doubts| (doubts.op.clone(), doubts.count)).collect()
}
