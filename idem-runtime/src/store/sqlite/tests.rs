//! What every store must do, and what only this one can get wrong.

mod concurrency;
mod durability;
mod interleavings;
mod listing;
mod purge;
mod schema;
mod setup;
mod sharing;
mod transactions;

use std::{path::PathBuf, time::Duration};

use sqlx::{ConnectOptions, Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

use super::{SqliteStore, connect};
use crate::{conformance::Clock, store::StoreErrorKind, store_conformance};

store_conformance!(fresh);
store_conformance!(timed fresh_with_clock);
store_conformance!(steps fresh_with_clock);
store_conformance!(ordered fresh_with_clock);

/// As the runtime uses it.
mod batched {
    use std::sync::Arc;

    use super::{Place, Shifted};
    use crate::{batching::tests::batched, store::Store, store_conformance};

    store_conformance!(fresh);
    store_conformance!(timed fresh_with_clock);
    store_conformance!(steps fresh_with_clock);

    async fn fresh() -> (Place, Arc<dyn Store>) {
        let (place, store) = super::fresh().await;
        (place, batched(store))
    }

    async fn fresh_with_clock() -> (Place, Arc<dyn Store>, Shifted) {
        let (place, store, clock) = super::fresh_with_clock().await;
        (place, batched(store), clock)
    }
}

/// A folder with a database file.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("records.db")
    }

    fn url(&self) -> String {
        format!("sqlite://{}", self.file().display())
    }

    /// The options of `connect`, to be made weaker.
    fn options(&self) -> SqliteConnectOptions {
        connect::options(&self.url()).unwrap()
    }

    /// A store as another process would open it.
    async fn store(&self) -> SqliteStore {
        SqliteStore::connect(&self.url()).await.unwrap()
    }

    /// A store with its tables.
    async fn migrated(&self) -> SqliteStore {
        let store = self.store().await;
        store.migrate().await.unwrap();
        store
    }

    /// A connection that is none of the store's.
    async fn raw(&self) -> SqliteConnection {
        let wait = Duration::from_secs(5);
        SqliteConnectOptions::new().filename(self.file()).busy_timeout(wait).connect().await.unwrap()
    }

    async fn execute(&self, sql: &'static str) {
        sqlx::raw_sql(sql).execute(&mut self.raw().await).await.unwrap();
    }

    async fn number(&self, sql: &'static str) -> i64 {
        number(&mut self.raw().await, sql).await
    }
}

async fn number(connection: &mut SqliteConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(connection).await.unwrap()
}

/// Moves the records back instead of the clock on.
struct Shifted(PathBuf);

#[async_trait::async_trait]
impl Clock for Shifted {
    async fn pass(&self, by: Duration) {
        const SHIFT: &str = "update idem_key set lease_until = lease_until - ?1, created_at = created_at - ?1,
                                                 expires_at = expires_at - ?1, guard_until = guard_until - ?1,
                                                 recover_at = recover_at - ?1, rerun_until = rerun_until - ?1";
        let mut raw = SqliteConnectOptions::new().filename(&self.0).connect().await.unwrap();
        let by = i64::try_from(by.as_millis()).unwrap();
        const STEPS: &str = "update idem_step set started_at = started_at - ?1";
        const ORDERS: &str = "update idem_order set guard_until = guard_until - ?1";
        for shift in [SHIFT, STEPS, ORDERS, "update idem_meta set purged_at = purged_at - ?1"] {
            sqlx::query(shift).bind(by).execute(&mut raw).await.unwrap();
        }
        raw.close().await.unwrap();
    }
}

async fn fresh() -> (Place, SqliteStore) {
    let place = Place::new();
    let store = place.migrated().await;
    (place, store)
}

async fn fresh_with_clock() -> (Place, SqliteStore, Shifted) {
    let (place, store) = fresh().await;
    let clock = Shifted(place.file());
    (place, store, clock)
}
