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
    /// Kept from one wait to the next: the group's pause must not begin anew with each look.
    ticket: Option<Ticket<'a>>,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(runtime: &'a Runtime, call: &'a Call) -> Self {
        let deadline = (!call.patience.is_zero()).then(|| Instant::now() + call.patience);
        Self { runtime, call, deadline, ticket: None }
    }

    /// Waits until it is worth looking again; `false` if it is not.
    pub(crate) async fn wait(&mut self) -> bool {
        let Some(deadline) = self.deadline else { return false };
        let waiters = self.runtime.waiters();
        if self.ticket.is_none() {
            self.ticket = waiters.join(self.call.peek(), Awaited::of(self.runtime, self.call));
        }
        let Some(Ticket { group, changed, .. }) = &mut self.ticket else { return false };
        // An end between our first look and `join` is seen by the first poll; one after it by this.
        tokio::select! {
            () = &mut *changed => {
                *changed = Box::pin(Arc::clone(group).notified_owned()); // before the look
                true
            }
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
    awaited: Awaited,
    changed: Arc<Notify>,
    /// Between two claims that are sent to find out; see [`Awaited::unseen`].
    pause: Duration,
    next: Instant,
}

/// What may come of a record that is waited for.
#[derive(Clone, Copy)]
struct Awaited {
    /// A doubt may settle itself, so it is waited for too.
    recovers: bool,
    /// It runs in a transaction, whose record nobody sees: that there is none may mean that it still runs, and only a claim can
    /// tell. So one of those who wait sends it, and the others are told what comes of that.
    unseen: bool,
}

impl Awaited {
    fn of(runtime: &Runtime, call: &Call) -> Self {
        let operation = call.operation;
        Self { recovers: runtime.config().recovers(operation.op), unseen: operation.transaction.is_some() }
    }
}

/// A place in the queue, given back when dropped.
struct Ticket<'a> {
    waiters: &'a Waiters,
    record: RecordId,
    group: Arc<Notify>,
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
    fn join(self: &Arc<Self>, peek: Peek, awaited: Awaited) -> Option<Ticket<'_>> {
        let mut queue = self.queue();
        if queue.waiting >= self.per_process {
            return None;
        }
        let new = !queue.groups.contains_key(&peek.record);
        let group = queue.groups.entry(peek.record).or_insert_with(|| Group {
            waiting: 0,
            peek,
            awaited,
            changed: Arc::new(Notify::new()),
            pause: POLL.0,
            next: Instant::now(),
        });
        if group.waiting >= self.per_record {
            return None;
        }
        group.waiting += 1;
        let group = Arc::clone(&group.changed);
        let changed = Box::pin(Arc::clone(&group).notified_owned());
        queue.waiting += 1;
        queue.fresh |= new;
        if !std::mem::replace(&mut queue.polling, true) {
            self.tasks.spawn(Arc::clone(self).poll());
        }
        Some(Ticket { waiters: self, record: peek.record, group, changed })
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
            Some(Found::InDoubt(_)) if self.awaits(record).is_some_and(|awaited| awaited.recovers) => return,
            None if self.awaits(record).is_some_and(|awaited| awaited.unseen) => return self.send_one(record),
            Some(Found::Replay(replay)) => self.cache.keep(record, &replay), // so that the woken need not ask again
            _ => {}
        }
        self.wake(record);
    }

    fn awaits(&self, record: RecordId) -> Option<Awaited> {
        self.queue().groups.get(&record).map(|group| group.awaited)
    }

    /// Lets one of those who wait claim, if the last one who did is long enough ago.
    fn send_one(&self, record: RecordId) {
        let (mut queue, now) = (self.queue(), Instant::now());
        let Some(group) = queue.groups.get_mut(&record).filter(|group| group.next <= now) else { return };
        group.pause = (group.pause * 2).min(POLL.1);
        group.next = now + group.pause;
        group.changed.notify_one();
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
