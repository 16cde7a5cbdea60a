//! The servers: real processes, each in a place of its own, started again whenever they are gone.

use std::{
    env,
    fs::{self, OpenOptions},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    sync::Mutex as AsyncMutex,
    time::timeout,
};

use super::plan::Mix;

/// How many servers there are.
pub(crate) const SERVERS: usize = 3;

/// What all of them are started with.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) database: String,
    /// It is a pooler's that gives each transaction another connection.
    pub(crate) pooled: bool,
    pub(crate) provider: String,
    pub(crate) queue: String,
    pub(crate) seed: u64,
    pub(crate) mix: Mix,
    pub(crate) broken: Option<&'static str>,
    /// The application's clock is off by these, where `faketime` is installed.
    pub(crate) clocks: [&'static str; SERVERS],
    /// Where what they write to their standard error goes.
    pub(crate) folder: PathBuf,
}

/// All are killed when this is dropped.
pub(crate) struct Fleet {
    setting: Setting,
    /// Locked by whoever does something to it; clients only look where it listens.
    processes: [AsyncMutex<Option<Child>>; SERVERS],
    addresses: Arc<Mutex<[Option<SocketAddr>; SERVERS]>>,
}

pub(crate) const LISTENS: &str = "listens on ";
/// A starting server may find its database gone.
const STARTING: Duration = Duration::from_secs(20);

impl Fleet {
    pub(crate) async fn start(setting: Setting) -> Self {
        let fleet = Self { setting, processes: Default::default(), addresses: Arc::default() };
        for server in 0..SERVERS {
            fleet.begin(server).await;
        }
        fleet
    }

    /// Where it listens; `None` while it is gone.
    pub(crate) fn address(&self, server: usize) -> Option<SocketAddr> {
        self.addresses.lock().unwrap()[server]
    }

    /// Starts it, again and again until it listens.
    pub(crate) async fn begin(&self, server: usize) {
        self.begin_with(self.setting.mix, server).await;
    }

    async fn begin_with(&self, mix: Mix, server: usize) {
        let mut process = self.processes[server].lock().await;
        for _ in 0..50 {
            let mut child = self.spawn(mix, server);
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let line = timeout(STARTING, lines.next_line()).await.ok().and_then(|line| line.unwrap());
            remove_shared_memory(&child);
            if let Some(line) = line {
                let address = line.strip_prefix(LISTENS).unwrap_or_else(|| panic!("it says {line}"));
                self.addresses.lock().unwrap()[server] = Some(address.parse().unwrap());
                *process = Some(child);
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await; // between two tries
        }
        panic!("server {server} does not start; see {}", self.setting.folder.display());
    }

    fn spawn(&self, mix: Mix, server: usize) -> Child {
        let Setting { database, pooled, provider, queue, seed, broken, clocks, folder, .. } = &self.setting;
        let errors = OpenOptions::new().create(true).append(true).open(folder.join(format!("server-{server}.log")));
        let mut command = Command::new(binary());
        command
            .env("DATABASE_URL", database)
            .env("PROVIDER", provider)
            .env("QUEUE", format!("{queue}/{server}"))
            .env("SEED", seed.to_string())
            .env("MIX", mix.name())
            .current_dir(folder)
            .stdin(Stdio::piped()) // at whose end it ends
            .stdout(Stdio::piped())
            .stderr(errors.unwrap())
            .kill_on_drop(true);
        if *pooled {
            command.env("DATABASE_POOLER", "transaction");
        }
        if let Some(broken) = broken {
            command.env("BROKEN", broken);
        }
        if let (Some(library), false) = (faketime(), clocks[server].is_empty()) {
            command.env("LD_PRELOAD", library).env("FAKETIME", clocks[server]).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        command.spawn().unwrap()
    }

    pub(crate) async fn signal(&self, server: usize, signal: Signal) {
        if let Some(child) = &*self.processes[server].lock().await {
            send(child, signal);
        }
    }

    /// `kill -9`; returns when it is dead.
    pub(crate) async fn kill(&self, server: usize) {
        let mut process = self.processes[server].lock().await;
        self.addresses.lock().unwrap()[server] = None;
        if let Some(mut child) = process.take() {
            child.kill().await.unwrap();
        }
    }

    /// Asks it to stop, and waits for it; kills it after 10 s.
    pub(crate) async fn stop(&self, server: usize) {
        let mut process = self.processes[server].lock().await;
        if let Some(mut child) = process.take() {
            send(&child, Signal::TERM);
            let stopped = timeout(Duration::from_secs(10), child.wait()).await;
            self.addresses.lock().unwrap()[server] = None;
            if stopped.is_err() {
                child.kill().await.unwrap();
            }
        }
    }

    /// All of them, killed and started: nobody from before is left, and from now on bodies are drawn like this.
    pub(crate) async fn renew(&self, mix: Mix) {
        for server in 0..SERVERS {
            self.kill(server).await;
        }
        for server in 0..SERVERS {
            self.begin_with(mix, server).await;
        }
    }
}

fn send(child: &Child, signal: Signal) {
    if let Some(id) = child.id() {
        let _ = kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), signal); // it may be gone
    }
}

/// Where cargo puts it: in the folder of examples, beside that of this test's own binary.
pub(crate) fn binary() -> PathBuf {
    let deps = env::current_exe().unwrap();
    let binary = deps.ancestors().nth(2).unwrap().join("examples/crash-server");
    assert!(binary.exists(), "no {}: run `cargo build -p idem-tests --examples` first", binary.display());
    binary
}

/// What `faketime` shares with the children of a process, which has none: it leaves these files behind where it is killed.
/// Once it runs it has no use for their names.
fn remove_shared_memory(child: &Child) {
    if let Some(id) = child.id() {
        for name in ["faketime_shm_", "sem.faketime_sem_"] {
            let _ = fs::remove_file(format!("/dev/shm/{name}{id}")); // there are none where its clock is right
        }
    }
}

/// The library of Debian's `faketime`, if it is installed.
pub(crate) fn faketime() -> Option<PathBuf> {
    let folders = ["/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime"];
    folders.into_iter().map(|folder| Path::new(folder).join("libfaketimeMT.so.1")).find(|file| file.exists())
}
