//! What every store must do, in both protocols, and what only this one can get wrong.

mod concurrency;
mod costs;
mod durability;
mod interleavings;
mod listing;
mod plans;
mod purge;
mod scale;
mod schema;
mod server;
mod survey;
mod transactions;

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool, postgres::PgConnectOptions};

use super::PostgresStore;
use crate::{conformance::Clock, store_conformance};

mod prepared {
    use super::*;
    store_conformance!(fresh);
    store_conformance!(timed fresh_with_clock);
    store_conformance!(steps fresh_with_clock);
    store_conformance!(ordered fresh_with_clock);

    async fn fresh() -> ((), PostgresStore) {
        ((), Place::new().migrated().await)
    }

    async fn fresh_with_clock() -> ((), PostgresStore, Place) {
        let place = Place::new();
        ((), place.migrated().await, place)
    }
}

mod simple {
    use super::*;
    store_conformance!(fresh);
    store_conformance!(timed fresh_with_clock);
    store_conformance!(steps fresh_with_clock);
    store_conformance!(ordered fresh_with_clock);

    async fn fresh() -> ((), PostgresStore) {
        ((), Place::new().migrated().await.with_simple_protocol())
    }

    async fn fresh_with_clock() -> ((), PostgresStore, Place) {
        let place = Place::new();
        ((), place.migrated().await.with_simple_protocol(), place)
    }
}

/// As the runtime uses it.
mod batched {
    use std::sync::Arc;

    use super::*;
    use crate::{batching::tests::batched, store::Store};
    store_conformance!(fresh);
    store_conformance!(timed fresh_with_clock);
    store_conformance!(steps fresh_with_clock);

    async fn fresh() -> ((), Arc<dyn Store>) {
        ((), batched(Place::new().migrated().await))
    }

    async fn fresh_with_clock() -> ((), Arc<dyn Store>, Place) {
        let place = Place::new();
        ((), batched(place.migrated().await), place)
    }
}

/// After `migrations/postgres/optional/partition.sql`, with fewer parts than it makes.
mod partitioned {
    use super::*;
    store_conformance!(fresh);
    store_conformance!(timed fresh_with_clock);
    store_conformance!(steps fresh_with_clock);

    async fn fresh() -> ((), PostgresStore) {
        ((), split(&Place::new()).await)
    }

    async fn fresh_with_clock() -> ((), PostgresStore, Place) {
        let place = Place::new();
        ((), split(&place).await, place)
    }

    async fn split(place: &Place) -> PostgresStore {
        let store = place.migrated().await;
        let script = include_str!("../../../migrations/postgres/optional/partition.sql");
        let fewer = script.replace("integer := 32;", "integer := 3;");
        assert_ne!(script, fewer);
        sqlx::raw_sql(AssertSqlSafe(fewer)).execute(&mut place.raw().await).await.unwrap();
        store
    }

    #[tokio::test]
    async fn a_split_table_is_split_once_and_keeps_what_was_in_it() {
        use crate::{
            conformance::steps::claim,
            store::{Claimed, Found, Store},
        };
        let place = Place::new();
        let store = place.migrated().await;
        let claims: Vec<_> = (0..20).map(|n| claim(&n.to_string())).collect();
        assert!(store.claim(&claims).await.unwrap().iter().all(|claimed| matches!(claimed, Claimed::Owner(_))));
        let store = split(&place).await;
        let claims: Vec<_> = (0..20).map(|n| claim(&n.to_string())).collect();
        let found = store.claim(&claims).await.unwrap();
        assert!(found.iter().all(|claimed| matches!(claimed, Claimed::Found(Found::InFlight { .. }))), "{found:?}");
        let parts = "select count(distinct tableoid) from idem_key";
        assert_eq!(place.number(parts).await, 3);
        let again = include_str!("../../../migrations/postgres/optional/partition.sql");
        let error = sqlx::raw_sql(AssertSqlSafe(again)).execute(&mut place.raw().await).await.unwrap_err();
        assert!(error.to_string().contains("split already"), "{error}");
        assert_eq!(place.number("select count(*) from idem_key").await, 20);
    }
}

/// A schema of its own on the server that all tests share.
struct Place {
    options: PgConnectOptions,
    schema: String,
}

impl Place {
    fn new() -> Self {
        Self::on(server::shared())
    }

    fn on(url: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let options = url.parse().unwrap();
        Self { options, schema: format!("t{}_{count}_{}", std::process::id(), fastrand::u32(..)) }
    }

    /// A store as another process would make it.
    fn store(&self) -> PostgresStore {
        self.store_with(self.options.clone())
    }

    fn store_with(&self, options: PgConnectOptions) -> PostgresStore {
        PostgresStore::new(&PgPool::connect_lazy_with(options)).with_schema(&self.schema).unwrap()
    }

    /// A store with its tables.
    async fn migrated(&self) -> PostgresStore {
        let store = self.store();
        store.migrate().await.unwrap();
        store
    }

    /// A connection that is none of the store's, in the store's schema.
    async fn raw(&self) -> PgConnection {
        self.options.clone().options([("search_path", &self.schema)]).connect().await.unwrap()
    }

    async fn execute(&self, sql: &'static str) {
        let mut raw = self.raw().await;
        sqlx::raw_sql(sql).execute(&mut raw).await.unwrap();
        raw.close().await.unwrap();
    }

    async fn number(&self, sql: &'static str) -> i64 {
        number(&mut self.raw().await, sql).await
    }
}

/// Until a statement in this place waits for a lock.
async fn until_somebody_waits(place: &Place) {
    until_so_many_wait(place, 1).await;
}

/// Until so many do. A COMMIT is known by what its transaction has locked here.
async fn until_so_many_wait(place: &Place, many: i64) {
    const WAITING: &str = "
        select count(*) from pg_stat_activity a
         where pg_blocking_pids(a.pid) <> '{}'
           and (a.query like '%' || current_schema || '%'
                or exists (select from pg_locks l join pg_class c on c.oid = l.relation
                            where l.pid = a.pid and c.relnamespace = current_schema::regnamespace))";
    let mut raw = place.raw().await;
    for _ in 0..1_000 {
        if number(&mut raw, WAITING).await >= many {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("nobody waits");
}

async fn number(connection: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(connection).await.unwrap()
}

/// Moves the records back instead of the clock on.
#[async_trait::async_trait]
impl Clock for Place {
    async fn pass(&self, by: Duration) {
        let by = format!("interval '{} milliseconds'", by.as_millis());
        let shift = ["lease_until", "created_at", "expires_at", "guard_until", "recover_at", "rerun_until"]
            .map(|at| format!("{at} = {at} - {by}"));
        let mut raw = self.raw().await;
        let marks = ["purged_at", "noted_until", "looked_back"].map(|at| format!("{at} = {at} - {by}"));
        let shift = format!(
            "update idem_key set {}; update idem_step set started_at = started_at - {by};
             update idem_order set guard_until = guard_until - {by}; update idem_meta set {}",
            shift.join(", "),
            marks.join(", ")
        );
        sqlx::raw_sql(AssertSqlSafe(shift)).execute(&mut raw).await.unwrap();
        raw.close().await.unwrap();
    }
}
