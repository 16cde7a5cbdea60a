//! The purge: one task per process removes what is over, in small batches. Any number of processes may do so at once.

mod trust;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use self::trust::{Refusal, Trust, Verdict};
use crate::{
    Runtime, observe,
    runtime::Config,
    store::{Mark, Purge, Store, StoreError, Strip},
};

/// So many records at once: a batch takes a processor for some milliseconds, and on SQLite the write lock, and so much later is who
/// comes meanwhile. Fewer after a failure: where answers are large, even that many may be too many for one statement's time.
const BATCH: u32 = 250;

/// Between two passes of a purge of much.
const PAUSE: Duration = Duration::from_millis(100);

/// After a batch it is as long as that took, within these bounds: so a purge leaves room for the rest, and on SQLite,
/// where a batch holds the write lock, other processes find it free.
const AFTER_A_BATCH: (Duration, Duration) = (Duration::from_millis(20), PAUSE);

/// The word for a pass that the store failed.
const FAILED: &str = "failed";

/// Why a pass removed nothing, in a word each.
pub(crate) const REASONS: [&str; 3] = [trust::CLOCK_JUMPED, trust::TOO_MUCH, FAILED];

/// Looks a little further back than the last time, for clocks do not go alike.
const SLACK: Duration = Duration::from_secs(60);

impl Runtime {
    /// Says that the store's clock is right, after a WARN said that records are not removed because it may not be. The
    /// purge then goes on at once; it also ends the refusal of other processes on the same store, at their next look.
    /// Without a refusal it does nothing, except that the next look is trusted.
    ///
    /// Look first: compare the database's clock (`select now()`) with another machine's, and
    /// [`purge_every`](crate::Builder::purge_every) says when it is refused. After a clock that was wrong has been set right
    /// there is nothing to confirm.
    pub fn confirm_purge(&self) {
        self.purge_confirmed().notify_one();
    }
}

/// The task.
pub(crate) struct Purger {
    store: Arc<dyn Store>,
    every: Duration,
    store_timeout: Duration,
    /// By how much operations refuse longer than they replay, where they do.
    lates: Vec<Duration>,
    confirmed: Arc<Notify>,
    trust: Trust,
    /// An operator has said that the clock is right, and no look has been trusted with that yet.
    is_confirmed: bool,
    batch: u32,
    /// When all answers that were over had been dropped.
    stripped: Option<Instant>,
}

/// What one pass did.
#[derive(Debug, Default)]
struct Pass {
    records: u64,
    answers: u64,
    /// It stopped before the end, so that the clock is looked at again.
    more: bool,
}

impl Purger {
    pub(crate) fn new(store: Arc<dyn Store>, config: &Config, confirmed: Arc<Notify>) -> Self {
        let mut lates: Vec<Duration> = config.served().map(|operation| config.rules(operation).late()).collect();
        lates.retain(|late| !late.is_zero());
        lates.sort_unstable();
        lates.dedup();
        let (every, store_timeout) = (config.purge_every, config.store_timeout);
        let (trust, batch) = (Trust::default(), BATCH);
        Self { store, every, store_timeout, lates, confirmed, trust, is_confirmed: false, batch, stripped: None }
    }

    /// Runs until one of the two is cancelled; a batch that is under way is dropped then, which every store can take.
    pub(crate) async fn run(mut self, draining: CancellationToken, stop: CancellationToken) {
        tokio::select! {
            () = draining.cancelled() => {}
            () = stop.cancelled() => {}
            () = self.purge_for_ever() => {}
        }
    }

    async fn purge_for_ever(&mut self) {
        if self.every.is_zero() {
            return;
        }
        let mut wait = self.every;
        loop {
            // Processes that were started together come one after the other.
            tokio::select! {
                () = self.confirmed.notified() => self.is_confirmed = true,
                () = sleep(wait.mul_f32(0.5 + fastrand::f32())) => {}
            }
            let start = Instant::now();
            // A store that panics costs one pass, not the task.
            let pass = AssertUnwindSafe(self.pass(start)).catch_unwind().await;
            let more = matches!(&pass, Ok(Ok(Some(pass))) if pass.more);
            if !matches!(pass, Ok(Ok(_))) {
                observe::purge_refused(FAILED);
            }
            match pass {
                Ok(Ok(pass)) => pass.iter().for_each(|pass| report(pass, start.elapsed())),
                Ok(Err(error)) => {
                    tracing::warn!(target: "idem::purge", error = &error as &dyn std::error::Error, "records that are over not removed, trying again");
                }
                Err(_) => {
                    tracing::warn!(target: "idem::purge", "the store panicked; records that are over not removed, trying again");
                }
            }
            wait = if more { self.every.min(PAUSE) } else { self.every };
        }
    }

