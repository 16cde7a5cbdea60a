//! A signup of five steps in five places. However often it breaks off, each step has one effect.
//!
//! Read from the environment: `ADDR` (default `127.0.0.1:3000`); `DATABASE_URL` (default `sqlite://provisioning.db`, or
//! `postgres://…`); `LEASE_SECONDS` (default 30), how long a process may be silent before a retry continues its signups.
//! Bearer tokens: `sk_test_acme`, `sk_test_globex`.

mod outside;
mod rows;
mod signups;
#[path = "../payments/tenant.rs"]
mod tenant;

use std::{
    env::{self, VarError},
    error::Error,
    time::Duration,
};

use axum::{
    Router,
    extract::FromRef,
    routing::{MethodRouter, get, post},
};
use idem_runtime::{Builder, PostgresStore, Runtime, SqliteStore};
use sqlx::{PgPool, Postgres, Sqlite};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use outside::Outside;

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

    let (builder, sign_up) = over(&url).await?;
    let idem = builder.namespace("provisioning").lease(lease()?).build().await?;
    let app = App { idem: idem.clone(), outside: Outside::connect(&url).await? };
    let router = Router::new()
        .route("/signups", sign_up)
        .route("/effects", get(signups::effects))
        .route("/healthz", get(async || "ok"))
        .with_state(app);
    let listener = TcpListener::bind(&addr).await.map_err(|error| format!("ADDR is `{addr}`: {error}"))?;
    println!("provisioning listens on http://{}", listener.local_addr()?);

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
    if !idem.shutdown(Duration::from_secs(30)).await.completed {
        tracing::warn!("stopped before every signup had ended; their retries continue them");
    }
    Ok(())
}

/// The one place that knows which database it is.
async fn over(url: &str) -> Result<(Builder, MethodRouter<App>), Box<dyn Error>> {
    match url.split(':').next() {
        Some("sqlite") => {
            let store = SqliteStore::connect(url).await?;
            store.migrate().await?;
            Ok((Runtime::builder(store), post(signups::sign_up::<Sqlite>)))
        }
        Some("postgres" | "postgresql") => {
            let store = PostgresStore::new(&PgPool::connect_lazy(url)?);
            store.migrate().await?;
            Ok((Runtime::builder(store), post(signups::sign_up::<Postgres>)))
        }
        _ => Err("DATABASE_URL must begin with `sqlite://` or `postgres://`".into()),
    }
}

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
