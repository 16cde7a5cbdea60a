//! The damage: who is killed, frozen, stopped or cut off, when and for how long. All of it is drawn from the seed.

use std::{
    ops::Range,
    sync::{Arc, Mutex},
    time::Duration,
};

use fastrand::Rng;
use rustix::process::Signal;
use tokio::time::sleep;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    clients::Clients,
    fleet::{Fleet, SERVERS},
    log::Damage,
};
use crate::support::{Backend, Cut, Place, Proxy, bouncer::Bouncer, server::Server};

const COMMIT: &[u8] = b"COMMIT";

/// Something to do to a server, or to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    Kill,
    /// For longer than a lease.
    Freeze,
    /// For longer than Postgres waits for a transaction's owner, and than a hook waits before it asks.
    LongFreeze,
    /// For so long that a hook has settled what was under way.
    Coma,
    Stop,
    /// Ends the sessions of random clients, on the server's side.
    Terminate,
    /// The database crashes, and comes back.
    Restart,
    /// So does the pooler.
    PoolerCrash,
    /// A message to the database is lost, and its connection with it; or the reply is.
    Lost,
    ReplyLost,
    /// The same, of a COMMIT.
    CommitLost,
    CommitReplyLost,
}

impl Fault {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kill => "killed",
            Self::Freeze => "frozen",
            Self::LongFreeze => "frozen for long",
            Self::Coma => "frozen for very long",
            Self::Stop => "stopped",
            Self::Terminate => "sessions ended",
            Self::Restart => "database crashed",
            Self::PoolerCrash => "pooler crashed",
            Self::Lost => "message lost",
            Self::ReplyLost => "reply lost",
            Self::CommitLost => "COMMIT lost",
            Self::CommitReplyLost => "COMMIT's reply lost",
        }
    }

    fn lasts(self) -> Range<u64> {
        match self {
            Self::Freeze => 1_300..2_500,
            Self::LongFreeze => 6_400..6_800, // well below the server's quarantine of 10 s
            Self::Coma => 8_800..9_200,
            Self::Kill | Self::Restart => 0..300,
            Self::Stop | Self::Terminate => 0..1,
            Self::PoolerCrash => 300..301, // until the next one listens
            Self::Lost | Self::ReplyLost | Self::CommitLost | Self::CommitReplyLost => 1_000..1_001, // at most
        }
    }
}

/// What may happen, each as often as its weight says, and how long it is quiet in between, in ms.
#[derive(Clone)]
pub(crate) struct Menu {
    /// How many of the servers are damaged.
    pub(crate) servers: usize,
    pub(crate) of_a_server: &'static [(Fault, u32)],
    pub(crate) of_the_database: &'static [(Fault, u32)],
    pub(crate) quiet: Range<u64>,
}

/// A server of Postgres, what stands before it, and the wire from the programs to that.
pub(crate) struct Database {
    pub(crate) server: Server,
    pub(crate) pooler: Option<Bouncer>,
    pub(crate) wire: Proxy,
}

/// What can be damaged.
#[derive(Clone)]
pub(crate) struct Targets {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) place: Arc<Place>,
    /// Of the harness' own, and the wire to it; none on SQLite.
    pub(crate) database: Option<Arc<Database>>,
    pub(crate) damage: Arc<Mutex<Vec<Damage>>>,
    /// For the time.
    pub(crate) clients: Clients,
}

impl Targets {
    /// One task per server and one for the database, until they are told to stop. All is alive again when they have ended.
    pub(crate) fn begin(&self, menu: &Menu, random: &mut Rng, stop: &CancellationToken, tasks: &TaskTracker) {
        for server in 0..menu.servers {
            self.repeat(Some(server), menu.of_a_server, menu.quiet.clone(), random.fork(), stop, tasks);
        }
        if self.database.is_some() {
            self.repeat(None, menu.of_the_database, menu.quiet.clone(), random.fork(), stop, tasks);
        }
    }

