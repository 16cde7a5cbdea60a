//! A database that takes requests and does not answer: all of its processes are stopped, and go on later.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{Answers, Memory, rows};
use crate::{
    Result,
    cell::setting,
    child::Process,
    load::{self, Client, Request, unique},
    place::Place,
    serve::Setting,
    variant::Variant,
};

/// So long the database is silent if not all have their answer before. More than a verb waits, and less than a lease.
const SILENT: Duration = Duration::from_secs(15);
/// Who has no answer by then is said to have none.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn database(
    place: &mut Place,
    variant: Variant,
    waiting: usize,
    store_timeout: Duration,
) -> Result<String> {
    place.clear().await?;
    let process = Process::start(&Setting { store_timeout, ..setting(place, variant) }).await?;
    let address = process.address();
    load::prepare(address, 64).await?; // so that its connections are there
    place.clear().await?;
    let clients = connected(address, waiting).await?;
    let memory = Memory::watch(process.pid()?);
    let stopped = Stopped::all_of(place)?;
    let mut waited = send_all(clients, stopped).await?;
    let [before, first, second] = memory.seen().await?;
    let settled = ask_again(address, waited.keys).await?;
    process.stop().await?;
    let (effects, of_keys, most) = place.effects().await?;
    Ok(format!(
        "\n#### {variant}: a database that is silent for up to {} s, with {waiting} requests waiting\n\n{}\n\
         {} got no answer within {} s; the last one came after {:.1} s. Memory of the server: {before:.0} MiB before, \
         at most {first:.0} in the first half, at most {second:.0} in the second. When it spoke again, each key was asked for \
         once more until it was answered: {settled} of {waiting} were within {} s, with {effects} effects of {of_keys} keys, at \
         most {most} of one.\n",
        SILENT.as_secs(),
        rows(&mut waited.answers),
        waited.unanswered,
        PATIENCE.as_secs(),
        waited.last.as_secs_f64(),
        PATIENCE.as_secs(),
    ))
}

/// What became of those who wait.
#[derive(Debug, Default)]
struct Waited {
    answers: Answers,
    unanswered: u64,
    keys: Vec<u64>,
    /// When the last answer came.
    last: Duration,
}

/// One request each, all at once. The database goes on when all are answered, or its time is over.
async fn send_all(clients: Vec<Client>, stopped: Stopped) -> Result<Waited> {
    let (start, mut stopped) = (Instant::now(), Some(stopped));
    let mut requests = JoinSet::new();
    for mut client in clients {
        requests.spawn(async move {
            let (nr, mut request, start) = (unique(), Request::new(Duration::ZERO), Instant::now());
            let reply = timeout(PATIENCE, client.send(request.with_key(nr))).await.ok();
            (nr, reply.map(|reply| reply.map_or(0, |reply| reply.status)), start.elapsed())
        });
    }
    let mut waited = Waited::default();
    while !requests.is_empty() {
        match timeout(SILENT.saturating_sub(start.elapsed()), requests.join_next()).await {
            Err(_) if stopped.is_some() => stopped = None,
            Err(_) => sleep(Duration::from_millis(10)).await, // it speaks again; the rest is answered soon
            Ok(None) => break,
            Ok(Some(ended)) => {
                let (nr, status, took) = ended?;
                waited.keys.push(nr);
                let Some(status) = status else {
                    waited.unanswered += 1;
                    continue;
                };
                waited.answers.entry(status).or_default().push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
                waited.last = start.elapsed();
            }
        }
    }
    Ok(waited)
}

/// So many clients, each with its connection.
async fn connected(address: SocketAddr, count: usize) -> Result<Vec<Client>> {
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        let mut client = Client::new(address);
        client.send(b"GET /asleep HTTP/1.1\r\nhost: bench\r\n\r\n").await?;
        clients.push(client);
    }
    Ok(clients)
}

/// All again, a few at a time, until each is answered 201 or the time is over; how many are.
async fn ask_again(address: SocketAddr, mut open: Vec<u64>) -> Result<usize> {
    let (all, start) = (open.len(), Instant::now());
    let (mut client, mut request) = (Client::new(address), Request::new(Duration::ZERO));
    while !open.is_empty() && start.elapsed() < PATIENCE {
        let mut still = Vec::new();
        for nr in open {
            if start.elapsed() > PATIENCE || !client.send(request.with_key(nr)).await.is_ok_and(|it| it.status == 201) {
                still.push(nr);
            }
        }
        open = still;
        if !open.is_empty() {
            sleep(Duration::from_millis(500)).await; // as a client does that is told to
        }
    }
    Ok(all - open.len())
}

/// Processes that stand still until this is dropped.
struct Stopped(Vec<Pid>);

impl Stopped {
    fn all_of(place: &Place) -> Result<Self> {
        let Place::Postgres { server, .. } = place else { return Err("only a server can be stopped".into()) };
        let processes = server.processes()?.into_iter().filter_map(Pid::from_raw).collect();
        let stopped = Self(processes);
        for &process in &stopped.0 {
            let _ = kill_process(process, Signal::STOP); // one may have ended since it was listed
        }
        Ok(stopped)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for &process in &self.0 {
            let _ = kill_process(process, Signal::CONT);
        }
    }
}
