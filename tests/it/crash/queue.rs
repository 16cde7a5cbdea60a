//! The queue of the jobs, where no fault reaches it: it delivers at least once, and believes what it is told of a job.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Path, State},
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use tokio::{
    net::TcpListener,
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::{
    log::{Answer, Key, Told},
    plan::LEASE,
};

/// Its server ends when this is dropped.
pub(crate) struct Served {
    pub(crate) url: String,
    pub(crate) queue: Queue,
    server: JoinHandle<()>,
}

#[derive(Clone)]
pub(crate) struct Queue {
    start: Instant,
    books: Arc<Mutex<Books>>,
}

#[derive(Default)]
struct Books {
    /// By when they are due; numbered, since one job may be due twice.
    due: BTreeMap<(Duration, u64), Due>,
    /// Delivered, and not heard of.
    open: HashMap<u64, Open>,
    /// What was said when a job was acknowledged, or parked: it does not come again by itself.
    over: HashMap<Key, Answer>,
    told: Vec<Told>,
    last: HashMap<Key, (u32, Answer)>,
    numbers: u64,
}

#[derive(Clone, Copy)]
struct Due {
    key: Key,
    /// Whether it is over or not.
    once_more: bool,
}

struct Open {
    key: Key,
    server: usize,
    sent: Duration,
    /// When it would come again.
    again: Option<(Duration, u64)>,
}

#[derive(Serialize)]
struct Delivery {
    nr: u64,
    job: String,
}

/// What a worker says.
#[derive(Deserialize)]
struct Said {
    status: u16,
    #[serde(default)]
    replayed: bool,
    #[serde(default)]
    slug: Option<String>,
    #[serde(default)]
    body: String,
    /// Not before so many ms are over; where there is none, it is over.
    #[serde(default)]
    after: Option<u64>,
}

/// A delivery of which nothing is heard for so long comes again. Longer than a lease, shorter than most freezes.
const VISIBLE_AGAIN: Duration = Duration::from_millis(1_500);
/// For how long a worker waits for a job.
const POLL: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

impl Served {
    pub(crate) async fn open() -> Self {
        let queue = Queue { start: Instant::now(), books: Arc::default() };
        let router = Router::new()
            .route("/{server}/next", get(next))
            .route("/{server}/{delivery}", post(tell))
            .with_state(queue.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, queue, server }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Queue {
    /// Since the start.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    /// So many times, as by somebody who did not hear that it is in the queue.
    pub(crate) fn enqueue(&self, key: Key, times: u32) {
        for _ in 0..times {
            self.books().put(self.now(), Due { key, once_more: false });
        }
    }

    /// Waits until the job is over; `false`: it is not.
    pub(crate) async fn is_over(&self, key: Key, patience: Duration) -> bool {
        self.wait(patience, |books| books.over.get(&key).map(drop)).await.is_some()
    }

    /// Delivers it now, also one that is over, and returns what is said next. But nobody delivers again what was
    /// acknowledged without a value, or parked: that is how it ends.
    pub(crate) async fn once_more(&self, key: Key, patience: Duration) -> Option<Answer> {
        let before = {
            let mut books = self.books();
            if let Some(end) = books.over.get(&key).filter(|end| !end.is_final()) {
                return Some(end.clone());
            }
            books.put(self.now(), Due { key, once_more: true });
            books.count(key)
        };
        let said = |books: &Books| books.last.get(&key).filter(|(count, _)| *count > before).map(|(_, a)| a.clone());
        self.wait(patience, said).await
    }

    async fn wait<T>(&self, patience: Duration, what: impl Fn(&Books) -> Option<T>) -> Option<T> {
        let begun = self.now();
        loop {
            let found = what(&self.books());
            if found.is_some() || self.now() - begun >= patience {
                return found;
            }
            sleep(PAUSE).await;
        }
    }

    /// All that was told so far, handed over; and deliveries of which nobody will hear any more.
    pub(crate) fn told(&self) -> Vec<Told> {
        let (mut books, now) = (self.books(), self.now());
        let unheard = std::mem::take(&mut books.open).into_values().map(|open| {
            let Open { key, server, sent, .. } = open;
            Told { key, server, sent, ended: now.min(sent + VISIBLE_AGAIN), answer: None }
        });
        let mut told: Vec<Told> = unheard.collect();
        told.append(&mut books.told);
        told
    }
}

impl Books {
    fn put(&mut self, at: Duration, due: Due) -> (Duration, u64) {
        self.numbers += 1;
        self.due.insert((at, self.numbers), due);
        (at, self.numbers)
    }

    fn count(&self, key: Key) -> u32 {
        self.last.get(&key).map_or(0, |(count, _)| *count)
    }

    /// What is due, to this server.
    fn deliver(&mut self, now: Duration, server: usize) -> Option<Delivery> {
        loop {
            let first = self.due.first_entry().filter(|first| first.key().0 <= now)?;
            let due = first.remove();
            if self.over.contains_key(&due.key) && !due.once_more {
                continue;
            }
            let again = (!due.once_more).then(|| self.put(now + VISIBLE_AGAIN, due)); // else whoever wants it asks again
            self.numbers += 1;
            self.open.insert(self.numbers, Open { key: due.key, server, sent: now, again });
            return Some(Delivery { nr: self.numbers, job: due.key.text() });
        }
    }

    fn hear(&mut self, now: Duration, delivery: u64, said: Said) {
        let Some(Open { key, server, sent, again }) = self.open.remove(&delivery) else { return };
        let Said { status, replayed, slug, body, after } = said;
        // A function's caller is not told that its value could not be stored, as happens to an owner whose lease is over.
        let unrecorded = after.is_none() && !replayed && now - sent >= LEASE;
        let answer = Answer { status, replayed, unrecorded, slug, body };
        self.told.push(Told { key, server, sent, ended: now, answer: Some(answer.clone()) });
        self.last.insert(key, (self.count(key) + 1, answer.clone()));
        match after {
            Some(after) => {
                if let Some(due) = again.and_then(|again| self.due.remove(&again)) {
                    self.put(now + Duration::from_millis(after), due);
                }
            }
            None if self.over.get(&key).is_some_and(Answer::is_final) => {}
            None => {
                self.over.insert(key, answer);
            }
        }
    }
}

async fn next(State(queue): State<Queue>, Path(server): Path<usize>) -> Json<Option<Delivery>> {
    let begun = queue.now();
    while queue.now() - begun < POLL {
        let delivery = queue.books().deliver(queue.now(), server);
        if delivery.is_some() {
            return Json(delivery);
        }
        sleep(PAUSE).await;
    }
    Json(None)
}

async fn tell(State(queue): State<Queue>, Path((_, delivery)): Path<(usize, u64)>, Json(said): Json<Said>) {
    queue.books().hear(queue.now(), delivery, said);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::log::Mode;

    #[test]
    fn what_is_not_acknowledged_comes_again() {
        let (mut books, key) = (Books::default(), Key { mode: Mode::Job, nr: 1 });
        let at = Duration::from_secs;
        books.put(at(1), Due { key, once_more: false });
        assert!(books.deliver(at(0), 0).is_none(), "not yet");
        let unheard = books.deliver(at(1), 0).unwrap();
        assert!(books.deliver(at(2), 0).is_none(), "somebody has it");
        let second = books.deliver(at(3), 1).unwrap();
        let said = |status, after| Said { status, replayed: false, slug: None, body: String::new(), after };
        books.hear(at(4), second.nr, said(500, Some(2_000)));
        assert!(books.deliver(at(5), 0).is_none(), "put off");
        let third = books.deliver(at(6), 0).unwrap();
        books.hear(at(7), unheard.nr, said(201, None));
        books.hear(at(7), third.nr, said(500, Some(0)));
        assert!(books.deliver(at(60), 0).is_none(), "one of them has acknowledged it");
        books.put(at(60), Due { key, once_more: true });
        assert_eq!(books.deliver(at(60), 0).unwrap().job, "k1");
        let unrecorded: Vec<bool> = books.told.iter().map(|told| told.answer.as_ref().unwrap().unrecorded).collect();
        assert_eq!(unrecorded, [false, true, false], "whoever took so long may have lost its lease");
    }
}
