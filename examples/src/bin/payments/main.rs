//! A payment API whose retries are safe.
//!
//! Read from the environment: `ADDR` (default `127.0.0.1:3000`); `DATABASE_URL` (default `sqlite://payments.db`, or
//! `postgres://…`); `DATABASE_POOLER=transaction` if the latter is that of a pooler which gives each transaction another
//! connection, such as PgBouncer in transaction mode; `LEASE_SECONDS` (default 30), how long a process may be silent before
//! its payments are in doubt. Bearer tokens: `sk_test_acme`, `sk_test_globex`.

mod api;
mod donations;
mod gateway;
mod metrics;
mod orders;
mod tenant;

use std::{
    env::{self, VarError},
    error::Error,
    time::Duration,
};

use axum::{
    Router,
    extract::FromRef,
    routing::{get, post},
};
use idem_runtime::{Builder, PostgresStore, Runtime, SqliteStore};
use sqlx::{PgPool, Postgres, Sqlite};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use donations::{DonationBook, Donations, donate};
use gateway::Gateway;
use metrics::Metrics;
use orders::{OrderBook, Orders, place_order};

#[derive(Clone, FromRef)]
struct App {
    idem: Runtime,
    gateway: Gateway,
    orders: OrderBook,
    donations: DonationBook,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).init();
    let addr = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:3000".to_owned());
    let url = env::var("DATABASE_URL").unwrap_or_else(|_| "sqlite://payments.db".to_owned());

    let metrics = Metrics::install()?;
    let (builder, transactional) = over(&url).await?;
    let builder = builder.namespace("payments").lease(lease()?).problem_response(donations::problem);
    let gateway = Gateway::connect(&url).await?;
    let asked = gateway.clone();
    let idem = builder.recover("charge", move |doubt| api::recover_charge(asked.clone(), doubt)).build().await?;
    let (orders, donations) = (OrderBook::connect(&url).await?, DonationBook::connect(&url).await?);
    let app = App { idem: idem.clone(), gateway, orders, donations };

    let (scraped, upkeep) = (metrics.clone(), tokio::spawn(metrics.keep_up()));
    let router = transactional
        .route("/charges", post(api::charge).get(api::charges))
        .route("/payouts", post(api::payout).get(api::payouts))
        .route("/donate", get(donations::form))
        .route("/donations/{id}", get(donations::thanks))
        .route("/idempotency", get(api::operations))
        .route("/healthz", get(async || "ok"))
        .route("/metrics", get(async move || scraped.render())) // for the machines of the house: keep it off the internet
        .with_state(app);
    let listener = TcpListener::bind(&addr).await.map_err(|error| format!("ADDR is `{addr}`: {error}"))?;
    println!("payments listens on http://{}", listener.local_addr()?);

    let draining = idem.clone();
    let mut terminate = signal(SignalKind::terminate())?;
    axum::serve(listener, router)
        .with_graceful_shutdown(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            draining.start_draining();
        })
        .await?;
    upkeep.abort();
    let drained = idem.shutdown(Duration::from_secs(30)).await; // bodies whose clients are gone still run
    if !drained.completed {
        tracing::warn!(in_doubt = drained.in_doubt, "stopped before every payment had ended");
    }
    Ok(())
}

/// The one place that knows which database it is.
async fn over(url: &str) -> Result<(Builder, Router<App>), Box<dyn Error>> {
    match url.split(':').next() {
        Some("sqlite") => {
            let store = SqliteStore::connect(url).await?;
            store.migrate().await?;
            Ok((Runtime::builder(store), transactional::<Sqlite>()))
        }
        Some("postgres" | "postgresql") => {
            let store = PostgresStore::new(&PgPool::connect_lazy(url)?); // for orders and donations; all else goes over connections of its own, made alike
            let store = match env::var("DATABASE_POOLER").as_deref() {
                Ok("transaction") => store.with_simple_protocol(),
                Ok(other) => return Err(format!("DATABASE_POOLER is `{other}`; it can be `transaction`").into()),
                Err(VarError::NotPresent) => store,
                Err(error) => return Err(format!("DATABASE_POOLER: {error}").into()),
            };
            store.migrate().await?;
            Ok((Runtime::builder(store), transactional::<Postgres>()))
        }
        _ => Err("DATABASE_URL must begin with `sqlite://` or `postgres://`".into()),
    }
}

/// What is rows of this database only.
fn transactional<Db: Orders + Donations>() -> Router<App> {
    Router::new()
        .route("/orders", post(place_order::<Db>).get(orders::orders))
        .route("/donations", post(donate::<Db>).get(donations::donations))
}

/// How long a process may be silent before its payments are in doubt.
fn lease() -> Result<Duration, Box<dyn Error>> {
    match env::var("LEASE_SECONDS") {
        Ok(seconds) => match seconds.parse() {
            Ok(seconds) => Ok(Duration::from_secs(seconds)),
            Err(error) => Err(format!("LEASE_SECONDS is `{seconds}`; it must be whole seconds: {error}").into()),
        },
        Err(VarError::NotPresent) => Ok(Duration::from_secs(30)),
        Err(error) => Err(format!("LEASE_SECONDS: {error}").into()),
    }
}
