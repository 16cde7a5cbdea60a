//! Scenarios 66 … 68 and clause 04: duplicates that wait for the first run.

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
    response::Response,
    routing::post,
};
use futures_util::{future::join_all, poll};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tower::ServiceExt;

use crate::support::{App, Seen, Shop, Verb, eventually, handler, problem, seen};

handler!(one, op = "waiting.one", in_flight = wait("1s"));
handler!(thirty, op = "waiting.thirty", in_flight = wait("30s"));
handler!(reject, op = "waiting.reject", in_flight = reject);

fn router() -> Router<App> {
    Router::new().route("/one", post(one)).route("/thirty", post(thirty)).route("/reject", post(reject))
}

/// Each duplicate asks by itself, which is how these tests know that it waits.
async fn shop() -> Shop {
    Shop::open_with(router(), |builder| builder.batch(1)).await
}

fn send(shop: &Shop, path: &str, key: &str, body: &Value) -> JoinHandle<reqwest::Response> {
    let request = shop.post(path, key).json(body);
    tokio::spawn(async { request.send().await.unwrap() })
}

async fn running(shop: &Shop, path: &str, key: &str, body: &Value) -> JoinHandle<reqwest::Response> {
    let started = shop.probe.started();
    let request = send(shop, path, key, body);
    eventually(async || shop.probe.started() > started).await;
    request
}

/// Waits until this many claims have been answered, so that those of duplicates wait.
async fn asked(shop: &Shop, claims: usize) {
    eventually(async || shop.store.calls(Verb::Claim) == claims && shop.store.calls(Verb::Peek) > 0).await;
}

fn request(path: &str, key: &str) -> Request<Body> {
    Request::post(path)
        .header("authorization", "Bearer acme")
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .body(Body::from("{}"))
        .unwrap()
}

