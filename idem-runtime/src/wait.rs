//! Duplicates that wait for the first run: woken by it if it is in this process, else by one poll for all.

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::FutureExt;
use tokio::{
    sync::{Notify, futures::OwnedNotified},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Runtime,
    cache::Cache,
    call::Call,
    key::RecordId,
    store::{Found, Peek, Store},
};

/// Between two polls, at first and at most.
const POLL: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

/// How long one call waits, all its waits together.
pub(crate) struct Patience<'a> {
    runtime: &'a Runtime,
    call: &'a Call,
    deadline: Option<Instant>,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(runtime: &'a Runtime, call: &'a Call) -> Self {
        let deadline = (!call.patience.is_zero()).then(|| Instant::now() + call.patience);
        Self { runtime, call, deadline }
    }

    /// Waits until it is worth looking again; `false` if it is not.
    pub(crate) async fn wait(&mut self) -> bool {
        let Some(deadline) = self.deadline else { return false };
        let waiters = self.runtime.waiters();
        let recovers = self.runtime.config().recovers(self.call.operation.op);
        let Some(mut ticket) = waiters.join(self.call.peek(), recovers) else { return false };
        // An end between our look and `join` is seen by the first poll; one after it by this.
        let Ticket { changed, .. } = &mut ticket;
        tokio::select! {
            () = changed => true,
            () = waiters.draining.cancelled() => {
                self.deadline = None; // one last look
                true
            }
            () = sleep_until(deadline) => false,
        }
    }
}

pub(crate) struct Waiters {
    per_record: usize,
    per_process: usize,
    store: Arc<dyn Store>,
    store_timeout: Duration,
    cache: Arc<Cache>,
    draining: CancellationToken,
    tasks: TaskTracker,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    groups: HashMap<RecordId, Group>,
    waiting: usize,
    polling: bool,
    /// Somebody new waits: poll soon.
    fresh: bool,
}

struct Group {
    waiting: usize,
    peek: Peek,
    /// A doubt may settle itself, so it is waited for too.
    recovers: bool,
    changed: Arc<Notify>,
}

/// A place in the queue, given back when dropped.
struct Ticket<'a> {
    waiters: &'a Waiters,
    record: RecordId,
    /// Made while the queue is locked, so that no wake-up is missed.
    changed: Pin<Box<OwnedNotified>>,
}

#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) per_record: usize,
    pub(crate) per_process: usize,
    pub(crate) store_timeout: Duration,
}

impl Waiters {
    pub(crate) fn new(
        limits: Limits,
        store: Arc<dyn Store>,
        cache: Arc<Cache>,
        draining: CancellationToken,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        let Limits { per_record, per_process, store_timeout } = limits;
        let queue = Mutex::default();
        Arc::new(Self { per_record, per_process, store, store_timeout, cache, draining, tasks, queue })
    }

    /// The first run ended, or somebody else settled the record.
    pub(crate) fn wake(&self, record: RecordId) {
        if let Some(group) = self.queue().groups.get(&record) {
            group.changed.notify_waiters();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` if the queue is full.
    fn join(self: &Arc<Self>, peek: Peek, recovers: bool) -> Option<Ticket<'_>> {
        let mut queue = self.queue();
        if queue.waiting >= self.per_process {
            return None;
        }
        let new = !queue.groups.contains_key(&peek.record);
        let group = queue.groups.entry(peek.record).or_insert_with(|| Group {
            waiting: 0,
            peek,
            recovers,
            changed: Arc::new(Notify::new()),
        });
        if group.waiting >= self.per_record {
            return None;
        }
        group.waiting += 1;
        let changed = Box::pin(Arc::clone(&group.changed).notified_owned());
        queue.waiting += 1;
        queue.fresh |= new;
        if !std::mem::replace(&mut queue.polling, true) {
            self.tasks.spawn(Arc::clone(self).poll());
        }
        Some(Ticket { waiters: self, record: peek.record, changed })
    }

    /// One query per tick for all who wait in this process; ends when nobody does.
    async fn poll(self: Arc<Self>) {
        let mut pause = POLL.0;
        loop {
            sleep(pause.mul_f32(0.75 + fastrand::f32() / 2.0)).await;
            let peeks: Vec<Peek> = {
                let mut queue = self.queue();
                if queue.groups.is_empty() {
                    queue.polling = false;
                    return;
                }
                pause = if std::mem::take(&mut queue.fresh) { POLL.0 } else { (pause * 2).min(POLL.1) };
                queue.groups.values().map(|group| group.peek).collect()
            };
            let looking = AssertUnwindSafe(timeout(self.store_timeout, self.store.peek(&peeks))).catch_unwind();
            match looking.await {
                Ok(Ok(Ok(found))) => {
                    for (peek, found) in peeks.iter().zip(found) {
                        self.seen(peek.record, found);
                    }
                }
                failed => tracing::warn!(target: "idem::engine", ?failed, "poll for waiting requests failed"),
            }
        }
    }

    fn seen(&self, record: RecordId, found: Option<Found>) {
        match found {
            Some(Found::InFlight { .. }) => return,
            Some(Found::InDoubt(_)) if self.queue().groups.get(&record).is_some_and(|group| group.recovers) => return,
            Some(Found::Replay(replay)) => self.cache.keep(record, &replay), // so that the woken need not ask again
            _ => {}
        }
        self.wake(record);
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut queue = self.waiters.queue();
        queue.waiting -= 1;
        if let Some(group) = queue.groups.get_mut(&self.record) {
            group.waiting -= 1;
            if group.waiting == 0 {
                queue.groups.remove(&self.record);
            }
        }
    }
}
