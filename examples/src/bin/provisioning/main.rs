//! A signup of five steps in five places. However often it breaks off, each step has one effect.
//!
//! Read from the environment: `ADDR` (default `127.0.0.1:3000`); `DATABASE_URL` (default `sqlite://provisioning.db`, or
//! `postgres://…`); `DATABASE_POOLER`, as for `payments`; `LEASE_SECONDS` (default 30), how long a process may be silent before a
//! retry continues its signups. Bearer tokens: `sk_test_acme`, `sk_test_globex`.

mod outside;
mod rows;
mod signups;
#[path = "../payments/tenant.rs"]
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

use outside::Outside;
use signups::{effects, sign_up};

#[derive(Clone, FromRef)]
struct App {
    idem: Runtime,
    outside: Outside,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).init();
    let addr = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:3000".to_owned());
    let url = env::var("DATABASE_URL").unwrap_or_else(|_| "sqlite://provisioning.db".to_owned());

    let (builder, database) = over(&url).await?;
    let sign_up = match database {
        Database::Sqlite => post(sign_up::<Sqlite>),
        Database::Postgres => post(sign_up::<Postgres>),
    };
    let idem = builder.namespace("provisioning").lease(lease()?).build().await?;
    let app = App { idem: idem.clone(), outside: Outside::connect(&url).await? };
    let router = Router::new()
        .route("/signups", sign_up)
        .route("/effects", get(effects))
        .route("/healthz", get(async || "ok"))
        .with_state(app);
    let listener = listen(&addr).await?;
    println!("provisioning listens on http://{}", listener.local_addr()?);
    serve(listener, router, idem).await
}
