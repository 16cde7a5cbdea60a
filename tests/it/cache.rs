//! Replays from the process's own cache: C10, C24, C54.

use std::{sync::Arc, time::Duration};

use axum::{Router, routing::post};
use futures_util::future::join_all;
use serde_json::json;

use crate::support::{App, Fault, Seen, Shop, Verb, eventually, handler, problem, refusal, seen};

handler!(charge, op = "cache.charge", ttl = "1h");
handler!(waiting, op = "cache.waiting", ttl = "1h", in_flight = wait("30s"));
handler!(kept, op = "cache.kept", ttl = "1h", client_errors = keep("30s"));

fn router() -> Router<App> {
    Router::new().route("/charge", post(charge)).route("/waiting", post(waiting)).route("/kept", post(kept))
}

async fn cached() -> Shop {
    Shop::open_with(router(), |builder| builder.cache_bytes(1 << 20)).await
}

/// The same file after a restart, with a cold cache.
async fn restarted(shop: &Shop) -> Shop {
    Shop::open_on(Arc::clone(&shop.place), router(), |builder| builder.cache_bytes(1 << 20)).await
}

async fn send(shop: &Shop, amount: u32) -> reqwest::Response {
    shop.post("/charge", "k1").json(&json!({ "amount": amount })).send().await.unwrap()
}

async fn assert_mismatch(shop: &Shop) {
    let told = problem(send(shop, 1000).await).await;
    assert_eq!((told.status, told.slug.as_str()), (422, "idempotency-key-reused"));
    assert!(!told.body.to_string().contains("effect"), "nothing of the stored answer leaks");
}

/// The path by memory: also with a store that is down.
#[tokio::test]
async fn case_10_a_replay_from_memory_asks_no_store_and_compares_the_payload() {
    let shop = cached().await;
    let first = seen(send(&shop, 10).await).await;
    let asked = shop.asked();
    shop.store.down();
    let again = seen(send(&shop, 10).await).await;
    assert_eq!((again.replayed, again.status, &again.location), (true, 201, &first.location));
    assert_eq!(again.body, first.body);
    assert_mismatch(&shop).await;
    assert_eq!((shop.asked(), shop.probe.effects()), (asked, 1));
}

/// The path by reading, and what it leaves in memory.
#[tokio::test]
async fn case_10_a_cold_cache_compares_the_payload_and_warms_up() {
    let shop = cached().await;
    let first = seen(send(&shop, 10).await).await;
    let later = restarted(&shop).await;
    assert_mismatch(&later).await;
    assert_eq!(seen(send(&later, 10).await).await.body, first.body);
    let asked = later.asked();
    assert!(seen(send(&later, 10).await).await.replayed);
    assert_mismatch(&later).await;
    assert_eq!(later.asked(), asked, "what was read once is remembered");
    assert_eq!(later.probe.effects(), 0);
}

/// The path by waking up.
#[tokio::test]
async fn case_10_a_waiter_compares_the_payload() {
    for cache_bytes in [0, 1 << 20] {
        let shop = Shop::open_with(router(), |builder| builder.batch(1).cache_bytes(cache_bytes)).await;
        let post = |amount: u32| shop.post("/waiting", "k1").json(&json!({ "amount": amount })).send();
        let gate = shop.probe.hold().await;
        let first = tokio::spawn(post(10));
        eventually(async || shop.probe.started() == 1).await;
        let (same, other) = (tokio::spawn(post(10)), tokio::spawn(post(1000)));
        eventually(async || shop.store.calls(Verb::Claim) >= 3).await;
        drop(gate);
        let first = seen(first.await.unwrap().unwrap()).await;
        let same = seen(same.await.unwrap().unwrap()).await;
        assert_eq!((same.replayed, same.body), (true, first.body));
        assert_eq!(refusal(other.await.unwrap().unwrap()).await, (422, "idempotency-key-reused".to_owned()));
        assert_eq!(shop.probe.effects(), 1);
    }
}

#[tokio::test]
async fn case_24_a_restart_forgets_nothing() {
    let shop = cached().await;
    let first = seen(send(&shop, 10).await).await;
    let place = Arc::clone(&shop.place);
    drop(shop);
    let later = Shop::open_on(place, router(), |same| same).await;
    let again = seen(send(&later, 10).await).await;
    assert_eq!(again, Seen { replayed: true, ..first });
    assert_mismatch(&later).await;
    assert_eq!(later.probe.effects(), 0);
}

/// Right after the answer, when a stale in-flight entry would still be around.
#[tokio::test]
async fn case_54_what_is_completed_is_replayed_at_once() {
    let shop = cached().await;
    let first = seen(send(&shop, 10).await).await;
    for answer in join_all((0..50).map(|_| send(&shop, 10))).await {
        let answer = seen(answer).await;
        assert_eq!((answer.replayed, &answer.body), (true, &first.body));
    }
    assert_eq!(shop.probe.effects(), 1);
}

/// A duplicate that met the running one has left nothing behind that outlives it.
#[tokio::test]
async fn case_54_running_is_never_remembered() {
    let shop = cached().await;
    let other = restarted(&shop).await;
    let gate = shop.probe.hold().await;
    let first = tokio::spawn(shop.post("/charge", "k1").json(&json!({"amount": 10})).send());
    eventually(async || shop.probe.started() == 1).await;
    for shop in [&shop, &other] {
        assert_eq!(refusal(send(shop, 10).await).await, (409, "idempotency-in-progress".to_owned()));
    }
    drop(gate);
    let first = seen(first.await.unwrap().unwrap()).await;
    for shop in [&shop, &other] {
        assert_eq!(seen(send(shop, 10).await).await.body, first.body);
    }
}

/// A rejection can still become something else, so it is not kept in memory.
#[tokio::test]
async fn clause_13_a_kept_client_error_is_read_from_the_store() {
    let shop = cached().await;
    let post = |plan: serde_json::Value| shop.post("/kept", "k1").json(&plan).send();
    assert_eq!(post(json!({"status": 422})).await.unwrap().status(), 422);
    assert!(seen(post(json!({"status": 422})).await.unwrap()).await.replayed);
    let other = restarted(&shop).await;
    let corrected = other.post("/kept", "k1").json(&json!({"status": 201})).send().await.unwrap();
    assert_eq!(seen(corrected).await.status, 201);
    let told = post(json!({"status": 422})).await.unwrap();
    assert_eq!(refusal(told).await, (422, "idempotency-key-reused".to_owned()), "not the old answer");
}

/// The store's clock says how long; the process's own only measures it. By how much is shown next to the cache.
#[tokio::test]
async fn clause_12_memory_does_not_outlive_the_window() {
    let shop = cached().await;
    let first = seen(send(&shop, 10).await).await;
    let later = restarted(&shop).await;
    shop.pass(Duration::from_secs(3598)).await;
    assert_eq!(seen(send(&later, 10).await).await.body, first.body, "two seconds are left, in memory too");
    later.pass(Duration::from_secs(3600)).await;
    eventually(async || seen(send(&later, 10).await).await.ran()).await;
    assert_eq!(later.probe.effects(), 1);
}

#[tokio::test]
async fn clause_21_memory_is_no_excuse_for_a_store_that_is_down() {
    let shop = cached().await;
    shop.store.tell(Verb::Claim, Fault::Down);
    assert_eq!(send(&shop, 10).await.status(), 503);
    shop.store.heal();
    assert_eq!(seen(send(&shop, 10).await).await.status, 201);
    assert_eq!(shop.probe.effects(), 1);
}
