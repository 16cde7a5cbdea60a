//! A worker whose jobs may be delivered twice, and whose process may be killed at any moment.
//!
//! `jobs enqueue N` puts N jobs into the queue, `jobs work` does them until it is stopped, `jobs effects` prints a line per
//! effect that the gateway knows: the job's id, and what the gateway calls the charge. Read from the environment:
//! `DATABASE_URL` (default `sqlite://jobs.db`, or `postgres://…`), for queue, records and the gateway's books;
//! `LEASE_SECONDS` (default 30), how long a process may be silent before its jobs are done by another.

mod capture;
mod gateway;
mod queue;

use std::{env, error::Error, time::Duration};

use idem_examples::lease;
use idem_runtime::{Builder, PostgresStore, Runtime, SqliteStore};
use sqlx::PgPool;

use capture::Worker;
use gateway::Gateway;
use queue::Queue;

const USAGE: &str = "usage: jobs enqueue N | jobs work | jobs effects";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_max_level(tracing::Level::ERROR).with_writer(std::io::stderr).init();
    let url = env::var("DATABASE_URL").unwrap_or_else(|_| "sqlite://jobs.db".to_owned());
    let builder = over(&url).await?.namespace("jobs").lease(lease()?);
    let (queue, gateway) = (Queue::connect(&url).await?, Gateway::connect(&url).await?);

    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["enqueue", count] => {
            let count = count.parse().map_err(|error| format!("{USAGE}: N is `{count}`: {error}"))?;
            queue.enqueue(count).await?;
            println!("{count} jobs are in the queue");
        }
        ["work"] => work(Worker { idem: builder.build().await?, gateway, queue }).await?,
        ["effects"] => {
            for effect in gateway.effects().await? {
                println!("{} {}", effect.job, effect.id);
            }
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

/// Until SIGTERM or Ctrl-C; then what runs is brought to its end, and nothing new begins.
async fn work(worker: Worker) -> Result<(), Box<dyn Error>> {
    let idem = worker.idem.clone();
    queue::work(worker).await?;
    let drained = idem.shutdown(Duration::from_secs(30)).await;
    if !drained.completed {
        tracing::error!(in_doubt = drained.in_doubt, "stopped before every job had ended");
    }
    Ok(())
}

/// The records' store.
async fn over(url: &str) -> Result<Builder, Box<dyn Error>> {
    match url.split(':').next() {
        Some("sqlite") => {
            let store = SqliteStore::connect(url).await?;
            store.migrate().await?;
            Ok(Runtime::builder(store))
        }
        Some("postgres" | "postgresql") => {
            let store = PostgresStore::new(&PgPool::connect_lazy(url)?);
            store.migrate().await?;
            Ok(Runtime::builder(store))
        }
        _ => Err("DATABASE_URL must begin with `sqlite://` or `postgres://`".into()),
    }
}
