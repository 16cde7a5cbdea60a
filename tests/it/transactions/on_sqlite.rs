//! What SQLite does by itself.

use std::{sync::Arc, time::Duration};

use idem_runtime::Runtime;
use serde_json::json;

use super::{by_hand::needs_a_person, shop::router};
use crate::support::{Backend, Place, Shop, eventually, problem, refusal, seen};

async fn open() -> Shop {
    let shop = Shop::open_on(Arc::new(Place::sqlite()), router(Backend::Sqlite), |builder| builder).await;
    shop.sql("create table orders (sku text); create table once (n integer primary key)").await;
    shop
}

#[tokio::test]
async fn clause_16_what_is_written_after_a_rollback_of_sqlites_own_is_reported() {
    let shop = open().await;
    let once = json!({ "sql": "insert or rollback into once values (1)" });
    for (rows, status) in [(1, 201), (2, 500)] {
        let steps =
            [shop.write("undone"), once.clone(), once.clone(), shop.write("stays"), json!({ "answer": status })];
        needs_a_person(&problem(shop.order("/orders", "k", &steps).await).await);
        assert_eq!((shop.orders().await, shop.records().await), (rows, 0), "{status}");
    }
}

/// As a replay of any other operation: a body that holds the file's one writer keeps nobody waiting who writes nothing.
#[tokio::test]
async fn clause_01_replays_and_refusals_do_not_wait_for_the_writer() {
    let shop = open().await;
    let book = [shop.write("book")];
    let first = seen(shop.order("/orders", "done", &book).await).await;
    let held = shop.probe.hold().await;
    let steps = [json!("gate")];
    let (other, ()) = tokio::join!(shop.order("/orders", "other", &steps), async {
        eventually(async || shop.probe.started() == 1).await;
        let again = seen(shop.order("/orders", "done", &book).await).await;
        assert!(again.replayed && again.body == first.body, "{again:?}");
        let mismatch = refusal(shop.order("/orders", "done", &steps).await).await;
        assert_eq!(mismatch, (422, "idempotency-key-reused".to_owned()));
        drop(held);
    });
    assert!(seen(other).await.ran());
}

#[tokio::test]
async fn clause_16_a_body_that_may_keep_renewals_waiting_is_a_fault() {
    let place = Place::sqlite();
    place.migrate().await;
    let _mounted = router(Backend::Sqlite);
    let built = async |op: &'static str, lease: u64, timeout: Option<Duration>| {
        let builder = Runtime::builder(place.connect().await).namespace("shop");
        let builder = builder.lease(Duration::from_secs(lease)).serve_only(move |served| served == op);
        let builder = match timeout {
            Some(timeout) => builder.transaction_timeout(timeout),
            None => builder,
        };
        builder.build().await.map_err(|error| error.to_string())
    };
    let second = Some(Duration::from_secs(1));
    for told in [built("tx.short", 2, None).await, built("tx.order", 2, second).await] {
        let told = told.unwrap_err();
        assert!(told.contains(" at tests/it/transactions/shop.rs:") && told.contains("a third of `lease`"), "{told}");
    }
    for built in
        [built("tx.short", 3, None).await, built("tx.order", 3, second).await, built("tx.order", 2, None).await]
    {
        assert!(built.is_ok(), "{built:?}");
    }
}
