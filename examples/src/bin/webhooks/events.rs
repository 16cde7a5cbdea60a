//! What the events have done: a row each, append-only and without a unique constraint, so that a double would show.

use axum::{Json, extract::State};
use serde::Serialize;
use sqlx::{AnyPool, Database, PgConnection, Postgres, Sqlite, SqliteConnection, any::AnyPoolOptions};

use crate::Failed;

/// What differs between the databases; the statement does not.
pub(crate) trait Events: Database {
    fn insert(
        tx: &mut Self::Connection,
        provider: &str,
        event: &str,
        what: &str,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

// Not kept as a prepared statement, so that a pooler may stand between.
macro_rules! events {
    ($database:ty, $connection:ty) => {
        impl Events for $database {
            async fn insert(tx: &mut $connection, provider: &str, event: &str, what: &str) -> Result<(), sqlx::Error> {
                sqlx::query("insert into handled_events (provider, event, what) values ($1, $2, $3)")
                    .persistent(false)
                    .bind(provider)
                    .bind(event)
                    .bind(what)
                    .execute(tx)
                    .await
                    .map(drop)
            }
        }
    };
}
events!(Sqlite, SqliteConnection);
events!(Postgres, PgConnection);

/// For reading; who writes has a `Tx`.
#[derive(Clone)]
pub(crate) struct EventLog {
    pool: AnyPool,
}

const SQLITE: &str = "create table if not exists handled_events (
   seq integer primary key, provider text not null, event text not null, what text not null
 ) strict";

/// The lock is for processes that start together.
const POSTGRES: &str = "select pg_advisory_xact_lock(hashtext('handled_events'));
 create table if not exists handled_events (
   seq bigint generated always as identity primary key, provider text not null, event text not null, what text not null
 )";

impl EventLog {
    /// Makes the table.
    pub(crate) async fn connect(url: &str) -> Result<Self, sqlx::Error> {
        sqlx::any::install_default_drivers();
        let pool = AnyPoolOptions::new().max_connections(2).connect(url).await?;
        sqlx::raw_sql(if url.starts_with("sqlite:") { SQLITE } else { POSTGRES }).execute(&pool).await?;
        Ok(Self { pool })
    }
}

#[derive(Serialize, sqlx::FromRow)]
struct Handled {
    provider: String,
    event: String,
    what: String,
}

/// Every handled event.
#[derive(Serialize)]
pub(crate) struct Items {
    items: Vec<Handled>,
}

pub(crate) async fn effects(State(log): State<EventLog>) -> Result<Json<Items>, Failed> {
    let events = sqlx::query_as("select provider, event, what from handled_events order by seq").persistent(false);
    let mut connection = log.pool.begin().await?;
    Ok(Json(Items { items: events.fetch_all(&mut *connection).await? }))
}
