//! One verb's way to the store: what goes at once, and what waits.

use std::{
    collections::VecDeque,
    slice,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::{
    runtime::Handle,
    sync::oneshot,
    time::{Instant, timeout},
};
use tokio_util::task::TaskTracker;

use super::{
    Limits, driver,
    slice::{Panicked, Slice, Told, Waiting, unanswered},
    unsure::Unsure,
    verb::Verb,
    width::Width,
};
use crate::store::{Store, StoreError, StoreErrorKind};

/// After so long, a statement is not waited for any more by those who are not in it: a lock, or a connection that fell
/// silent, must not keep its neighbours.
const STALLED: Duration = Duration::from_millis(100);

/// As many as may be on their way with those that have stalled.
const MOST_UNDER_WAY: usize = 32;

/// What all lanes stand on.
pub(super) struct Ground {
    pub(super) store: Arc<dyn Store>,
    pub(super) limits: Limits,
    tasks: TaskTracker,
    /// Kept, because a caller may be dropped anywhere.
    handle: Handle,
}

impl Ground {
    pub(super) fn new(store: Arc<dyn Store>, limits: Limits, tasks: TaskTracker) -> Self {
        Self { store, limits, tasks, handle: Handle::current() }
    }
}

pub(super) struct Lane<V: Verb> {
    pub(super) ground: Arc<Ground>,
    state: Mutex<State<V>>,
}

struct State<V: Verb> {
    queue: VecDeque<Waiting<V>>,
    /// Callers in the queue that have gone.
    gone: usize,
    /// Statements on their way.
    active: usize,
    /// Those that have been for long.
    stalled: usize,
    width: Width,
    unsure: Unsure,
}

impl<V: Verb> State<V> {
    fn has_room(&self) -> bool {
        self.active < self.width.now() && self.active + self.stalled < MOST_UNDER_WAY
    }
}

/// How a call goes.
enum Way<V: Verb> {
    /// By itself, and at once.
    Alone(Turn<V>),
    /// With others, when what is on its way has come back.
    Queued(Place<V>),
}

impl<V: Verb> Lane<V> {
    pub(super) fn new(ground: &Arc<Ground>, most: usize) -> Arc<Self> {
        let (width, unsure, queue) = (Width::new(most), Unsure::default(), VecDeque::new());
        let state = Mutex::new(State { queue, gone: 0, active: 0, stalled: 0, width, unsure });
        Arc::new(Self { ground: Arc::clone(ground), state })
    }

    fn state(&self) -> MutexGuard<'_, State<V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the store about one item.
    pub(super) async fn ask(self: &Arc<Self>, item: &V::Item) -> Result<V::Answer, StoreError> {
        match self.way(item)? {
            Way::Alone(mut turn) => {
                let mut answers = turn.send(slice::from_ref(item)).await?;
                answers.pop().filter(|_| answers.is_empty()).ok_or_else(unanswered)
            }
            Way::Queued(place) => place.wait().await,
        }
    }

    /// It would be sent with others, and another way of finding out tells it the same.
    pub(super) fn would_wait(&self, item: &V::Item) -> bool {
        let state = self.state();
        let goes_at_once = state.queue.is_empty() && state.has_room();
        !goes_at_once && !state.unsure.contains(V::attempt(item))
    }

    /// # Errors
    /// [`StoreErrorKind::Overloaded`]
    fn way(self: &Arc<Self>, item: &V::Item) -> Result<Way<V>, StoreError> {
        let mut state = self.state();
        if state.queue.is_empty() && state.has_room() {
            state.active += 1;
            drop(state);
            return Ok(Way::Alone(Turn::new(self, false)));
        }
        if state.queue.len().saturating_sub(state.gone) >= self.ground.limits.queue {
            return Err(StoreError::new(StoreErrorKind::Overloaded, "the queue for its statements is full"));
        }
        let (told, reply) = oneshot::channel();
        state.queue.push_back(Waiting { item: item.clone(), told });
        self.hand_over(state);
        Ok(Way::Queued(Place { lane: Arc::clone(self), reply }))
    }

    /// Lets a task take what waits, if there is room for another statement.
    fn hand_over(self: &Arc<Self>, mut state: MutexGuard<'_, State<V>>) {
        if state.queue.is_empty() || !state.has_room() {
            return;
        }
        state.active += 1;
        drop(state); // a runtime that is being torn down drops the task here and now
        let ground = &self.ground;
        ground.tasks.spawn_on(driver::drive(Turn::new(self, true)), &ground.handle);
    }
}

/// A place in the queue.
struct Place<V: Verb> {
    lane: Arc<Lane<V>>,
    reply: oneshot::Receiver<Told<V::Answer>>,
}

impl<V: Verb> Place<V> {
    async fn wait(mut self) -> Result<V::Answer, StoreError> {
        match (&mut self.reply).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(Panicked)) => std::panic::resume_unwind(Box::new("the store panicked")), // it was reported where it did
            Err(_) => Err(StoreError::unavailable("the runtime that asks the store is gone")),
        }
    }
}

