//! One run: everything is started, damaged for a while, and asked once more when all is well again.

use std::{
    collections::{HashMap, HashSet},
    env, fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use fastrand::Rng;
use futures_util::{StreamExt, stream};
use idem_runtime::{Global, Runtime};
use tempfile::TempDir;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    checker::{self, Breach},
    clients::Clients,
    faults::{Database, Menu, Targets},
    fleet::{Fleet, SERVERS, Setting},
    log::{Answer, Damage, Effect, Key, Left, Log, Mode},
    plan::{End, Mix, Plan},
    provider::Provider,
    queue::Served,
    report::Report,
};
use crate::support::{Backend, Place, Proxy, bouncer::Bouncer, server::Server};

/// What is run, and for how long.
pub(crate) struct Course {
    pub(crate) mix: Mix,
    pub(crate) broken: Option<&'static str>,
    pub(crate) modes: &'static [Mode],
    pub(crate) clients: usize,
    pub(crate) menu: Menu,
    /// At least.
    pub(crate) time: Duration,
    pub(crate) keys_per_mode: u64,
    /// Keys, of all modes, that begin when nothing is broken any more: none of them may be in doubt.
    pub(crate) calm: u64,
    /// For how long a client retries before it leaves its key to the end.
    pub(crate) patience: Duration,
    /// The longest that a key may take to its end when nothing is broken any more: a hook is asked after the lease and 5 s,
    /// and frees nothing before quarantine.
    pub(crate) to_the_end: Duration,
}

/// Without a unique constraint, which could hide a double.
pub(crate) const ROWS: &str =
    "create table crash_rows (mode text not null, nr text not null, step text not null, nonce text not null)";

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) breaches: Vec<Breach>,
    pub(crate) report: Report,
    /// Where the logs are.
    folder: TempDir,
    log: Log,
}

/// Where the records are, and what the harness may do to it.
struct Ground {
    place: Arc<Place>,
    database: Option<Arc<Database>>,
    /// For the servers under test.
    url: String,
}

