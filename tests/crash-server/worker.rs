//! The worker of a queue: it takes job after job, and tells the queue what became of each.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use idem_runtime::{ErrorKind, jobs::Redelivery};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use super::{
    App,
    bodies::{self, JobError, Order},
};

/// The harness' queue, which delivers at least once: a job of which it does not hear in time comes again.
#[derive(Clone)]
pub(crate) struct Queue {
    base: String,
    client: reqwest::Client,
}

/// Workers that break the contract. The harness must find them out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The function that does the job is not annotated.
    Bare,
    /// What another one is doing is acknowledged.
    AcksInProgress,
}

#[derive(Deserialize)]
struct Delivery {
    nr: u64,
    job: String,
}

/// For a server that takes jobs, too.
const AT_ONCE: usize = 8;
/// Of a job that failed.
const SOON: Duration = Duration::from_millis(100);

impl Fault {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "bare" => Some(Self::Bare),
            "acks-in-progress" => Some(Self::AcksInProgress),
            _ => None,
        }
    }
}

impl Queue {
    /// `base` says whose deliveries these are.
    pub(crate) fn new(base: String) -> Self {
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(3)).build().unwrap();
        Self { base, client }
    }

    /// Waits for a while.
    async fn next(&self) -> Result<Option<Delivery>, reqwest::Error> {
        self.client.get(format!("{}/next", self.base)).send().await?.error_for_status()?.json().await
    }

    async fn tell(&self, delivery: u64, told: &Value) -> Result<(), reqwest::Error> {
        self.client.post(format!("{}/{delivery}", self.base)).json(told).send().await?.error_for_status().map(drop)
    }
}

/// Works off the queue until the process drains; what was begun is brought to its end.
pub(crate) fn begin(app: &App, queue: &Queue, fault: Option<Fault>, tasks: &TaskTracker) {
    for _ in 0..AT_ONCE {
        let (app, queue) = (app.clone(), queue.clone());
        tasks.spawn(async move {
            while !app.idem.is_draining() {
                let Delivery { nr, job } = match queue.next().await {
                    Ok(Some(delivery)) => delivery,
                    Ok(None) => continue,
                    Err(_) => {
                        tokio::time::sleep(SOON).await;
                        continue;
                    }
                };
                let one = tokio::spawn(deliver(app.clone(), job, fault));
                let told = one.await.unwrap_or_else(|_| back(500, None, SOON)); // a job may panic, its worker goes on
                let _ = queue.tell(nr, &told).await; // should it not hear of it, the job comes again
            }
        });
    }
}

/// What the queue is told. Only what comes without `after` is over.
async fn deliver(app: App, job: String, fault: Option<Fault>) -> Value {
    let (order, ran) = (Order { key: job }, AtomicBool::new(false));
    let done = match fault {
        Some(Fault::Bare) => bodies::bare(&app, &order).await,
        _ => bodies::job(&app, &order, &ran).await,
    };
    let error = match done {
        Ok(told) => {
            let replayed = !ran.load(Ordering::Relaxed);
            return json!({ "status": told["status"], "body": told.to_string(), "replayed": replayed });
        }
        Err(JobError::Failed) => return back(500, None, SOON),
        Err(JobError::Idempotency(error)) => error,
    };
    let in_progress = matches!(error.kind(), ErrorKind::InProgress { .. });
    let (status, slug) = said(error.kind());
    match error.redelivery() {
        _ if in_progress && fault == Some(Fault::AcksInProgress) => json!({ "status": 200 }),
        Redelivery::Ack => json!({ "status": 200 }),
        Redelivery::Retry { after } => back(status, Some(&slug), after),
        _ => json!({ "status": status, "slug": slug }),
    }
}

/// It is to come again.
fn back(status: u16, slug: Option<&str>, after: Duration) -> Value {
    json!({ "status": status, "slug": slug, "after": u64::try_from(after.as_millis()).unwrap_or(u64::MAX) })
}

/// In the words of the other modes, which are those of problems.
fn said(kind: ErrorKind) -> (u16, String) {
    let (status, slug) = match kind {
        ErrorKind::InProgress { .. } => (409, "in-progress"),
        ErrorKind::InDoubt => (409, "outcome-unknown"),
        ErrorKind::Unavailable { .. } => (503, "store-unavailable"),
        ErrorKind::Draining => (503, "draining"),
        ErrorKind::TimedOut => (500, "body-timeout"),
        ErrorKind::Panicked => (500, "body-panicked"),
        other => return (500, format!("{other:?}")), // which nobody expects
    };
    (status, format!("idempotency-{slug}"))
}
