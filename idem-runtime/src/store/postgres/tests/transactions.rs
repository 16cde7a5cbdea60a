//! Bodies that write into the database of the records, over the user's pool.

use sqlx::{Postgres, postgres::PgPoolOptions};

use super::*;
use crate::{
    conformance::{steps::claim, transactions::Body},
    store::{Begin, Begun, OpenTransaction, Store, open::Open},
};

mod prepared {
    use super::*;
    store_conformance!(bodies fresh);

    async fn fresh() -> ((), PostgresStore, Place) {
        let place = place().await;
        ((), place.store(), place)
    }
}

mod simple {
    use super::*;
    store_conformance!(bodies fresh);

    async fn fresh() -> ((), PostgresStore, Place) {
        let place = place().await;
        ((), place.store().with_simple_protocol(), place)
    }
}

async fn place() -> Place {
    let place = Place::new();
    place.migrated().await;
    place.execute("create table work (n integer)").await;
    place
}

async fn send(transaction: &mut OpenTransaction, sql: String) -> Result<(), sqlx::Error> {
    let open = transaction.downcast_mut::<Open<Postgres>>().unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut **open).await.map(drop)
}

#[async_trait::async_trait]
impl Body for Place {
    async fn write(&self, transaction: &mut OpenTransaction) {
        send(transaction, format!("insert into {}.work values (1)", self.schema)).await.unwrap();
    }
    async fn written(&self) -> u64 {
        self.number("select count(*) from work").await.try_into().unwrap()
    }
    async fn commit(&self, transaction: &mut OpenTransaction) -> bool {
        send(transaction, "commit".into()).await.is_ok()
    }
    async fn roll_back(&self, transaction: &mut OpenTransaction) {
        send(transaction, "rollback".into()).await.unwrap();
    }
    async fn cut_off(&self, transaction: &mut OpenTransaction) -> bool {
        let open = transaction.downcast_mut::<Open<Postgres>>().unwrap();
        let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut **open).await.unwrap();
        let cut = sqlx::query_scalar("select pg_terminate_backend($1, 5000)").bind(pid);
        cut.fetch_one(&mut self.raw().await).await.unwrap()
    }
}

/// The store's own connections are made by the pool's options, but are not set up by the program.
#[tokio::test]
async fn check_looks_at_the_sessions_that_bodies_get() {
    let place = place().await;
    for (set, word) in [
        ("set synchronous_commit = off", "synchronous_commit"),
        ("set default_transaction_read_only = on", "default_transaction_read_only"),
        ("set session_replication_role = replica", "session_replication_role"),
    ] {
        let set_up = PgPoolOptions::new().after_connect(move |connection, _| {
            Box::pin(async move { sqlx::raw_sql(set).execute(connection).await.map(drop) })
        });
        let store = PostgresStore::new(&set_up.connect_lazy_with(place.options.clone()));
        let store = store.with_schema(&place.schema).unwrap();
        assert_eq!(store.check().await.unwrap(), [""; 0]);
        let faults = store.check_transactions().await.unwrap();
        assert!(faults.len() == 1 && faults[0].contains("of the pool") && faults[0].contains(word), "{faults:?}");
    }
    assert_eq!(place.store().check_transactions().await.unwrap(), [""; 0]);
    let isolated = place.options.clone().options([("default_transaction_isolation", "serializable")]);
    let store = place.store_with(isolated);
    assert_eq!(store.check_transactions().await.unwrap(), [""; 0]);
    let claim = claim("a");
    let begin = Begin { claim: Some(claim), limit: Duration::from_secs(5), savepoint: false };
    let Begun::Open(_, mut transaction) = store.begin(&begin).await.unwrap() else { panic!("nobody was there") };
    let open = transaction.downcast_mut::<Open<Postgres>>().unwrap();
    let level: String = sqlx::query_scalar("show transaction_isolation").fetch_one(&mut **open).await.unwrap();
    assert_eq!(level, "read committed");
}