/// `SEED` repeats a run's draws.
pub(crate) fn seed() -> u64 {
    env::var("SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap())
}

impl Course {
    pub(crate) async fn run(self, seed: u64) -> Outcome {
        println!("SEED={seed}");
        let folder = TempDir::new().unwrap();
        let mut random = Rng::with_seed(seed);
        let ground = Ground::new().await;
        let provider = Provider::open(&folder.path().join("provider.log")).await;
        let served = Served::open().await;
        let setting = Setting {
            database: ground.url.clone(),
            pooled: ground.place.backend() == Backend::PgBouncer,
            provider: provider.url.clone(),
            queue: served.url.clone(),
            seed,
            mix: self.mix,
            broken: self.broken,
            clocks: if ground.database.is_some() { ["", "+1h", "-1h"] } else { [""; SERVERS] },
            folder: folder.path().to_owned(),
        };
        let fleet = Arc::new(Fleet::start(setting).await);
        let clients = Clients::new(Arc::clone(&fleet), served.queue.clone(), self.modes, self.patience);
        let damage = Arc::new(Mutex::new(Vec::new()));
        let targets = Targets {
            fleet: Arc::clone(&fleet),
            place: Arc::clone(&ground.place),
            database: ground.database.clone(),
            damage: Arc::clone(&damage),
            clients: clients.clone(),
        };
        self.damage(&targets, &mut random).await;
        let mut log = Log { damage: std::mem::take(&mut *damage.lock().unwrap()), ..Log::default() };

        println!("{} keys, all damage done after {} s", clients.taken(), clients.now().as_secs());
        let from = clients.now();
        fleet.renew(Mix::Calm).await;
        log.damage.push(Damage { what: "all renewed", server: None, from, to: clients.now() });
        log.failing = failing(self.mix, seed, &provider.read().0); // none of those to come
        log.left = ground.look(&clients.keys(), &provider).await;
        self.ask_once_more(&clients, &mut random, &mut log).await;
        println!("all asked once more after {} s", clients.now().as_secs());
        log.told = clients.told();
        (log.runs, log.effects) = provider.read();
        log.effects.extend(ground.rows().await);
        let breaches = checker::check(&log);
        let backend = ground.place.backend();
        let report = Report::of(&log, seed, backend, clients.now(), self.modes);
        Outcome { breaches, report, folder, log }
    }

    /// Clients and damage, until there has been enough of both.
    async fn damage(&self, targets: &Targets, random: &mut Rng) {
        let (quiet, enough, tasks) = (CancellationToken::new(), CancellationToken::new(), TaskTracker::new());
        targets.clients.begin(self.clients, random, &enough, &tasks);
        targets.begin(&self.menu, random, &quiet, &tasks);
        let keys = self.keys_per_mode * self.modes.len() as u64;
        let at_last = self.time * 4 + Duration::from_secs(480); // others may have the cores
        while targets.clients.now() < self.time || targets.clients.taken() < keys {
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(targets.clients.now() < at_last, "only {} keys of {keys}", targets.clients.taken());
        }
        quiet.cancel();
        enough.cancel();
        tasks.close();
        tokio::time::timeout(Duration::from_secs(60), tasks.wait()).await.expect("clients and damage end");
    }

    /// Each key, until it has its end. Nothing is broken any more: first one try for each, with few at a time, then whatever
    /// takes its time, and new keys meanwhile.
    async fn ask_once_more(&self, clients: &Clients, random: &mut Rng, log: &mut Log) {
        let keys = clients.keys();
        log.last = ask_all(clients, keys.clone(), 16, Duration::ZERO).await;
        let open = keys.into_iter().filter(|key| !has_ended(*key, log.last.get(key))).collect();
        let (last, calm) = tokio::join!(ask_all(clients, open, 256, self.to_the_end), self.calm(clients, random));
        log.last.extend(last);
        log.last.extend(ask_all(clients, calm.clone(), 16, self.to_the_end).await);
        log.calm = calm.into_iter().collect();
    }

    /// New keys, by a few clients: who waits for them is not what is tried.
    async fn calm(&self, clients: &Clients, random: &mut Rng) -> Vec<Key> {
        let (before, enough, tasks) = (clients.taken(), CancellationToken::new(), TaskTracker::new());
        if self.calm > 0 {
            clients.begin(8, random, &enough, &tasks);
        }
        let begun = clients.now();
        while clients.taken() < before + self.calm {
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(clients.now() - begun < Duration::from_secs(480), "only {} keys", clients.taken() - before);
        }
        enough.cancel();
        tasks.close();
        tasks.wait().await; // each has its own patience
        clients.keys().split_off(usize::try_from(before).unwrap())
    }
}

impl Ground {
    async fn new() -> Self {
        let (place, database) = if Backend::of_this_run() == Backend::Sqlite {
            (Place::sqlite(), None)
        } else {
            let (server, pooler) = tokio::task::spawn_blocking(started).await.unwrap();
            let place = Place::on(&server, pooler.as_ref());
            let wire = Proxy::before(place.url()).await;
            (place.through(&wire), Some(Arc::new(Database { server, pooler, wire })))
        };
        place.migrate().await;
        place.sql(ROWS).await;
        if database.is_some() {
            place.sql("alter table crash_rows set schema public").await;
        }
        let url = place.url().to_owned();
        Self { place: Arc::new(place), database, url }
    }

    /// What is left of each key.
    async fn look(&self, keys: &[Key], provider: &Provider) -> HashMap<Key, Left> {
        let store = self.place.connect().await;
        let builder = Runtime::builder(store).namespace("crash").serve_only(|_| false).purge_every(Duration::ZERO);
        let runtime = builder.sweep_every(Duration::ZERO).build().await.unwrap();
        let look = async |key: &Key| {
            let record = runtime.find(key.mode.name(), Global, &key.text()).await.unwrap();
            (*key, Left { state: record.map(|record| record.state), effects: 0 })
        };
        let mut left: HashMap<Key, Left> = stream::iter(keys).map(look).buffer_unordered(4).collect().await;
        for effect in provider.read().1.into_iter().chain(self.rows().await) {
            left.get_mut(&effect.key).unwrap().effects += 1;
        }
        left
    }

    /// The effects of transactions.
    async fn rows(&self) -> Vec<Effect> {
        let select = sqlx::query_as("select mode, nr, step, nonce from crash_rows");
        let rows: Vec<(String, String, String, String)> = select.fetch_all(self.place.database().await).await.unwrap();
        rows.into_iter().map(|(mode, nr, step, nonce)| Effect { key: Key::of(&mode, &nr), step, nonce }).collect()
    }
}

/// A server, and the pooler in front of it where this run has one.
fn started() -> (Server, Option<Bouncer>) {
    let server = Server::start(&["full_page_writes=off"]);
    let pooler = (Backend::of_this_run() == Backend::PgBouncer).then(|| Bouncer::start(&server));
    (server, pooler)
}

/// What each of these is told when it has its end, or in the end; so many at a time.
async fn ask_all(clients: &Clients, keys: Vec<Key>, at_a_time: usize, limit: Duration) -> HashMap<Key, Answer> {
    let ask = async |key: Key| Some((key, ask_for(clients, key, limit).await?));
    let asked: Vec<_> = stream::iter(keys).map(ask).buffer_unordered(at_a_time).collect().await;
    asked.into_iter().flatten().collect()
}

/// What this key is told when it has its end, or in the end. As long as nobody can look, on a machine that has too much to do,
/// nothing can be settled either, so the limit counts from then on.
async fn ask_for(clients: &Clients, key: Key, limit: Duration) -> Option<Answer> {
    let begun = clients.now();
    let (mut told, mut nobody_looked) = (None, begun);
    for server in (key.nr as usize).. {
        let answer = clients.ask(key, server % SERVERS, Duration::from_secs(20)).await;
        let now = clients.now();
        if answer.as_ref().is_none_or(Answer::is_unavailable) {
            nobody_looked = now;
        }
        told = answer.or(told);
        if has_ended(key, told.as_ref()) || now - nobody_looked >= limit || now - begun >= 3 * limit {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await; // between two tries
    }
    told
}

fn has_ended(key: Key, told: Option<&Answer>) -> bool {
    told.is_some_and(|told| {
        told.is_final() || told.is_acknowledgement() || (told.is_doubt() && key.mode.may_stay_in_doubt())
    })
}

/// The keys of which a run was drawn to end badly.
fn failing(mix: Mix, seed: u64, runs: &[Key]) -> HashSet<Key> {
    let mut counts = HashMap::<Key, u32>::new();
    let fails = |key: &&Key| {
        let count = counts.entry(**key).or_default();
        *count += 1;
        let plan = Plan::draw(mix, seed, &key.to_string(), *count);
        matches!(plan.end, End::Fails { .. } | End::Panics { .. })
    };
    runs.iter().filter(fails).copied().collect()
}

impl Outcome {
    /// Keeps the logs, and says where they are.
    pub(crate) fn keep(self) -> PathBuf {
        let folder = self.folder.keep();
        let told: String = self.log.told.iter().map(|told| format!("{told:?}\n")).collect();
        let damage: String = self.log.damage.iter().map(|damage| format!("{damage:?}\n")).collect();
        let breaches: String = self.breaches.iter().map(|breach| format!("{breach}\n")).collect();
        for (name, text) in [("told.log", told), ("damage.log", damage), ("breaches.log", breaches)] {
            fs::write(folder.join(name), text).unwrap();
        }
        folder
    }
}
