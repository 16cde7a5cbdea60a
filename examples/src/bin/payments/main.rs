//! A payment API whose retries are safe.
//!
//! Read from the environment: `ADDR` (default `127.0.0.1:3000`); `DATABASE_URL` (default `sqlite://payments.db`, or
//! `postgres://…`); `DATABASE_POOLER=transaction` if the latter is that of a pooler which gives each transaction another
//! connection, such as PgBouncer in transaction mode; `LEASE_SECONDS` (default 30), how long a process may be silent before
//! its payments are in doubt. `payments doubts` and `payments resolve` are for operators. Bearer tokens: `sk_test_acme`, `sk_test_globex`.

mod api;
mod donations;
mod doubts;
mod gateway;
mod metrics;
mod orders;
mod tenant;

use std::{env, error::Error};

use axum::{
    Router,
    extract::FromRef,
    routing::{get, post},
};
use idem_examples::{Database, lease, listen, over, serve};
use idem_runtime::Runtime;
use sqlx::{Postgres, Sqlite};

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
    let arguments: Vec<String> = env::args().skip(1).collect();
    if !arguments.is_empty() {
        return doubts::run(&url, &arguments.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }

    let metrics = Metrics::install()?;
    let (builder, database) = over(&url).await?;
    let transactional = match database {
        Database::Sqlite => transactional::<Sqlite>(),
        Database::Postgres => transactional::<Postgres>(),
    };
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
    let listener = listen(&addr).await?;
    println!("payments listens on http://{}", listener.local_addr()?);
    serve(listener, router, idem).await?;
    upkeep.abort();
    Ok(())
}

/// What is rows of this database only.
fn transactional<Db: Orders + Donations>() -> Router<App> {
    Router::new()
        .route("/orders", post(place_order::<Db>).get(orders::orders))
        .route("/donations", post(donate::<Db>).get(donations::donations))
}