    /// Until nothing is left to remove, but no longer than until the next look at the clock is due. `None` if refused.
    async fn pass(&mut self, start: Instant) -> Result<Option<Pass>, StoreError> {
        let due = self.ask(self.store.due()).await?;
        match self.trust.look(&due, start, self.is_confirmed) {
            Verdict::Trusted => self.is_confirmed = false,
            Verdict::Refused { refusal, tell: due } => {
                observe::purge_refused(refusal.reason());
                if due {
                    tell(&refusal);
                }
                return Ok(None);
            }
        }
        // At its first look a process knows only by the last purge how far others came. After a long pause it begins with
        // what ends from now on: the rest goes with its records.
        let before = if due.since_purge <= trust::JUMP { due.since_purge } else { Duration::ZERO };
        let stripped = *self.stripped.get_or_insert(start.checked_sub(before).unwrap_or(start));
        let until = start + self.every.max(PAUSE);
        let mut pass = Pass::default();
        loop {
            let sent = Instant::now();
            let purge = Purge { limit: self.batch, within: self.trust.within(sent) };
            let purged =
                self.ask(self.store.purge(&purge)).await.inspect_err(|_| self.batch = (purge.limit / 2).max(1))?;
            if purged.refused {
                return Ok(Some(pass)); // the clock jumped since the look: drop no answers by it either; the next look says why
            }
            self.batch = purge.limit.saturating_mul(2).min(BATCH);
            self.trust.purged(sent);
            pass.records += u64::from(purged.records);
            if !purged.more {
                break;
            }
            if Instant::now() >= until {
                pass.more = true;
                return Ok(Some(pass));
            }
            sleep(sent.elapsed().clamp(AFTER_A_BATCH.0, AFTER_A_BATCH.1)).await;
        }
        let back = start.saturating_duration_since(stripped) + SLACK;
        pass.more = !self.strip(back, until, &mut pass).await?;
        if !pass.more {
            self.stripped = Some(start);
        }
        Ok(Some(pass))
    }

    /// Drops answers that are not due any more of records that still refuse; `false` if it stopped before the end.
    async fn strip(&self, back: Duration, until: Instant, pass: &mut Pass) -> Result<bool, StoreError> {
        for late in &self.lates {
            let mut after: Option<Mark> = None;
            loop {
                let (sent, strip) = (Instant::now(), Strip { late: *late, back, after, limit: BATCH });
                let stripped = self.ask(self.store.strip(&strip)).await?;
                pass.answers += u64::from(stripped.answers);
                after = stripped.next;
                if after.is_none() {
                    break;
                }
                if Instant::now() >= until {
                    return Ok(false);
                }
                sleep(sent.elapsed().clamp(AFTER_A_BATCH.0, AFTER_A_BATCH.1)).await;
            }
        }
        Ok(true)
    }

    async fn ask<T>(&self, verb: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        match timeout(self.store_timeout, verb).await {
            Ok(answer) => answer,
            Err(elapsed) => Err(StoreError::unavailable(elapsed)),
        }
    }
}

/// The one place that says what a pass did.
fn report(pass: &Pass, took: Duration) {
    let Pass { records, answers, more } = pass;
    let millis = took.as_millis();
    observe::purged(*records, *answers, took);
    if *records == 0 && *answers == 0 {
        tracing::trace!(target: "idem::purge", millis, "nothing to remove");
    } else {
        tracing::debug!(target: "idem::purge", records, answers, more, millis, "removed what was over");
    }
}

/// Once per refusal, and hourly while it stands.
fn tell(refusal: &Refusal) {
    const WHAT_TO_DO: &str = "compare the database's clock with another machine's: if it is wrong, set it right; if it is right, call `Runtime::confirm_purge`";
    match refusal {
        Refusal::Jumped(ahead) => {
            tracing::warn!(target: "idem::purge", ahead_seconds = ahead.as_secs(), "no records are removed: the store's clock went further than this process's since the last look; {WHAT_TO_DO}");
        }
        Refusal::TooMuch { since_purge, records, of } => {
            tracing::warn!(target: "idem::purge", since_purge_seconds = since_purge.as_secs(), records, of, "no records are removed: the last purge is long ago by the store's clock, and much would go at once; {WHAT_TO_DO}");
        }
    }
}

#[cfg(test)]
mod tests;
