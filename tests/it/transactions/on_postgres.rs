//! Whose connections are used: those of the user's pool, one for each body.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use idem_runtime::{PostgresStore, Runtime};
use serde_json::json;
use sqlx::postgres::PgPoolOptions;

use super::shop::router;
use crate::support::{Backend, Place, Shop, seen, server::Server};

/// Also scenario 101: of the user's pool a body needs one connection, and its completion no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_25_more_bodies_than_connections_come_one_after_the_other() {
    let server = Server::start(&[]);
    let place = Arc::new(Place::on(&server, None));
    let patience = Duration::from_secs(15);
    let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(patience).connect(place.url()).await.unwrap();
    let store = PostgresStore::new(&pool);
    store.migrate().await.unwrap();
    let shop = Shop::open_over(place, Arc::new(store), router(Backend::Postgres), |builder| {
        builder.store_timeout(Duration::from_secs(10))
    })
    .await;
    shop.sql(&format!("create table {} (sku text)", shop.place.table("orders"))).await;
    let keys: Vec<String> = (0..4).map(|n| format!("k{n}")).collect();
    let steps = [shop.write("book"), json!({ "sleep": 50 })];
    for answer in join_all(keys.iter().map(|key| shop.order("/orders", key, &steps))).await {
        assert!(seen(answer).await.ran());
    }
    assert_eq!((shop.orders().await, shop.records().await), (4, 4));
    assert_eq!(pool.size(), 1);
}

/// What the program does to the sessions of its own pool, no other connection shows.
#[tokio::test]
async fn clause_16_a_pool_that_cannot_keep_what_bodies_write_is_a_fault() {
    let server = Server::start(&[]);
    let place = Place::on(&server, None);
    let pool = PgPoolOptions::new().after_connect(|connection, _| {
        Box::pin(async move { sqlx::raw_sql("set synchronous_commit = off").execute(connection).await.map(drop) })
    });
    let store = PostgresStore::new(&pool.connect_lazy(place.url()).unwrap());
    store.migrate().await.unwrap();
    let _mounted = router(Backend::Postgres);
    let built = async |op: &'static str| {
        Runtime::builder(store.clone()).namespace("shop").serve_only(move |served| served == op).build().await
    };
    let told = built("tx.order").await.unwrap_err().to_string();
    assert!(told.contains("of the pool") && told.contains("synchronous_commit is off"), "{told}");
    assert!(built("none").await.is_ok(), "nobody uses that pool");
}