impl<V: Verb> Drop for Place<V> {
    /// Who gives up leaves its item in the queue, from where it is not sent any more; when half of the queue is such, it goes.
    fn drop(&mut self) {
        if self.reply.is_terminated() {
            return;
        }
        self.reply.close();
        let mut state = self.lane.state();
        state.gone += 1;
        if state.gone * 2 > state.queue.len() {
            state.queue.retain(|waiting| !waiting.is_gone());
            state.gone = 0;
        }
    }
}

/// The right to have a statement on its way, given back when dropped.
pub(super) struct Turn<V: Verb> {
    pub(super) lane: Arc<Lane<V>>,
    /// It is a task's of our own, not a caller's.
    is_driver: bool,
    stalled: bool,
    is_over: bool,
}

impl<V: Verb> Turn<V> {
    fn new(lane: &Arc<Lane<V>>, is_driver: bool) -> Self {
        Self { lane: Arc::clone(lane), is_driver, stalled: false, is_over: false }
    }

    /// Sends a statement. Dropped, its attempts are taken for unanswered.
    pub(super) async fn send(&mut self, items: &[V::Item]) -> Result<Vec<V::Answer>, StoreError> {
        let (lane, began) = (Arc::clone(&self.lane), Instant::now());
        let mut sent = Sent { lane: &lane, items, took: None };
        let mut sending: BoxFuture<'_, _> = V::send(&*lane.ground.store, items);
        let answers = match timeout(STALLED, &mut sending).await {
            Ok(answers) => answers,
            Err(_) => {
                self.stall();
                sending.await
            }
        };
        sent.took = answers.is_ok().then(|| began.elapsed());
        answers
    }

    /// Others go on without it.
    fn stall(&mut self) {
        if std::mem::replace(&mut self.stalled, true) {
            return;
        }
        let mut state = self.lane.state();
        state.active -= 1;
        state.stalled += 1;
        self.lane.hand_over(state);
    }

    /// What waits, for the next statement of this turn; `None`: the turn is over.
    pub(super) fn next(&mut self) -> Option<Slice<V>> {
        let lane = Arc::clone(&self.lane);
        let mut state = lane.state();
        if !self.stalled && state.active <= state.width.now() {
            let State { queue, unsure, .. } = &mut *state;
            let slice = Slice::take(queue, lane.ground.limits.rows, unsure);
            state.gone = if state.queue.is_empty() { 0 } else { state.gone.min(state.queue.len()) };
            if !slice.items.is_empty() {
                return Some(slice);
            }
        }
        self.end(state);
        None
    }

    fn end(&mut self, mut state: MutexGuard<'_, State<V>>) {
        self.is_over = true;
        match self.stalled {
            true => state.stalled -= 1,
            false => state.active -= 1,
        }
        self.lane.hand_over(state);
    }
}

impl<V: Verb> Drop for Turn<V> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let lane = Arc::clone(&self.lane);
        let mut state = lane.state();
        if self.is_driver {
            state.queue.clear(); // its runtime is gone, and with it whoever could send this
            state.gone = 0;
        }
        self.end(state);
    }
}

/// A statement on its way.
struct Sent<'a, V: Verb> {
    lane: &'a Lane<V>,
    items: &'a [V::Item],
    /// How long it took until it was answered; `None` if it was not.
    took: Option<Duration>,
}

impl<V: Verb> Drop for Sent<'_, V> {
    fn drop(&mut self) {
        let mut state = self.lane.state();
        if let Some(took) = self.took {
            state.width.took(self.items.len(), took);
        }
        for attempt in self.items.iter().filter_map(V::attempt) {
            match self.took {
                Some(_) => state.unsure.was_answered(attempt),
                None => state.unsure.went_unanswered(attempt),
            }
        }
    }
}