    fn repeat(
        &self,
        server: Option<usize>,
        faults: &'static [(Fault, u32)],
        quiet: Range<u64>,
        mut random: Rng,
        stop: &CancellationToken,
        tasks: &TaskTracker,
    ) {
        let (own, stop) = (self.clone(), stop.clone());
        tasks.spawn(async move {
            loop {
                let pause = Duration::from_millis(random.u64(quiet.clone()));
                if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                    return;
                }
                if let Some(fault) = pick(faults, &mut random) {
                    own.cause(fault, server, &mut random).await;
                }
            }
        });
    }

    async fn cause(&self, fault: Fault, server: Option<usize>, random: &mut Rng) {
        let from = self.clients.now();
        let lasts = Duration::from_millis(random.u64(fault.lasts()));
        match (fault, server) {
            (Fault::Kill, Some(server)) => {
                self.fleet.kill(server).await;
                sleep(lasts).await;
                self.fleet.begin(server).await;
            }
            (Fault::Freeze | Fault::LongFreeze | Fault::Coma, Some(server)) => {
                if fault == Fault::Coma && self.database.is_none() {
                    self.ask("begin immediate; rollback").await; // rather not while it keeps all others from writing
                }
                self.fleet.signal(server, Signal::STOP).await;
                sleep(lasts).await;
                self.fleet.signal(server, Signal::CONT).await;
            }
            (Fault::Stop, Some(server)) => {
                self.fleet.stop(server).await;
                self.fleet.begin(server).await;
            }
            (Fault::Terminate, _) => self.end_sessions(random.u32(1..4)).await,
            (Fault::Restart, _) => self.restart(lasts).await,
            (Fault::PoolerCrash, _) => {
                self.database().pooler.as_ref().expect("there is a pooler").crash();
                sleep(lasts).await;
            }
            (Fault::Lost, _) => self.cut(Cut::Before, None, lasts).await,
            (Fault::ReplyLost, _) => self.cut(Cut::After, None, lasts).await,
            (Fault::CommitLost, _) => self.cut(Cut::Before, Some(COMMIT), lasts).await,
            (Fault::CommitReplyLost, _) => self.cut(Cut::After, Some(COMMIT), lasts).await,
            (_, None) => {}
        }
        // Whoever is frozen while it writes keeps all others from SQLite's one file.
        let froze = matches!(fault, Fault::Freeze | Fault::LongFreeze | Fault::Coma);
        let everybody = self.database.is_none() && froze;
        let damage = Damage { what: fault.name(), server: server.filter(|_| !everybody), from, to: self.clients.now() };
        self.damage.lock().unwrap().push(damage);
    }

    /// Of the servers only: the harness' own session says who it is.
    async fn end_sessions(&self, count: u32) {
        let end = format!(
            "select count(pg_terminate_backend(pid)) from (select pid from pg_stat_activity
             where backend_type = 'client backend' and pid <> pg_backend_pid() order by random() limit {count}) as some"
        );
        self.ask(&end).await;
    }

    /// As it goes: the database may be down, or locked.
    async fn ask(&self, sql: &str) {
        let _ = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(self.place.database().await).await;
    }

    fn database(&self) -> &Arc<Database> {
        self.database.as_ref().expect("there is a server")
    }

    /// Returns when it is cut, or nobody sends such a message.
    async fn cut(&self, cut: Cut, what: Option<&[u8]>, at_most: Duration) {
        let wire = &self.database().wire;
        let done = || wire.counts().before + wire.counts().after;
        let before = done();
        wire.cut_next(cut, what);
        let begun = self.clients.now();
        while done() == before && self.clients.now() - begun < at_most {
            sleep(Duration::from_millis(5)).await;
        }
    }

    async fn restart(&self, away: Duration) {
        let database = Arc::clone(self.database());
        tokio::task::spawn_blocking(move || {
            database.server.stop();
            std::thread::sleep(away);
            database.server.start_again();
        })
        .await
        .unwrap();
    }
}

fn pick(faults: &[(Fault, u32)], random: &mut Rng) -> Option<Fault> {
    let all: u32 = faults.iter().map(|(_, weight)| weight).sum();
    let mut lot = random.u32(0..all.max(1));
    let chosen = faults.iter().find(|(_, weight)| {
        let hit = lot < *weight;
        lot = lot.saturating_sub(*weight);
        hit
    });
    chosen.map(|(fault, _)| *fault)
}

const BEHIND_A_POOLER: &[(Fault, u32)] = &[
    (Fault::PoolerCrash, 2),
    (Fault::Terminate, 6),
    (Fault::Restart, 1),
    (Fault::Lost, 4),
    (Fault::ReplyLost, 4),
    (Fault::CommitLost, 4),
    (Fault::CommitReplyLost, 4),
];

/// All of it, as the long run has it.
pub(crate) fn everything(backend: Backend) -> Menu {
    Menu {
        servers: SERVERS,
        of_a_server: match backend {
            // Frozen while it writes, a server keeps all others from writing, so all that runs ends in doubt.
            Backend::Sqlite => &[(Fault::Kill, 8), (Fault::Freeze, 2), (Fault::Stop, 2)],
            _ => &[(Fault::Kill, 6), (Fault::Freeze, 4), (Fault::LongFreeze, 1), (Fault::Stop, 2)],
        },
        of_the_database: match backend {
            Backend::PgBouncer => BEHIND_A_POOLER,
            _ => &BEHIND_A_POOLER[1..], // there is none
        },
        quiet: 1_000..3_500,
    }
}
