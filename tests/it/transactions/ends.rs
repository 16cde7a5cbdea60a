//! How a body ends, and what becomes of its rows and its key.

use std::time::Duration;

use serde_json::json;

use super::shop::{open, open_with};
use crate::support::{Shop, eventually, problem, seen};

/// The key is free and nothing is left: the next try runs, and is the only one that counts.
async fn runs_as_if_nothing_had_been(shop: &Shop, path: &str, key: &str) {
    assert_eq!(shop.orders().await, 0, "rows are left");
    let second = seen(shop.order(path, key, &[shop.write("second")]).await).await;
    assert!(second.ran(), "{second:?}");
    assert_eq!(shop.orders().await, 1);
    let again = seen(shop.order(path, key, &[shop.write("second")]).await).await;
    assert!(again.replayed && again.body == second.body, "{again:?}");
    assert_eq!((shop.orders().await, shop.state().await), (1, 2));
}

#[tokio::test]
async fn clause_01_a_success_commits_rows_and_answer_together() {
    let shop = open().await;
    let first = seen(shop.order("/orders", "k", &[shop.write("book")]).await).await;
    assert!(first.ran(), "{first:?}");
    let again = seen(shop.order("/orders", "k", &[shop.write("book")]).await).await;
    assert_eq!((again.replayed, &again.body), (true, &first.body));
    assert_eq!((shop.orders().await, shop.state().await), (1, 2));
    let (status, slug) = crate::support::refusal(shop.order("/orders", "k", &[shop.write("other")]).await).await;
    assert_eq!((status, slug.as_str()), (422, "idempotency-key-reused"));
}

#[tokio::test]
async fn scenario_34_an_error_of_the_server_is_undone_and_a_retry_runs() {
    let shop = open().await;
    let first = seen(shop.order("/orders", "k", &[shop.write("first"), json!({ "answer": 500 })]).await).await;
    assert_eq!((first.status, first.replayed), (500, false));
    assert_eq!(shop.records().await, 0);
    runs_as_if_nothing_had_been(&shop, "/orders", "k").await;
}

#[tokio::test]
async fn clause_13_a_client_error_is_undone_and_a_corrected_retry_runs() {
    let shop = open().await;
    let first = seen(shop.order("/orders", "k", &[shop.write("first"), json!({ "answer": 422 })]).await).await;
    assert_eq!(first.status, 422);
    assert_eq!(shop.records().await, 0);
    runs_as_if_nothing_had_been(&shop, "/orders", "k").await;
}

#[tokio::test]
async fn scenario_36_a_panic_is_undone_and_a_retry_runs() {
    let shop = open().await;
    let told = problem(shop.order("/orders", "k", &[shop.write("first"), json!("panic")]).await).await;
    assert_eq!((told.status, told.slug.as_str()), (500, "idempotency-body-panicked"));
    assert_eq!((&told.body["state"], &told.body["retry"]), (&json!("released"), &json!("same-key")));
    runs_as_if_nothing_had_been(&shop, "/orders", "k").await;
}

#[tokio::test]
async fn clause_20_a_body_that_takes_too_long_is_undone_and_a_retry_runs() {
    let shop = open_with(|builder| {
        let builder = builder.transaction_timeout(Duration::from_millis(300)).lease(Duration::from_secs(6));
        builder.serve_only(|op| !op.starts_with("faulty."))
    })
    .await;
    for path in ["/orders", "/short"] {
        let told = problem(shop.order(path, "k", &[shop.write("first"), json!({ "sleep": 20_000 })]).await).await;
        assert_eq!((told.status, told.slug.as_str()), (504, "idempotency-body-timeout"));
        assert_eq!((&told.body["state"], &told.body["retry"]), (&json!("released"), &json!("same-key")));
    }
    // The session's end undoes it, a moment later: until then a retry is told to come back.
    eventually(async || shop.order("/orders", "k", &[]).await.status() == 201).await;
    assert_eq!(shop.orders().await, 0);
}