async fn text(response: Response) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn scenario_66_a_duplicate_waits_for_the_answer_and_gets_it() {
    let shop = Shop::open(router()).await;
    let held = shop.probe.hold().await;
    let first = running(&shop, "/thirty", "k1", &json!({})).await;
    let second = send(&shop, "/thirty", "k1", &json!({}));
    asked(&shop, 2).await;
    let started = Instant::now();
    drop(held);
    let (first, second) = (seen(first.await.unwrap()).await, seen(second.await.unwrap()).await);
    assert!(started.elapsed() < Duration::from_secs(10), "as soon as it is there");
    assert_eq!(second, Seen { replayed: true, ..first });
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn scenario_67_a_duplicate_waits_so_long_and_no_longer() {
    let shop = Shop::open(router()).await;
    let _held = shop.probe.hold().await;
    let _first = running(&shop, "/one", "k1", &json!({})).await;
    let started = Instant::now();
    let second = problem(send(&shop, "/one", "k1", &json!({})).await.unwrap()).await;
    assert_eq!((second.status, second.slug.as_str()), (409, "idempotency-in-progress"));
    assert!(second.retry_after.is_some());
    assert!((Duration::from_secs(1)..Duration::from_secs(4)).contains(&started.elapsed()), "{:?}", started.elapsed());
}

/// `Prefer: wait=n` (RFC 7240) asks for less, never for more.
#[tokio::test]
async fn clause_04_a_caller_may_shorten_its_wait() {
    let shop = Shop::open(router()).await;
    let _held = shop.probe.hold().await;
    let _first = (running(&shop, "/thirty", "k1", &json!({})).await, running(&shop, "/one", "k1", &json!({})).await);
    for (path, prefer, at_least) in [
        ("/thirty", "wait=0", 0),
        ("/thirty", "respond-async, WAIT = \"1\"; foo", 1),
        ("/one", "wait=300", 1),
        ("/reject", "wait=300", 0),
    ] {
        if path == "/reject" {
            drop(running(&shop, path, "k1", &json!({})).await);
        }
        let started = Instant::now();
        let sent = shop.post(path, "k1").header("prefer", prefer).json(&json!({})).send().await.unwrap();
        assert_eq!(problem(sent).await.slug, "idempotency-in-progress", "{path} {prefer}");
        let waited = started.elapsed();
        assert!(
            waited >= Duration::from_secs(at_least) && waited < Duration::from_secs(at_least + 4),
            "{prefer} {waited:?}"
        );
    }
}

#[tokio::test]
async fn scenario_68_a_thousand_duplicates_cost_one_query_a_tick() {
    let shop = shop().await; // 100 waiters per key
    let service = shop.service(router());
    let held = shop.probe.hold().await;
    let first = tokio::spawn(service.clone().oneshot(request("/thirty", "k1")));
    eventually(async || shop.probe.started() == 1).await;

    let started = Instant::now();
    let mut duplicates = Vec::new();
    for sent in (100..=1000).step_by(100) {
        // Not all at once: a store has few connections, and who waits too long for one is told that it is away.
        duplicates.extend((0..100).map(|_| tokio::spawn(service.clone().oneshot(request("/thirty", "k1")))));
        eventually(async || shop.store.calls(Verb::Claim) > sent).await;
        eventually(async || duplicates.iter().filter(|duplicate| duplicate.is_finished()).count() == sent - 100).await;
    }
    let polled = shop.store.calls(Verb::Peek);
    eventually(async || shop.store.calls(Verb::Peek) >= polled + 3).await;
    // A tick is 50 ms at first and at least three quarters of that.
    let ticks = started.elapsed().as_millis() / 37 + 2;
    assert!(shop.store.calls(Verb::Peek) as u128 <= ticks, "{} calls", shop.store.calls(Verb::Peek));
    assert_eq!(duplicates.iter().filter(|duplicate| duplicate.is_finished()).count(), 900, "100 wait");

    drop(held);
    let first = text(first.await.unwrap().unwrap()).await;
    let mut statuses = (0, 0);
    for duplicate in join_all(duplicates).await {
        let response = duplicate.unwrap().unwrap();
        match response.status() {
            StatusCode::CONFLICT => statuses.1 += 1,
            StatusCode::CREATED => {
                statuses.0 += 1;
                assert_eq!(response.headers()["idempotent-replayed"], "true");
                assert_eq!(text(response).await, first);
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!((statuses, shop.probe.effects()), ((100, 900), 1));
}

#[tokio::test]
async fn scenario_68_there_is_a_limit_for_the_process_as_well() {
    let shop = Shop::open_with(router(), |builder| builder.batch(1).waiters(3, 5).cache_bytes(1 << 20)).await;
    let service = shop.service(router());
    let held = shop.probe.hold().await;
    for key in ["k1", "k2", "k3"] {
        running(&shop, "/thirty", key, &json!({})).await.abort();
    }
    let duplicates = ["k1", "k1", "k1", "k1", "k2", "k2", "k2", "k3"];
    let duplicates = duplicates.map(|key| tokio::spawn(service.clone().oneshot(request("/thirty", key))));
    eventually(async || duplicates.iter().filter(|duplicate| duplicate.is_finished()).count() == 3).await;
    let waiting = |of: std::ops::Range<usize>| of.filter(|n| !duplicates[*n].is_finished()).count();
    assert!(waiting(0..4) <= 3 && waiting(4..7) <= 3, "three of one key");
    assert_eq!(waiting(0..8), 5, "five of the process");
    drop(held);
    let claims = shop.store.calls(Verb::Claim);
    let answers = join_all(duplicates).await.into_iter().map(|answer| answer.unwrap().unwrap().status());
    assert_eq!(answers.filter(|status| *status == 201).count(), 5);
    assert_eq!(shop.store.calls(Verb::Claim), claims, "the woken are answered from memory");
}

#[tokio::test]
async fn clause_04_a_waiter_whose_caller_left_gives_its_place_back() {
    let shop = Shop::open_with(router(), |builder| builder.batch(1).waiters(1, 1)).await;
    let service = shop.service(router());
    let held = shop.probe.hold().await;
    let first = running(&shop, "/thirty", "k1", &json!({})).await;
    {
        let mut leaves = pin!(service.clone().oneshot(request("/thirty", "k1")));
        while shop.store.calls(Verb::Peek) == 0 {
            assert!(poll!(leaves.as_mut()).is_pending());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let full = problem(send(&shop, "/thirty", "k1", &json!({})).await.unwrap()).await;
        assert_eq!(full.slug, "idempotency-in-progress", "there is one place");
    }
    let stays = tokio::spawn(service.oneshot(request("/thirty", "k1")));
    asked(&shop, 4).await;
    drop(held);
    let first = seen(first.await.unwrap()).await;
    assert_eq!(text(stays.await.unwrap().unwrap()).await, first.body);
}

#[tokio::test]
async fn clause_04_a_waiter_that_wakes_to_a_free_key_runs() {
    let shop = shop().await;
    let held = shop.probe.hold().await;
    let body = json!({"status": 422});
    let first = running(&shop, "/thirty", "k1", &body).await;
    let second = send(&shop, "/thirty", "k1", &body);
    asked(&shop, 2).await;
    drop(held);
    let (first, second) = (seen(first.await.unwrap()).await, seen(second.await.unwrap()).await);
    assert_eq!((first.status, first.body.as_str()), (422, "effect 1"));
    assert_eq!((second.status, second.body.as_str(), second.replayed), (422, "effect 2", false));
}

#[tokio::test]
async fn clause_04_a_waiter_hears_of_a_doubt_and_a_mismatch_does_not_wait() {
    let shop = shop().await;
    let held = shop.probe.hold().await;
    let body = json!({"status": 500});
    let first = running(&shop, "/thirty", "k1", &body).await;
    let other = problem(send(&shop, "/thirty", "k1", &json!({})).await.unwrap()).await;
    assert_eq!(other.slug, "idempotency-key-reused", "at once: scenario 05");
    let second = send(&shop, "/thirty", "k1", &body);
    asked(&shop, 3).await;
    drop(held);
    assert_eq!(first.await.unwrap().status(), 500);
    assert_eq!(problem(second.await.unwrap()).await.slug, "idempotency-outcome-unknown");
}

/// Nobody in this process can wake it: it polls.
#[tokio::test]
async fn clause_04_a_waiter_of_another_process_gets_the_answer() {
    let owner = shop().await;
    let other = Shop::open_on(Arc::clone(&owner.place), router(), |builder| builder).await;
    let held = owner.probe.hold().await;
    let first = running(&owner, "/thirty", "k1", &json!({})).await;
    let second = send(&other, "/thirty", "k1", &json!({}));
    asked(&other, 1).await;
    drop(held);
    let (first, second) = (seen(first.await.unwrap()).await, seen(second.await.unwrap()).await);
    assert_eq!(second, Seen { replayed: true, ..first });
    assert_eq!((owner.probe.effects(), other.probe.effects()), (1, 0));
}

#[tokio::test]
async fn case_22_simultaneous_deliveries_never_see_an_error_of_ours() {
    let shop = shop().await;
    for (path, allowed) in [("/thirty", vec![201]), ("/reject", vec![201, 409])] {
        let held = shop.probe.hold().await;
        let deliveries: Vec<_> = (0..10).map(|_| send(&shop, path, "e7", &json!({}))).collect();
        let claims = shop.store.calls(Verb::Claim);
        eventually(async || shop.store.calls(Verb::Claim) >= claims + 10).await;
        drop(held);
        for delivery in deliveries {
            let status = delivery.await.unwrap().status().as_u16();
            assert!(allowed.contains(&status), "{path}: {status}");
        }
    }
    assert_eq!(shop.probe.effects(), 2, "one of each operation");
}
