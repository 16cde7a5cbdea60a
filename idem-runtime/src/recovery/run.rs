//! Asks the hooks. Each process asks about what it could take; what it takes, nobody else has meanwhile.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::time::{Instant, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Hook, InDoubt, Recovery,
    known::Known,
    pause::{BACK_OFF, TRIES, longest_pause, pause},
};
use crate::{
    execution::is_link,
    key::RecordId,
    observe::{Observer, Recovered},
    operation::{Kind, Operation},
    runtime::Config,
    state::Reason,
    store::{
        Audit, Doubts, Link, PutOff, Record, Recover, Recovering, Resolution, Resolve, Store, StoreError,
        StoredResponse,
    },
    sweep::{Slots, Work},
    wait::Waiters,
};

/// Longer than anything has been silent.
const FOREVER: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

/// How long a hook may take.
const LIMIT: Duration = Duration::from_secs(30);
/// How much longer than its lease an owner is left alone that has not reported: it may be a little late.
const GRACE: Duration = Duration::from_secs(5);

/// All that recovers in one process.
pub(crate) struct Recoveries {
    hooks: HashMap<&'static str, Hooked>,
    slots: Slots,
    store: Arc<dyn Store>,
    store_timeout: Duration,
    quarantine: Duration,
    known: Known,
    waiters: Arc<Waiters>,
    observer: Arc<Observer>,
    draining: CancellationToken,
    stop: CancellationToken,
}

struct Hooked {
    hook: Hook,
    operation: &'static Operation,
    /// For how long it may be run again, if the hook says so.
    rerun: Duration,
}

/// The rooms of a runtime that it needs.
#[derive(Clone)]
pub(crate) struct Rooms {
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) observer: Arc<Observer>,
    pub(crate) tasks: TaskTracker,
    pub(crate) draining: CancellationToken,
    pub(crate) stop: CancellationToken,
}

