//! Calls again what was interrupted. Each process takes what it could call; what it takes, nobody else has meanwhile.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::time::timeout;

use super::{Again, Interrupted};
use crate::{
    observe::{Observer, Resumed},
    operation::Operation,
    recovery::Rooms,
    runtime::{Config, WeakRuntime},
    state::State,
    store::{Resume, Resuming, Store},
    sweep::{Slots, Work},
};

/// How long a closure may take, beside what its operation's `timeout` gives the body.
const LIMIT: Duration = Duration::from_secs(30);
/// How much longer than its lease an owner is left alone that has not reported: it may be a little late.
const GRACE: Duration = Duration::from_secs(5);

/// All that goes on with interrupted operations in one process.
pub(crate) struct Completions {
    again: HashMap<&'static str, (Again, &'static Operation)>,
    slots: Slots,
    store: Arc<dyn Store>,
    store_timeout: Duration,
    observer: Arc<Observer>,
    rooms: Rooms,
    runtime: WeakRuntime,
}

impl Completions {
    /// `None` where there is nothing that could be called again.
    pub(crate) fn new(store: Arc<dyn Store>, config: &Config, rooms: Rooms, runtime: WeakRuntime) -> Option<Arc<Self>> {
        let again = |operation: &'static Operation| {
            let (_, again) = config.completers.iter().find(|(op, _)| op == operation.op)?;
            Some((operation.op, (Arc::clone(again), operation)))
        };
        let again: HashMap<_, _> = config.served().filter_map(again).collect();
        if again.is_empty() {
            return None;
        }
        let slots = Slots::new(again.keys().copied(), rooms.tasks.clone());
        let (store_timeout, observer) = (config.store_timeout, Arc::clone(&rooms.observer));
        Some(Arc::new(Self { again, slots, store, store_timeout, observer, rooms, runtime }))
    }

    /// Takes what may be called again now, and calls each on a task of its own.
    pub(crate) async fn look(self: &Arc<Self>) {
        for op in self.again.keys() {
            if !self.slots.fill(op, self).await {
                return;
            }
        }
    }

    /// What the closure did, within its time; `None` if it was not called to its end.
    async fn call(&self, resuming: Resuming) -> Option<bool> {
        let Resuming { record, input } = resuming;
        let (again, operation) = self.again.get(record.op.as_str())?;
        let (op, id) = (operation.op, record.id);
        let interrupted = Interrupted { record, input, runtime: self.runtime.upgrade()? };
        let limit = LIMIT.saturating_add(operation.timeout.unwrap_or_default());
        let calling = AssertUnwindSafe(timeout(limit, async move { again(interrupted).await })).catch_unwind();
        let said = tokio::select! {
            biased;
            () = self.rooms.stop.cancelled() => return None,
            said = calling => said,
        };
        Some(match said {
            Ok(Ok(ended_well)) => ended_well,
            Ok(Err(_)) => {
                tracing::warn!(target: "idem::resume", op, record = %id, seconds = limit.as_secs(), "going on with an interrupted operation took too long; trying again later");
                false
            }
            Err(_) => {
                tracing::warn!(target: "idem::resume", op, record = %id, "going on with an interrupted operation panicked; trying again later");
                false
            }
        })
    }

    /// What the record says of it, which is what counts.
    async fn came_to(&self, before: &Resuming, ended_well: bool) -> Resumed {
        let (op, id) = (before.record.op.as_str(), before.record.id);
        let finding = AssertUnwindSafe(timeout(self.store_timeout, self.store.find(id))).catch_unwind();
        let Ok(Ok(Ok(Some(after)))) = finding.await else { return Resumed::Failed };
        if after.state == State::Done {
            tracing::info!(target: "idem::resume", op, record = %id, attempts = after.attempts, "an interrupted operation was completed");
            return Resumed::Completed;
        }
        if ended_well && after.attempts == before.record.attempts {
            tracing::error!(target: "idem::resume", op, record = %id, "what `resume` calls ended well, but did not go on with the operation: it must come to the same key and scope");
        }
        Resumed::Failed
    }
}

impl Work for Completions {
    type Found = Resuming;

    async fn give_out(&self, op: &'static str, limit: usize) -> Option<Vec<Resuming>> {
        if self.rooms.draining.is_cancelled() || self.rooms.stop.is_cancelled() {
            return None;
        }
        // From taking it to the call's own claim.
        let lease = LIMIT + self.store_timeout * 4;
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let resume = Resume { ops: vec![op], lease, grace: GRACE, limit };
        let asking = AssertUnwindSafe(timeout(self.store_timeout, self.store.interrupted(&resume))).catch_unwind();
        match asking.await {
            Ok(Ok(Ok(found))) => Some(found),
            failed => {
                let failed = failed.map(|answered| answered.map(|found| found.map(|_| ())));
                tracing::warn!(target: "idem::resume", ?failed, "could not look for interrupted operations, trying again");
                None
            }
        }
    }

    async fn work_on(&self, found: Resuming) {
        let Some((_, operation)) = self.again.get(found.record.op.as_str()) else { return };
        let Some(ended_well) = self.call(found.clone()).await else { return };
        let resumed = self.came_to(&found, ended_well).await;
        self.rooms.waiters.wake(found.record.id);
        self.observer.resumed(operation.op, resumed);
    }
}
