//! Whose connections are used: those of the user's pool, one for each body.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use idem_runtime::{Builder, PostgresStore, Runtime};
use serde_json::json;
use sqlx::postgres::PgPoolOptions;

use super::shop::router;
use crate::support::{Backend, Logs, Meters, Place, Proxy, Shop, Verb, eventually, problem, seen, server::Server};

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

/// A server that says nothing any more, while a COMMIT is on its way: the program's pool gets its place back, and shutdown
/// comes to its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clause_23_a_silent_server_keeps_no_connection_and_no_shutdown_for_ever() {
    let server = Server::start(&[]);
    let proxy = Proxy::before(&server.url).await;
    let place = Arc::new(Place::on(&server, None).through(&proxy));
    let pool = PgPoolOptions::new().max_connections(1).connect(place.url()).await.unwrap();
    let store = PostgresStore::new(&pool).with_statement_timeout(Duration::from_millis(100));
    store.migrate().await.unwrap();
    let shop = Shop::open_over(place, Arc::new(store), router(Backend::Postgres), |builder| {
        builder.store_timeout(Duration::from_millis(500))
    })
    .await;
    shop.sql(&format!("create table {} (sku text)", shop.place.table("orders"))).await;
    let held = shop.probe.hold().await;
    let steps = [shop.write("book"), json!("gate")];
    let (first, ()) = tokio::join!(shop.order("/orders", "k", &steps), async {
        eventually(async || shop.probe.started() == 1).await;
        proxy.slow_replies(Duration::from_secs(600));
        drop(held);
    });
    let told = problem(first).await;
    assert_eq!((told.status, told.slug.as_str()), (503, "idempotency-store-unavailable"));
    let drained = shop.runtime.shutdown(Duration::from_secs(15)).await;
    assert!(drained.completed, "a verb waits for ever");
    proxy.slow_replies(Duration::ZERO);
    let free = tokio::time::timeout(Duration::from_secs(15), pool.acquire()).await;
    free.expect("its place is taken for ever").unwrap();
}

/// A look finds nothing of a run in another process, so whoever waits must claim to find out. Not all who wait, and not at
/// each look.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_66_of_those_who_wait_for_another_process_one_asks_now_and_then() {
    const WAITING: usize = 10;
    let server = Server::start(&[]);
    let place = Arc::new(Place::on(&server, None));
    let patient = |builder: Builder| builder.transaction_timeout(Duration::from_secs(20));
    let open = || Shop::open_on(Arc::clone(&place), router(Backend::Postgres), patient);
    let (shop, other) = (open().await, open().await);
    shop.sql(&format!("create table {} (sku text)", shop.place.table("orders"))).await;
    let held = shop.probe.hold().await;
    let steps = [json!("gate"), shop.write("book")];
    let duplicates = join_all((0..WAITING).map(async |_| {
        eventually(async || shop.probe.started() == 1).await;
        other.order("/waiting", "k", &steps).await
    }));
    let (first, duplicates, ()) = tokio::join!(shop.order("/waiting", "k", &steps), duplicates, async {
        eventually(async || other.store.calls(Verb::Peek) >= WAITING + 8).await; // each looks once when it comes
        let (claims, looks) = (other.store.calls(Verb::Begin), other.store.calls(Verb::Peek));
        assert!((2..=looks).contains(&claims), "{claims} claims, {looks} looks");
        drop(held);
    });
    let first = seen(first).await;
    assert!(first.ran(), "{first:?}");
    for duplicate in duplicates {
        let duplicate = seen(duplicate).await;
        assert!(duplicate.replayed && duplicate.body == first.body, "{duplicate:?}");
    }
    assert_eq!(shop.orders().await, 1);
}

/// A run whose session has ended counts no more, though its body does not know it yet: another process may have answered, and
/// all get that answer, the body's own caller too.
#[tokio::test]
async fn clause_02_a_run_whose_session_is_gone_hides_no_answer() {
    let (logs, meters) = (Logs::collect(), Meters::collect());
    let server = Server::start(&[]);
    let place = Arc::new(Place::on(&server, None));
    let open = || Shop::open_on(Arc::clone(&place), router(Backend::Postgres), |builder| builder);
    let (shop, other) = (open().await, open().await);
    shop.sql(&format!("create table {} (sku text)", shop.place.table("orders"))).await;
    let held = shop.probe.hold().await;
    let steps = [json!("gate"), shop.write("book")];
    let (first, answer) = tokio::join!(shop.order("/orders", "k", &steps), async {
        eventually(async || shop.probe.started() == 1).await;
        shop.sql("select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction'").await;
        eventually(async || other.order("/orders", "k", &steps).await.status() == 201).await;
        let (there, here) = (other.order("/orders", "k", &steps).await, shop.order("/orders", "k", &steps).await);
        let (there, here) = (seen(there).await, seen(here).await);
        assert!(there.replayed && here.replayed && here.body == there.body, "{here:?}");
        drop(held);
        there.body
    });
    let first = seen(first).await;
    assert!(first.replayed && first.body == answer, "{first:?}");
    assert_eq!(shop.orders().await, 1);
    let counted = |outcome| meters.value(&format!("idem_requests_total{{op=tx.order,outcome={outcome}}}"));
    assert_eq!(["executed", "fenced", "store_unavailable"].map(counted), [1.0, 1.0, 0.0]);
    assert!(logs.alarming().iter().all(|line| !line.text.contains("undone")), "{:?}", logs.alarming());
}
