//! What the example services have in common: the database that `DATABASE_URL` names, and an end without cut-off bodies.

use std::{
    env::{self, VarError},
    error::Error,
    time::Duration,
};

use axum::Router;
use idem_runtime::{Builder, PostgresStore, Runtime, SqliteStore};
use sqlx::PgPool;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

/// Which database it is: the type that handlers with a `Tx` are mounted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// `sqlx::Sqlite`.
    Sqlite,
    /// `sqlx::Postgres`.
    Postgres,
}

/// The runtime's builder over the migrated store at `url`.
///
/// # Errors
/// No such database, or no such kind of it.
pub async fn over(url: &str) -> Result<(Builder, Database), Box<dyn Error>> {
    match url.split(':').next() {
        Some("sqlite") => {
            let store = SqliteStore::connect(url).await?;
            store.migrate().await?;
            Ok((Runtime::builder(store), Database::Sqlite))
        }
        Some("postgres" | "postgresql") => {
            let store = PostgresStore::new(&PgPool::connect_lazy(url)?); // for bodies with a `Tx`; all else goes over connections of its own, made alike
            let store = match env::var("DATABASE_POOLER").as_deref() {
                Ok("transaction") => store.with_simple_protocol(),
                Ok(other) => return Err(format!("DATABASE_POOLER is `{other}`; it can be `transaction`").into()),
                Err(VarError::NotPresent) => store,
                Err(error) => return Err(format!("DATABASE_POOLER: {error}").into()),
            };
            store.migrate().await?;
            Ok((Runtime::builder(store), Database::Postgres))
        }
        _ => Err("DATABASE_URL must begin with `sqlite://` or `postgres://`".into()),
    }
}

/// `LEASE_SECONDS`, 30 s by default: how long a process may be silent before its operations are in doubt, or gone on with.
///
/// # Errors
/// It is no whole number of seconds.
pub fn lease() -> Result<Duration, Box<dyn Error>> {
    match env::var("LEASE_SECONDS") {
        Ok(seconds) => match seconds.parse() {
            Ok(seconds) => Ok(Duration::from_secs(seconds)),
            Err(error) => Err(format!("LEASE_SECONDS is `{seconds}`; it must be whole seconds: {error}").into()),
        },
        Err(VarError::NotPresent) => Ok(Duration::from_secs(30)),
        Err(error) => Err(format!("LEASE_SECONDS: {error}").into()),
    }
}

/// A socket at `addr`, as `ADDR` gives it.
///
/// # Errors
/// It is taken, or no address.
pub async fn listen(addr: &str) -> Result<TcpListener, Box<dyn Error>> {
    Ok(TcpListener::bind(addr).await.map_err(|error| format!("ADDR is `{addr}`: {error}"))?)
}

/// Serves until SIGTERM or Ctrl-C, then answers what is under way, and waits for bodies whose clients are gone.
///
/// # Errors
/// The socket's.
pub async fn serve(listener: TcpListener, router: Router, idem: Runtime) -> Result<(), Box<dyn Error>> {
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
    let drained = idem.shutdown(Duration::from_secs(30)).await; // bodies whose clients are gone still run
    if !drained.completed {
        tracing::warn!(in_doubt = drained.in_doubt, "stopped before every operation had ended");
    }
    Ok(())
}
