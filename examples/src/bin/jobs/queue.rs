//! The queue: apalis, with its tables in the same database.
//!
//! It delivers at least once: the jobs of a worker that is silent for three seconds are given to another. What it is told
//! about a job (`done`, `failed`, `killed`) it writes down; a job that failed comes again, as soon as its `run_at` is over.

use std::{error::Error, time::Duration};

use apalis::prelude::{
    AbortError, BackendExt, BoxDynError, Data, TaskBuilder, TaskId, TaskSink, WorkerBuilder, WorkerBuilderExt,
};
use apalis_postgres::PostgresStorage;
use apalis_sqlite::SqliteStorage;
use futures_util::stream;
use idem_runtime::{Runtime, jobs::Redelivery};
use serde::{Deserialize, Serialize};
use sqlx::{PgPool, SqlitePool};
use tokio::signal::unix::{SignalKind, signal};
use uuid::Uuid;

use crate::capture::{Job, JobError, Worker, capture};

#[derive(Clone)]
pub(crate) enum Queue {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// What the queue keeps of a job; its id is the queue's own.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Payment {
    amount: i64,
}

/// The scope of the jobs' keys, too: another queue has ids of its own.
const NAME: &str = "captures";
/// A worker is taken for dead after so many silent seconds.
const SILENT: usize = 3;
/// A job that was put off, or whose gateway was down, has not failed: it is not given up for the number of its tries.
const TRIES: usize = 1_000_000;
const AT_ONCE: usize = 8;
const POLL: Duration = Duration::from_millis(200);
/// For whatever is not known better.
const SOON: Duration = Duration::from_secs(1);

/// The two storages are made, filled and worked off alike, but are of different types.
macro_rules! storage {
    ($krate:ident, $storage:ident, $pool:expr) => {
        $storage::<Payment>::new($pool).with_config(
            $krate::Config::default()
                .queue(NAME)
                .heartbeat_interval(Duration::from_secs(1))
                .missed_heartbeats(SILENT)
                .lock_tasks(false), // by a statement more; a job that was fetched is this worker's
        )
    };
}

macro_rules! worked_off {
    ($storage:expr, $worker:expr) => {
        WorkerBuilder::new(format!("jobs-{}", Uuid::new_v4()))
            .backend($storage.poll_with_interval(POLL))
            .concurrency(AT_ONCE)
            .data($worker.clone())
            .build(deliver)
            .run_until(stopped($worker.idem.clone()))
            .await
    };
}

impl Queue {
    /// Makes the queue's tables. Not by `setup`, which on SQLite switches off that a commit is durable.
    pub(crate) async fn connect(url: &str) -> Result<Self, Box<dyn Error>> {
        if url.starts_with("sqlite:") {
            let pool = SqlitePool::connect(url).await?;
            SqliteStorage::migrations().run(&pool).await?;
            return Ok(Self::Sqlite(pool));
        }
        let pool = PgPool::connect(url).await?;
        PostgresStorage::migrations().run(&pool).await?;
        Ok(Self::Postgres(pool))
    }

    pub(crate) async fn enqueue(&self, count: u32) -> Result<(), Box<dyn Error>> {
        let job = |n| TaskBuilder::new(Payment { amount: 100 + i64::from(n) }).max_attempts(TRIES).build();
        let mut jobs = stream::iter((0..count).map(job));
        match self {
            Self::Sqlite(pool) => storage!(apalis_sqlite, SqliteStorage, pool).push_all(&mut jobs).await?,
            Self::Postgres(pool) => storage!(apalis_postgres, PostgresStorage, pool).push_all(&mut jobs).await?,
        }
        Ok(())
    }

    /// Not to be delivered before `after` is over: the one thing that the queue has no word for.
    async fn put_off(&self, job: &str, after: Duration) -> Result<(), sqlx::Error> {
        let seconds = i64::try_from(after.as_secs()).unwrap_or(i64::MAX).saturating_add(1); // it counts whole ones
        match self {
            Self::Sqlite(pool) => {
                let put_off = "update Jobs set run_at = unixepoch() + $1 where id = $2";
                sqlx::query(put_off).bind(seconds).bind(job).execute(pool).await?;
            }
            Self::Postgres(pool) => {
                let put_off = "update apalis.jobs set run_at = now() + $1 * interval '1 second' where id = $2";
                sqlx::query(put_off).bind(seconds).bind(job).execute(pool).await?;
            }
        }
        Ok(())
    }
}

/// Works until the process is told to stop. A worker that lost the queue's database is followed by another.
pub(crate) async fn work(worker: Worker) -> Result<(), Box<dyn Error>> {
    while !worker.idem.is_draining() {
        let worked = match &worker.queue {
            Queue::Sqlite(pool) => worked_off!(storage!(apalis_sqlite, SqliteStorage, pool), worker),
            Queue::Postgres(pool) => worked_off!(storage!(apalis_postgres, PostgresStorage, pool), worker),
        };
        if let Err(error) = worked {
            tracing::warn!(%error, "the worker has ended, and begins anew");
            tokio::time::sleep(SOON).await;
        }
    }
    Ok(())
}

async fn stopped(idem: Runtime) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    idem.start_draining();
    Ok(())
}

/// One delivery. `Ok` is an acknowledgement, an [`AbortError`] parks the job (`Killed`, for a person to look at), and
/// any other error gives it back. (Not a `RetryAfterError`: on SQLite, apalis 1.0 leaves such a job pending and locked, and
/// never fetches it.)
async fn deliver(payment: Payment, id: TaskId, worker: Data<Worker>) -> Result<Option<String>, BoxDynError> {
    let job = Job { queue: NAME, id: id.to_string(), amount: payment.amount };
    let (error, after): (BoxDynError, Duration) = match capture(&worker, &job).await {
        Ok(charge) => return Ok(Some(charge.id)), // kept by the queue with the job
        Err(JobError::Gateway(error)) => (error.into(), SOON),
        Err(JobError::Idempotency(error)) => match error.redelivery() {
            Redelivery::Ack => return Ok(None),
            Redelivery::Retry { after } => (error.into(), after),
            _ => return Err(AbortError::new(error).into()),
        },
    };
    worker.queue.put_off(&job.id, after).await?;
    Err(error)
}
