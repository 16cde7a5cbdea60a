//! Asks the hooks. Each process asks about what it could take; what it takes, nobody else has meanwhile.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::time::{Instant, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Hook, InDoubt,
    known::Known,
    pause::{TRIES, longest_pause},
    write::Try,
};
use crate::{
    key::RecordId,
    observe::{Observer, Recovered},
    operation::Operation,
    runtime::Config,
    store::{Doubts, Recover, Recovering, Step, Store, StoreError},
    sweep::{Slots, Work},
    wait::Waiters,
};

/// How long a hook may take.
const LIMIT: Duration = Duration::from_secs(30);
/// How much longer than its lease an owner is left alone that has not reported: it may be a little late.
const GRACE: Duration = Duration::from_secs(5);

/// All that recovers in one process.
pub(crate) struct Recoveries {
    hooks: HashMap<&'static str, Hooked>,
    slots: Slots,
    pub(super) store: Arc<dyn Store>,
    store_timeout: Duration,
    quarantine: Duration,
    /// For how long providers know a step.
    pub(super) provider_window: Duration,
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
            provider_window: config.provider_window,
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
        let (op, record) = (operation.op, recovering.record.id);
        let steps = match self.steps(record).await {
            Ok(steps) => steps,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(target: "idem::recovery", op, %record, error, "recorded steps could not be read, so no recovery hook is asked; trying again later");
                return self.observer.recovered(op, Recovered::Failed);
            }
        };
        let doubt = InDoubt::new(&recovering, steps.clone());
        let asking = AssertUnwindSafe(timeout(LIMIT, async move { hook(doubt).await })).catch_unwind();
        let said = tokio::select! {
            biased;
            () = self.draining.cancelled() => return,
            () = self.stop.cancelled() => return,
            said = asking => said,
        };
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
        let writing = AssertUnwindSafe(
            self.write(Try { recovering: &recovering, operation, known_for, steps: &steps }, recovery),
        )
        .catch_unwind();
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

    /// What its runs have recorded, also those of a deploy whose operation had `Steps`. The record is ours, so nothing is recorded
    /// meanwhile.
    async fn steps(&self, record: RecordId) -> Result<Vec<Step>, StoreError> {
        if self.store.keeps_steps() { self.ask(self.store.steps(record)).await } else { Ok(Vec::new()) }
    }

    pub(super) fn quarantine_of(&self, operation: &Operation) -> Duration {
        self.quarantine.max(operation.timeout.unwrap_or_default())
    }

    pub(super) fn rerun(&self, operation: &Operation) -> Duration {
        self.hooks.get(operation.op).map_or(Duration::ZERO, |hooked| hooked.rerun)
    }

    pub(super) async fn ask<T>(&self, verb: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
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
