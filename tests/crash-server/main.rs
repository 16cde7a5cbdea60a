//! The program that the killing harness (`tests/it/crash`) starts, kills and freezes: one route per way in which a body can
//! run, and jobs of a queue beside them. What a run does is drawn by `plan.rs`, which the harness shares.
//!
//! Read from the environment: `DATABASE_URL`, `DATABASE_POOLER` (set where a pooler gives each transaction another connection),
//! `PROVIDER` (the base URL of the harness' provider), `QUEUE` (that of its queue, if this one does jobs), `SEED`, `MIX`, `BROKEN`,
//! an engine or a worker that must be found out, and `DIES_AT`, the number of the moment at which it kills itself (before or
//! after a statement), and `BATCH`, how many records share a statement. It listens on a free port of the loopback, and says so in one line.
#![allow(clippy::unwrap_used, reason = "a program of a test ends where something is not as it must be")]

mod bodies;
mod broken;
mod dying;
#[path = "../it/support/forwarding.rs"]
mod forwarding;
#[path = "../it/crash/plan.rs"]
#[allow(dead_code, reason = "the harness needs more of it")]
mod plan;
mod provider;
mod worker;

use std::{env, io::Read, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::FromRef,
    routing::{MethodRouter, post},
};
use idem_runtime::{PostgresStore, Runtime, SqliteStore, store::Store};
use sqlx::{PgPool, Postgres, Sqlite};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::task::TaskTracker;

use self::{
    bodies::{deduped, held, recovered, resumable, transactional},
    broken::Broken,
    dying::Dying,
    forwarding::Forwarding,
    plan::{LEASE, Mix},
    provider::Provider,
    worker::Queue,
};

#[derive(Clone, FromRef)]
struct App {
    idem: Runtime,
    chance: Chance,
    provider: Provider,
}

/// What decides about every run.
#[derive(Clone, Copy)]
struct Chance {
    seed: u64,
    mix: Mix,
}

/// Longer than the longest freeze of the harness (`faults.rs`), and what a thawed body still does.
const QUARANTINE: Duration = Duration::from_secs(10);
/// On SQLite it holds the one write lock that renewals need.
const TRANSACTION_TIMEOUT: Duration = Duration::from_millis(300);

#[tokio::main(worker_threads = 2)]
async fn main() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]); // ends when the harness does, whatever ended that
        std::process::exit(1);
    });
    let url = env::var("DATABASE_URL").unwrap();
    let chance = Chance {
        seed: env::var("SEED").unwrap().parse().unwrap(),
        mix: Mix::named(&env::var("MIX").unwrap()).unwrap(),
    };
    let provider = Provider::new(env::var("PROVIDER").unwrap());
    let (store, transactional, resumable) = over(&url).await;
    let broken = env::var("BROKEN").ok();
    let worker = broken.as_deref().and_then(worker::Fault::named);
    let store = match broken {
        Some(broken) if worker.is_none() => Arc::new(Forwarding::new(store, Broken::new(&broken, &url).await)),
        _ => store,
    };
    let store = match env::var("DIES_AT") {
        Ok(moment) => Arc::new(Forwarding::new(store, Dying::new(moment.parse().unwrap()))),
        Err(_) => store,
    };
    let asked = provider.clone();
    let idem = Runtime::builder(store)
        .namespace("crash")
        .lease(LEASE)
        .quarantine(QUARANTINE)
        .transaction_timeout(TRANSACTION_TIMEOUT)
        .store_timeout(Duration::from_secs(2))
        .batch(env::var("BATCH").map_or(128, |batch| batch.parse().unwrap()))
        .recover("recovered", move |doubt| bodies::find_out(asked.clone(), doubt))
        .build()
        .await
        .unwrap();
    let app = App { idem: idem.clone(), chance, provider };
    // One line here, and one in the harness' table of modes, per mode.
    let router = Router::new()
        .route("/held", post(held))
        .route("/recovered", post(recovered))
        .route("/deduped", post(deduped))
        .route("/transactional", transactional)
        .route("/resumable", resumable)
        .with_state(app.clone());
    let jobs = TaskTracker::new();
    if let Ok(queue) = env::var("QUEUE") {
        worker::begin(&app, &Queue::new(queue), worker, &jobs);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listens on {}", listener.local_addr().unwrap());
    let mut terminate = signal(SignalKind::terminate()).unwrap();
    let draining = idem.clone();
    let stopped = async move {
        terminate.recv().await;
        draining.start_draining();
    };
    axum::serve(listener, router).with_graceful_shutdown(stopped).await.unwrap();
    let _ = idem.shutdown(Duration::from_secs(2)).await; // what is left is in doubt, which is what is looked at
    jobs.close();
    let _ = tokio::time::timeout(Duration::from_secs(1), jobs.wait()).await; // so that the queue hears of what is done
}

/// The one place that knows which database it is.
async fn over(url: &str) -> (Arc<dyn Store>, MethodRouter<App>, MethodRouter<App>) {
    if url.starts_with("sqlite:") {
        let store = SqliteStore::connect(url).await.unwrap();
        store.migrate().await.unwrap();
        (Arc::new(store), post(transactional::<Sqlite>), post(resumable::<Sqlite>))
    } else {
        let store = PostgresStore::new(&PgPool::connect_lazy(url).unwrap());
        let pooled = env::var("DATABASE_POOLER").is_ok();
        let store = if pooled { store.with_simple_protocol() } else { store };
        store.migrate().await.unwrap();
        (Arc::new(store), post(transactional::<Postgres>), post(resumable::<Postgres>))
    }
}
