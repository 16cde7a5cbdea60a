//! One verb's way to the store: what goes at once, and what waits.

use std::{
    collections::VecDeque,
    slice,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{runtime::Handle, sync::oneshot, time::timeout};
use tokio_util::task::TaskTracker;

use super::{
    Limits, driver,
    slice::{Panicked, Slice, Told, Waiting, unanswered},
    turns::{STALLED, Turns},
    unsure::Unsure,
    verb::Verb,
    width::Width,
};
use crate::store::{Store, StoreError, StoreErrorKind};

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
    turns: Turns,
    width: Width,
    unsure: Unsure,
}

impl<V: Verb> State<V> {
    fn has_room(&self) -> bool {
        self.turns.active() < self.width.now() && self.turns.count() < MOST_UNDER_WAY
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
        let state = Mutex::new(State { queue, gone: 0, turns: Turns::default(), width, unsure });
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
        let mut state = self.state();
        state.turns.look();
        let goes_at_once = state.queue.is_empty() && state.has_room();
        !goes_at_once && !state.unsure.contains(V::attempt(item))
    }

    /// # Errors
    /// [`StoreErrorKind::Overloaded`]
    fn way(self: &Arc<Self>, item: &V::Item) -> Result<Way<V>, StoreError> {
        let mut state = self.state();
        state.turns.look();
        if state.queue.is_empty() && state.has_room() {
            let nr = state.turns.begin();
            drop(state);
            return Ok(Way::Alone(Turn::new(self, nr, false)));
        }
        if state.queue.len().saturating_sub(state.gone) >= self.ground.limits.queue {
            self.hand_over(state); // if something has stalled
            return Err(StoreError::new(StoreErrorKind::Overloaded, "the queue for its statements is full"));
        }
        let (told, reply) = oneshot::channel();
        state.queue.push_back(Waiting { item: item.clone(), told });
        self.hand_over(state);
        Ok(Way::Queued(Place { lane: Arc::clone(self), reply }))
    }

    /// What has stalled is gone round.
    fn look(self: &Arc<Self>) {
        let mut state = self.state();
        state.turns.look();
        self.hand_over(state);
    }

    /// Lets a task take what waits, if there is room for another statement.
    fn hand_over(self: &Arc<Self>, mut state: MutexGuard<'_, State<V>>) {
        if state.queue.is_empty() || !state.has_room() {
            return;
        }
        let nr = state.turns.begin();
        drop(state); // a runtime that is being torn down drops the task here and now
        let ground = &self.ground;
        ground.tasks.spawn_on(driver::drive(Turn::new(self, nr, true)), &ground.handle);
    }
}

/// A place in the queue.
struct Place<V: Verb> {
    lane: Arc<Lane<V>>,
    reply: oneshot::Receiver<Told<V::Answer>>,
}

impl<V: Verb> Place<V> {
    async fn wait(mut self) -> Result<V::Answer, StoreError> {
        let told = loop {
            match timeout(STALLED, &mut self.reply).await {
                Ok(told) => break told,
                Err(_) => self.lane.look(),
            }
        };
        match told {
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
    nr: u64,
    /// It is a task's of our own, not a caller's.
    is_driver: bool,
    is_over: bool,
}

impl<V: Verb> Turn<V> {
    fn new(lane: &Arc<Lane<V>>, nr: u64, is_driver: bool) -> Self {
        Self { lane: Arc::clone(lane), nr, is_driver, is_over: false }
    }

    /// Sends a statement. Dropped, its attempts are taken for unanswered.
    pub(super) async fn send(&mut self, items: &[V::Item]) -> Result<Vec<V::Answer>, StoreError> {
        let began = self.lane.state().turns.sends(self.nr);
        let mut sent = Sent { turn: self, items, took: None };
        let answers = V::send(&*sent.turn.lane.ground.store, items).await;
        sent.took = answers.is_ok().then(|| began.elapsed());
        answers
    }

    /// What waits, for the next statement of this turn; `None`: the turn is over.
    pub(super) fn next(&mut self) -> Option<Slice<V>> {
        let lane = Arc::clone(&self.lane);
        let mut state = lane.state();
        if !state.turns.has_stalled(self.nr) && state.turns.active() <= state.width.now() {
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
        state.turns.end(self.nr);
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
    turn: &'a Turn<V>,
    items: &'a [V::Item],
    /// How long it took until it was answered; `None` if it was not.
    took: Option<Duration>,
}

impl<V: Verb> Drop for Sent<'_, V> {
    fn drop(&mut self) {
        let mut state = self.turn.lane.state();
        state.turns.answered(self.turn.nr);
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
