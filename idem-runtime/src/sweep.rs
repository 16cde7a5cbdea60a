//! Looks for doubts that nobody meets: a key whose process has died is met by its retry, or by nobody. Where there is a
//! recovery hook, it is asked about them; and what was interrupted goes on.

mod slots;

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

pub(crate) use self::slots::{Slots, Work};
use crate::{
    key::RecordId,
    observe::Observer,
    recovery::Recoveries,
    resume::Completions,
    store::{Doubts, Store},
};

/// A look takes at most this part of the time.
const SHARE: u32 = 10;

pub(crate) struct Sweeper {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) every: Duration,
    pub(crate) store_timeout: Duration,
    pub(crate) observer: Arc<Observer>,
    pub(crate) recoveries: Arc<Recoveries>,
    pub(crate) completions: Option<Arc<Completions>>,
    pub(crate) stop: CancellationToken,
}

impl Sweeper {
    /// Runs until `stop`.
    pub(crate) async fn run(self) {
        let (mut known, mut failing, mut pause) = (Known::new(), false, self.every);
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
                    known = tell(&known, &survey.doubts, &self.recoveries);
                    self.recoveries.look(&survey.doubts).await;
                    if let Some(completions) = &self.completions {
                        completions.look().await;
                    }
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

/// Per operation, how many there were and which was the oldest.
type Known = HashMap<String, (u64, RecordId)>;

/// Says what is new since the last look: more of them, or another that is the oldest, since the one before was settled.
/// Gives what to compare the next look with.
fn tell(known: &Known, doubts: &[Doubts], recoveries: &Recoveries) -> Known {
    for Doubts { op, count, oldest, record } in doubts {
        let is_old = known.get(op).is_some_and(|(before, same)| count <= before && record == same);
        if !is_old {
            let oldest = oldest.as_secs();
            if recoveries.has_hook(op) {
                tracing::info!(target: "idem::sweep", op, count, oldest_seconds = oldest, %record, "operations are in doubt: whether they took effect is not known; their recovery hook is asked");
                continue;
            }
            tracing::warn!(target: "idem::sweep", op, count, oldest_seconds = oldest, %record, "operations are in doubt: whether they took effect is not known; they wait for `Runtime::resolve`");
        }
    }
    for (op, (count, _)) in known {
        if !doubts.iter().any(|doubts| doubts.op == *op) {
            tracing::info!(target: "idem::sweep", op, count, "no operation is in doubt any more");
        }
    }
    doubts.iter().map(|doubts| (doubts.op.clone(), (doubts.count, doubts.record))).collect()
}