impl Recoveries {
    pub(crate) fn new(store: Arc<dyn Store>, config: &Config, rooms: Rooms) -> Arc<Self> {
        let hook = |operation: &'static Operation| {
            let (_, hook) = config.hooks.iter().find(|(op, _)| op == operation.op)?;
            let rerun = config.rerun_window(operation);
            Some((operation.op, Hooked { hook: Arc::clone(hook), operation, rerun }))
        };
        let Rooms { waiters, observer, tasks, draining, stop } = rooms;
        let hooks: HashMap<_, _> = config.served().filter_map(hook).collect();
        Arc::new(Self {
            slots: Slots::new(hooks.keys().copied(), tasks),
            hooks,
            store,
            store_timeout: config.store_timeout,
            quarantine: config.quarantine,
            known: Known::new(longest_pause(config.quarantine)),
            waiters,
            observer,
            draining,
            stop,
        })
    }

    pub(crate) fn has_hook(&self, op: &str) -> bool {
        self.hooks.contains_key(op)
    }

    /// Takes what may be tried now, and asks about each on a task of its own. Where nothing is in doubt, the store is not
    /// asked.
    pub(crate) async fn look(self: &Arc<Self>, doubts: &[Doubts]) {
        let doubtful = |op: &str| doubts.iter().any(|doubts| doubts.op == op);
        self.known.keep_of(doubtful);
        for op in self.hooks.keys().filter(|op| doubtful(op)) {
            if !self.slots.fill(op, self).await {
                return;
            }
        }
    }

    /// `known_for`: how long this process has known of it.
    async fn recover(&self, recovering: Recovering, known_for: Duration) {
        let Some(Hooked { hook, operation, .. }) = self.hooks.get(recovering.record.op.as_str()) else { return };
        let doubt = InDoubt::new(&recovering);
        let asking = AssertUnwindSafe(timeout(LIMIT, async move { hook(doubt).await })).catch_unwind();
        let said = tokio::select! {
            biased;
            () = self.draining.cancelled() => return,
            () = self.stop.cancelled() => return,
            said = asking => said,
        };
        let (op, record) = (operation.op, recovering.record.id);
        let recovery = match said {
            Ok(Ok(recovery)) => Some(recovery),
            Ok(Err(_)) => {
                tracing::warn!(target: "idem::recovery", op, %record, "a recovery hook took longer than 30 s; asking again later");
                None
            }
            Err(_) => {
                tracing::warn!(target: "idem::recovery", op, %record, "a recovery hook panicked; asking again later");
                None
            }
        };
        // A store that panics costs one try, not the count.
        let writing = AssertUnwindSafe(self.write(&recovering, operation, known_for, recovery)).catch_unwind();
        let recovered = match writing.await {
            Ok(Ok(recovered)) => recovered,
            failed => {
                tracing::warn!(target: "idem::recovery", op, %record, ?failed, "what a recovery hook found out could not be stored; asking again later");
                Recovered::Failed
            }
        };
        if matches!(recovered, Recovered::Completed | Recovered::NotApplied | Recovered::Resumed | Recovered::Lost) {
            self.known.forget(record);
        }
        self.waiters.wake(record);
        self.observer.recovered(op, recovered);
    }

    /// Writes down what the hook said; `None` if it said nothing.
    async fn write(
        &self,
        recovering: &Recovering,
        operation: &'static Operation,
        known_for: Duration,
        recovery: Option<Recovery>,
    ) -> Result<Recovered, StoreError> {
        let (record, op, id) = (&recovering.record, operation.op, recovering.record.id);
        match recovery {
            Some(Recovery::Completed(response, links)) if fits(operation, &response, &links) => {
                self.link(record, links).await?;
                let settled = self.resolve(record, operation, known_for, Resolution::Complete(response)).await?;
                if settled {
                    tracing::info!(target: "idem::recovery", op, record = %id, "a recovery hook found out that it happened; retries get its answer");
                }
                Ok(if settled { Recovered::Completed } else { Recovered::Lost })
            }
            Some(Recovery::Completed(..)) => {
                tracing::error!(target: "idem::recovery", op, record = %id, "what a recovery hook answered does not fit its operation: a handler's is made by `StoredResponse::http`, a function's by `StoredResponse::value`, and links are 1 to 512 bytes without NUL");
                let by = self.pause_after(recovering, None);
                self.put_off(recovering, by).await.map(|theirs| theirs.unwrap_or(Recovered::Failed))
            }
            Some(Recovery::NotApplied) if self.has_acted(id).await? => {
                tracing::error!(target: "idem::recovery", op, record = %id, "a recovery hook says that nothing happened, but a step of the operation has a result");
                let by = self.pause_after(recovering, None);
                self.put_off(recovering, by).await.map(|theirs| theirs.unwrap_or(Recovered::Failed))
            }
            Some(Recovery::NotApplied) => {
                if self.resolve(record, operation, known_for, Resolution::Release).await? {
                    tracing::info!(target: "idem::recovery", op, record = %id, "a recovery hook found out that nothing happened; the key is free");
                    return Ok(Recovered::NotApplied);
                }
                // Asked at the latest when its "nothing happened" will count.
                let left = self.quarantine_of(operation).saturating_sub(record.silent_for.min(known_for));
                let by = self.pause_after(recovering, None).min(left.max(BACK_OFF.0));
                self.put_off(recovering, by).await.map(|theirs| theirs.unwrap_or(Recovered::Quarantined))
            }
            Some(Recovery::Resume) => {
                if !self.rerun(operation).is_zero()
                    && self.resolve(record, operation, known_for, Resolution::Resume).await?
                {
                    tracing::info!(target: "idem::recovery", op, record = %id, "a recovery hook lets it be run again");
                    return Ok(Recovered::Resumed);
                }
                tracing::error!(target: "idem::recovery", op, record = %id, "a recovery hook wants it to be run again, but it began as an operation that never is (`in_doubt = rerun_deduped`)");
                let by = self.pause_after(recovering, None);
                self.put_off(recovering, by).await.map(|theirs| theirs.unwrap_or(Recovered::Failed))
            }
            Some(Recovery::StillUnknown { retry_in }) => {
                let by = self.pause_after(recovering, retry_in);
                self.put_off(recovering, by).await.map(|theirs| theirs.unwrap_or(Recovered::StillUnknown))
            }
            None => {
                let by = self.pause_after(recovering, None);
                self.put_off(recovering, by).await.map(|theirs| theirs.unwrap_or(Recovered::Failed))
            }
        }
    }

    /// A step of it has a result, so something has happened. The record is ours, so no other is recorded meanwhile.
    async fn has_acted(&self, record: RecordId) -> Result<bool, StoreError> {
        if !self.store.keeps_steps() {
            return Ok(false);
        }
        let steps = self.ask(self.store.steps(record)).await?;
        Ok(steps.iter().any(|step| step.result.is_some()))
    }

    async fn link(&self, record: &Record, links: Vec<(String, String)>) -> Result<(), StoreError> {
        let link =
            |(provider, id)| Link { record: record.id, epoch: record.epoch, attempt: record.attempt, provider, id };
        let links: Vec<Link> = links.into_iter().map(link).collect();
        if links.is_empty() { Ok(()) } else { self.ask(self.store.link(&links)).await }
    }

    async fn resolve(
        &self,
        record: &Record,
        operation: &'static Operation,
        known_for: Duration,
        to: Resolution,
    ) -> Result<bool, StoreError> {
        let mut quarantine = self.quarantine_of(operation);
        if matches!(to, Resolution::Release) && record.silent_for.min(known_for) < quarantine {
            // The hook looked while the first run could still act; what it did not find may have come since. And where only
            // the store's clock says that it could not, that clock may have jumped. Only what has ended by its own report
            // may go.
            quarantine = FOREVER;
        }
        let why = match to {
            Resolution::Release => "it found out that nothing happened",
            Resolution::Resume => "it is to be run again",
            _ => "it found out that it happened",
        };
        let rerun = self.rerun(operation);
        let by = Audit { who: "recovery hook".to_owned(), why: why.to_owned() };
        let resolve =
            Resolve { record: record.id, seen: record.fence, to, quarantine, rerun, reason: Reason::Recovery, by };
        self.ask(self.store.resolve(&resolve)).await
    }

    /// Until the next try. `Some` if the record is not ours any more.
    async fn put_off(
        &self,
        Recovering { record, tries }: &Recovering,
        by: Duration,
    ) -> Result<Option<Recovered>, StoreError> {
        let put_off = PutOff { record: record.id, seen: record.fence, by };
        if !self.ask(self.store.put_off(&put_off)).await? {
            return Ok(Some(Recovered::Lost));
        }
        if *tries >= TRIES {
            tracing::warn!(target: "idem::recovery", op = record.op, record = %record.id, "a recovery hook does not find out what happened and is asked no more; the record waits for `Runtime::resolve`");
        }
        Ok(None)
    }

    fn pause_after(&self, Recovering { record, tries }: &Recovering, wish: Option<Duration>) -> Duration {
        let quarantine = self.hooks.get(record.op.as_str()).map(|hooked| self.quarantine_of(hooked.operation));
        pause(*tries, wish, quarantine.unwrap_or(self.quarantine))
    }

    fn quarantine_of(&self, operation: &Operation) -> Duration {
        self.quarantine.max(operation.timeout.unwrap_or_default())
    }

    fn rerun(&self, operation: &Operation) -> Duration {
        self.hooks.get(operation.op).map_or(Duration::ZERO, |hooked| hooked.rerun)
    }

    async fn ask<T>(&self, verb: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        match timeout(self.store_timeout, verb).await {
            Ok(answer) => answer,
            Err(elapsed) => Err(StoreError::unavailable(elapsed)),
        }
    }
}

