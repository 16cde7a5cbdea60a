//! The load: as many connections as it is told, each of which sends its next request when it has its answer.

mod client;
mod request;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

pub(crate) use self::{
    client::{Client, Reply},
    request::{Request, key},
};
use crate::Result;

/// Which keys are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Never one twice.
    Unique,
    /// Any of so many, which have been answered before.
    Hot(u64),
}

/// The next unique key of this process. They begin beyond all hot ones.
static NEXT: AtomicU64 = AtomicU64::new(1 << 32);

/// A number whose key nobody has sent yet.
pub(crate) fn unique() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) address: SocketAddr,
    pub(crate) connections: usize,
    pub(crate) keys: Keys,
    pub(crate) warm_up: Duration,
    pub(crate) request: Request,
}

/// What came of a load.
#[derive(Debug)]
pub(crate) struct Driven<S> {
    /// Answers, the warm-up's included.
    pub(crate) all: u64,
    /// Answers while it was measured, and for how long that was.
    pub(crate) answers: u64,
    pub(crate) seconds: f64,
    /// Of those, in microseconds, sorted.
    pub(crate) latencies: Vec<u32>,
    /// What was answered, the warm-up's included; 0 is a connection that broke.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// What the caller has sampled when that began, and when it ended.
    pub(crate) samples: [S; 2],
}

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const OVER: u8 = 2;

/// So long is waited for a first answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What all connections share.
struct Shared {
    load: Load,
    phase: AtomicU8,
    /// Answers while it was measured.
    answers: AtomicU64,
}

#[derive(Debug, Default)]
struct Seen {
    latencies: Vec<u32>,
    statuses: BTreeMap<u16, u64>,
}

/// Drives it, and measures for as long as `during` takes. `sample` is called when that begins, and when it has ended.
pub(crate) async fn closed<S, T>(
    load: &Load,
    during: impl Future<Output = T>,
    mut sample: impl FnMut() -> Result<S>,
) -> Result<(Driven<S>, T)> {
    let shared = Arc::new(Shared { load: load.clone(), phase: AtomicU8::new(WARMING), answers: AtomicU64::new(0) });
    let mut connections = JoinSet::new();
    for _ in 0..load.connections {
        connections.spawn(connection(Arc::clone(&shared)));
    }
    tokio::time::sleep(load.warm_up).await;
    let (before, start) = (sample()?, Instant::now());
    shared.phase.store(MEASURING, Ordering::Relaxed);
    let done = during.await;
    while shared.answers.load(Ordering::Relaxed) == 0 && start.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(1)).await; // a machine that is busy with something else
    }
    shared.phase.store(OVER, Ordering::Relaxed);
    let (seconds, after) = (start.elapsed().as_secs_f64(), sample()?);
    let mut all = Seen::default();
    while let Some(seen) = connections.join_next().await {
        let seen = seen?;
        all.latencies.extend(seen.latencies);
        for (status, count) in seen.statuses {
            *all.statuses.entry(status).or_default() += count;
        }
    }
    all.latencies.sort_unstable();
    let driven = Driven {
        all: all.statuses.values().sum(),
        answers: all.latencies.len() as u64,
        seconds,
        latencies: all.latencies,
        statuses: all.statuses,
        samples: [before, after],
    };
    Ok((driven, done))
}

async fn connection(shared: Arc<Shared>) -> Seen {
    let (mut seen, mut request) = (Seen::default(), shared.load.request.clone());
    let mut client = Client::new(shared.load.address);
    loop {
        let nr = match shared.load.keys {
            Keys::Unique => unique(),
            Keys::Hot(count) => fastrand::u64(..count),
        };
        let start = Instant::now();
        let reply = client.send(request.with_key(nr)).await;
        let took = start.elapsed();
        *seen.statuses.entry(reply.map_or(0, |reply| reply.status)).or_default() += 1;
        match shared.phase.load(Ordering::Relaxed) {
            WARMING => {}
            MEASURING => {
                shared.answers.fetch_add(1, Ordering::Relaxed);
                seen.latencies.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
            }
            _ => return seen,
        }
    }
}

/// Sends each of so many keys, by a few connections, until it is answered: from now on it is a replay.
pub(crate) async fn prepare(address: SocketAddr, count: u64) -> Result<()> {
    let next = Arc::new(AtomicU64::new(0));
    let mut connections = JoinSet::<Result<()>>::new();
    for _ in 0..16 {
        let (next, mut client, mut request) = (Arc::clone(&next), Client::new(address), Request::new(Duration::ZERO));
        connections.spawn(async move {
            loop {
                let nr = next.fetch_add(1, Ordering::Relaxed);
                if nr >= count {
                    return Ok(());
                }
                until_answered(&mut client, request.with_key(nr)).await?;
            }
        });
    }
    while let Some(ended) = connections.join_next().await {
        ended??;
    }
    Ok(())
}

/// Sends it again as a client does that is told to, within bounds.
async fn until_answered(client: &mut Client, request: &[u8]) -> Result<()> {
    let start = Instant::now();
    loop {
        match client.send(request).await {
            Ok(Reply { status: 201, .. }) => return Ok(()),
            Ok(Reply { status: 409 | 503, .. }) if start.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Ok(reply) => return Err(format!("a first request was answered {}", reply.status).into()),
            Err(error) => return Err(format!("a first request was not answered: {error}").into()),
        }
    }
}

/// The value below which this share of the sorted ones lies, in milliseconds.
pub(crate) fn percentile(sorted: &[u32], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).map_or(f64::NAN, |&micros| f64::from(micros) / 1e3)
}