#[tokio::test]
async fn clause_16_a_final_client_error_keeps_the_rows() {
    let shop = open().await;
    let steps = [shop.write("fee"), json!({ "final": 402 })];
    let first = seen(shop.order("/orders", "k", &steps).await).await;
    let again = seen(shop.order("/orders", "k", &steps).await).await;
    assert_eq!((first.status, again.status, again.replayed), (402, 402, true));
    assert_eq!(shop.orders().await, 1);
}

#[tokio::test]
async fn clause_16_not_applied_undoes_even_a_success() {
    let shop = open().await;
    let first = seen(shop.order("/orders", "k", &[shop.write("first"), json!({ "not_applied": 200 })]).await).await;
    assert_eq!(first.status, 200);
    runs_as_if_nothing_had_been(&shop, "/orders", "k").await;
}

#[tokio::test]
async fn clause_13_a_client_error_that_is_kept_leaves_no_rows() {
    let shop = open().await;
    for (path, state) in [("/keeping", 3), ("/storing", 2)] {
        let steps = [shop.write("gone"), json!({ "link": "ch_1" }), json!({ "answer": 422 })];
        let first = seen(shop.order(path, "k", &steps).await).await;
        let again = seen(shop.order(path, "k", &steps).await).await;
        assert_eq!((first.status, again.status, again.replayed), (422, 422, true), "{path}");
        assert_eq!(again.body, first.body);
        assert_eq!(shop.count(&format!("select count(*) from idem_key where state = {state}")).await, 1, "{path}");
        assert_eq!(shop.orders().await, 0, "{path}");
        let good = seen(shop.order(path, "good", &[shop.write(path)]).await).await;
        assert!(good.ran());
        shop.sql(&format!("delete from {}", shop.place.table("orders"))).await;
        shop.sql("delete from idem_key").await;
    }
}

#[tokio::test]
async fn clause_27_links_are_committed_with_the_rows_or_not_at_all() {
    let shop = open().await;
    let link = json!({ "link": "ch_1" });
    shop.order("/orders", "failed", &[link.clone(), json!({ "answer": 500 })]).await;
    assert_eq!(shop.count("select count(*) from idem_link").await, 0);
    shop.order("/orders", "k", &[link, shop.write("book")]).await;
    assert_eq!(shop.record("tx.order", "k").await.links, [("gateway".to_owned(), "ch_1".to_owned())]);
}

#[tokio::test]
async fn clause_07_without_a_key_the_rows_still_belong_together() {
    let shop = open().await;
    let send = async |steps: &[serde_json::Value]| {
        let response = shop.client.post(shop.url("/optional")).bearer_auth("acme").json(steps).send().await.unwrap();
        assert_eq!(response.headers()["idempotency-status"], "ignored");
        response.status().as_u16()
    };
    assert_eq!(send(&[shop.write("one"), json!({ "answer": 500 })]).await, 500);
    assert_eq!(send(&[shop.write("two"), json!({ "answer": 404 })]).await, 404);
    assert_eq!(shop.orders().await, 0);
    assert_eq!(send(&[shop.write("three")]).await, 201);
    assert_eq!(send(&[shop.write("four"), json!({ "final": 402 })]).await, 402);
    assert_eq!((shop.orders().await, shop.records().await), (2, 0));
}

#[tokio::test]
async fn clause_02_the_local_cache_is_filled_by_the_commit_only() {
    let shop = open_with(|builder| builder.cache_bytes(1 << 20)).await;
    shop.order("/orders", "k", &[shop.write("first"), json!({ "answer": 500 })]).await;
    let second = seen(shop.order("/orders", "k", &[shop.write("second")]).await).await;
    assert!(second.ran());
    let asked = shop.store.calls(crate::support::Verb::Begin);
    assert!(seen(shop.order("/orders", "k", &[shop.write("second")]).await).await.replayed);
    assert_eq!(shop.store.calls(crate::support::Verb::Begin), asked, "the replay asked the store");
}
