//! The clients: each takes one key after the other, and retries it with the same payload until it knows what became of it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fastrand::Rng;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    fleet::{Fleet, SERVERS},
    log::{Answer, Key, Mode, Told},
    queue::Queue,
};

/// What the clients have in common.
#[derive(Clone)]
pub(crate) struct Clients {
    fleet: Arc<Fleet>,
    /// Where jobs are put.
    queue: Queue,
    http: reqwest::Client,
    told: Arc<Mutex<Vec<Told>>>,
    /// Keys taken so far, all modes.
    taken: Arc<AtomicU64>,
    /// The modes that take turns.
    modes: &'static [Mode],
    /// After that a client leaves its key to the end.
    patience: Duration,
}

/// Longer than a freeze: a client that waits for a frozen server is one to test.
const TIME_OUT: Duration = Duration::from_secs(3);

impl Clients {
    pub(crate) fn new(fleet: Arc<Fleet>, queue: Queue, modes: &'static [Mode], patience: Duration) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(TIME_OUT).build().unwrap();
        Self { fleet, queue, http, told: Arc::default(), taken: Arc::default(), modes, patience }
    }

    /// Since the start.
    pub(crate) fn now(&self) -> Duration {
        self.queue.now()
    }

    /// Keys taken so far, all modes.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// All keys that were taken.
    pub(crate) fn keys(&self) -> Vec<Key> {
        (0..self.taken()).map(|nr| self.key(nr)).collect()
    }

    /// All that was told so far. It is many, so it is handed over.
    pub(crate) fn told(&self) -> Vec<Told> {
        let mut told = std::mem::take(&mut *self.told.lock().unwrap());
        told.append(&mut self.queue.told());
        told
    }

    fn key(&self, nr: u64) -> Key {
        let modes = self.modes.len() as u64;
        Key { mode: self.modes[(nr % modes) as usize], nr }
    }

    /// So many clients, until they are told to stop; each ends its key first.
    pub(crate) fn begin(&self, clients: usize, random: &mut Rng, stop: &CancellationToken, tasks: &TaskTracker) {
        for _ in 0..clients {
            let (own, mut random, stop) = (self.clone(), random.fork(), stop.clone());
            tasks.spawn(async move {
                while !stop.is_cancelled() {
                    let key = own.key(own.taken.fetch_add(1, Ordering::Relaxed));
                    match key.mode {
                        Mode::Job => own.enqueue(key, &mut random).await,
                        _ => own.settle(key, &mut random).await,
                    }
                }
            });
        }
    }

    /// Waits for the job, so that those in the queue are not more than can be done.
    async fn enqueue(&self, key: Key, random: &mut Rng) {
        self.queue.enqueue(key, if random.u8(0..8) == 0 { 2 } else { 1 });
        if self.queue.is_over(key, self.patience).await && random.u8(0..4) == 0 {
            self.queue.once_more(key, TIME_OUT).await; // as queues do now and then
        }
    }

    /// Tries until there is an answer to keep, or nothing to wait for.
    async fn settle(&self, key: Key, random: &mut Rng) {
        let begun = Instant::now();
        let mut doubts = 0;
        while begun.elapsed() < self.patience && doubts < 2 {
            let answer = self.try_once(key, random).await;
            if answer.as_ref().is_some_and(Answer::is_final) {
                if random.u8(0..4) == 0 {
                    self.try_once(key, random).await; // it did not hear of it
                }
                return;
            }
            let in_doubt = answer.is_some_and(|answer| answer.is_doubt());
            doubts += u32::from(in_doubt && key.mode.may_stay_in_doubt());
            let pause = random.u64(if in_doubt { 100..500 } else { 10..80 });
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    /// One request to any server; or two at once to two of them; or one that hangs up.
    async fn try_once(&self, key: Key, random: &mut Rng) -> Option<Answer> {
        let server = random.usize(0..SERVERS);
        match random.u8(0..20) {
            0 => {
                let patience = Duration::from_millis(random.u64(0..40));
                self.ask(key, server, patience).await
            }
            1..=2 => {
                let other = (server + random.usize(1..SERVERS)) % SERVERS;
                let (one, two) = tokio::join!(self.ask(key, server, TIME_OUT), self.ask(key, other, TIME_OUT));
                [one, two].into_iter().flatten().max_by_key(Answer::is_final)
            }
            _ => self.ask(key, server, TIME_OUT).await,
        }
    }

    /// One request, dropped after `patience`; or one delivery more, to whoever takes it.
    pub(crate) async fn ask(&self, key: Key, server: usize, patience: Duration) -> Option<Answer> {
        if key.mode == Mode::Job {
            return self.queue.once_more(key, patience).await;
        }
        let address = self.fleet.address(server)?;
        let sent = self.now();
        let post = self.http.post(format!("http://{address}/{}", key.mode.name()));
        let post = post.header("idempotency-key", key.text()).json(&json!({ "key": key.text() }));
        let answered = tokio::time::timeout(patience, async { read(post.send().await?).await }).await;
        let answer = answered.ok().and_then(Result::ok);
        let told = Told { key, server, sent, ended: self.now(), answer: answer.clone() };
        self.told.lock().unwrap().push(told);
        answer
    }
}

async fn read(response: reqwest::Response) -> Result<Answer, reqwest::Error> {
    let text = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let is_problem = text("content-type").as_deref() == Some("application/problem+json");
    let replayed = text("idempotent-replayed").is_some();
    let unrecorded = text("idempotency-status").as_deref() == Some("unrecorded");
    let (status, body) = (response.status().as_u16(), response.text().await?);
    let slug = || {
        let problem: serde_json::Value = serde_json::from_str(&body).unwrap();
        problem["type"].as_str().unwrap().rsplit('#').next().unwrap().to_owned()
    };
    if is_problem {
        return Ok(Answer { status, replayed, unrecorded, slug: Some(slug()), body: String::new() }); // half an hour's are many
    }
    Ok(Answer { status, replayed, unrecorded, slug: None, body })
}