impl Work for Recoveries {
    /// With how long this process has known of it.
    type Found = (Recovering, Duration);

    async fn give_out(&self, op: &'static str, limit: usize) -> Option<Vec<(Recovering, Duration)>> {
        if self.draining.is_cancelled() || self.stop.is_cancelled() {
            return None;
        }
        // Long enough for the hook, and for the store to be told what it says.
        let lease = LIMIT + self.store_timeout * 4;
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let recover = Recover { ops: vec![op], lease, grace: GRACE, tries: TRIES, limit };
        let asked = Instant::now();
        let asking = AssertUnwindSafe(timeout(self.store_timeout, self.store.recover(&recover))).catch_unwind();
        match asking.await {
            Ok(Ok(Ok(taken))) => Some(
                taken
                    .into_iter()
                    .map(|recovering| {
                        let known_for = self.known.note(&recovering, asked);
                        (recovering, known_for)
                    })
                    .collect(),
            ),
            failed => {
                tracing::warn!(target: "idem::recovery", ?failed, "could not take operations in doubt to recover them, trying again");
                None
            }
        }
    }

    async fn work_on(&self, (recovering, known_for): Self::Found) {
        self.recover(recovering, known_for).await;
    }
}

fn fits(operation: &Operation, response: &StoredResponse, links: &[(String, String)]) -> bool {
    let right_kind = response.status.is_some() == (operation.kind == Kind::Handler);
    right_kind && links.iter().all(|(provider, id)| is_link(provider, id))
}
