//! Scenarios 55 … 57 and clause 23: what a process does with its keys when it stops.

use std::{pin::pin, time::Duration};

use axum::{Router, body::Body, http::Request, routing::post};
use futures_util::poll;
use idem_runtime::state::{Reason, State as Stands};
use serde_json::json;
use tokio::task::JoinHandle;
use tower::ServiceExt;

use crate::support::{App, Fault, Shop, Verb, eventually, handler, problem, seen};

handler!(charge, op = "shutdown.charge");
handler!(patient, op = "shutdown.patient", in_flight = wait("30s"));

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(200);

fn router() -> Router<App> {
    Router::new().route("/charge", post(charge)).route("/patient", post(patient))
}

fn send(shop: &Shop, path: &str, key: &str) -> JoinHandle<reqwest::Response> {
    let request = shop.post(path, key).json(&json!({}));
    tokio::spawn(async { request.send().await.unwrap() })
}

async fn running(shop: &Shop, path: &str, key: &str) -> JoinHandle<reqwest::Response> {
    let started = shop.probe.started();
    let request = send(shop, path, key);
    eventually(async || shop.probe.started() > started).await;
    request
}

#[tokio::test]
async fn scenario_55_a_body_that_runs_is_waited_for() {
    let shop = Shop::open(router()).await;
    let held = shop.probe.hold().await;
    let first = running(&shop, "/charge", "k1").await;
    let runtime = shop.runtime.clone();
    let shutdown = tokio::spawn(async move { runtime.shutdown(LONG).await });
    eventually(async || format!("{:?}", shop.runtime).contains("draining: true")).await;
    drop(held);
    let drained = shutdown.await.unwrap();
    assert_eq!((drained.completed, drained.in_doubt, drained.released), (true, 0, 0));
    assert_eq!(shop.state().await, 2, "and its outcome is stored");
    assert_eq!(first.await.unwrap().status(), 201);
}

/// A server's own graceful shutdown knows nothing of a body whose caller has left.
#[tokio::test]
async fn scenario_55_a_body_whose_caller_has_left_is_waited_for_as_well() {
    let shop = Shop::open(router()).await;
    let held = shop.probe.hold().await;
    running(&shop, "/charge", "k1").await.abort();
    let runtime = shop.runtime.clone();
    let shutdown = tokio::spawn(async move { runtime.shutdown(LONG).await });
    eventually(async || format!("{:?}", shop.runtime).contains("draining: true")).await;
    drop(held);
    assert!(shutdown.await.unwrap().completed);
    assert_eq!(shop.state().await, 2);
}

#[tokio::test]
async fn scenario_56_a_body_that_takes_too_long_is_in_doubt_at_once() {
    let shop = Shop::open_with(router(), |builder| builder.lease(Duration::from_secs(3600))).await;
    let held = shop.probe.hold().await;
    let first = running(&shop, "/charge", "k1").await;
    running(&shop, "/charge", "k2").await.abort();
    let drained = shop.runtime.shutdown(SHORT).await;
    assert_eq!((drained.completed, drained.in_doubt, drained.released), (false, 2, 0));
    for key in ["k1", "k2"] {
        let record = shop.record("shutdown.charge", key).await;
        assert_eq!((record.state, record.reason), (Stands::InDoubt, Some(Reason::Shutdown)));
        assert_eq!(record.lease_left, Duration::ZERO, "nobody need wait for an hour");
    }
    drop(held);
    assert_eq!(seen(first.await.unwrap()).await.body, "effect 1");
    eventually(async || shop.count("select count(*) from idem_key where state = 2").await == 2).await;
    assert_eq!(shop.probe.effects(), 2, "what ends after all is stored after all");
}

#[tokio::test]
async fn scenario_57_claims_are_refused_while_draining() {
    let shop = Shop::open(router()).await;
    shop.runtime.start_draining();
    assert!(shop.runtime.is_draining(), "for a readiness probe");
    let refused = problem(send(&shop, "/charge", "k1").await.unwrap()).await;
    assert_eq!((refused.status, refused.slug.as_str()), (503, "idempotency-draining"));
    assert_eq!((refused.retry_after, &refused.body["safe_new_key"]), (Some(1), &json!(true)));
    assert_eq!((shop.probe.started(), shop.store.calls(Verb::Claim), shop.records().await), (0, 0, 0));
}

#[tokio::test]
async fn clause_23_what_is_known_is_still_answered_while_draining() {
    for cache_bytes in [0, 1 << 20] {
        let shop = Shop::open_with(router(), |builder| builder.cache_bytes(cache_bytes)).await;
        let first = seen(send(&shop, "/charge", "done").await.unwrap()).await;
        shop.post("/charge", "doubt").json(&json!({"status": 500})).send().await.unwrap();
        let held = shop.probe.hold().await;
        let busy = running(&shop, "/charge", "busy").await;
        shop.runtime.start_draining();
        let again = seen(send(&shop, "/charge", "done").await.unwrap()).await;
        assert_eq!((again.replayed, &again.body), (true, &first.body));
        let told = async |key: &str, status: u16| {
            problem(shop.post("/charge", key).json(&json!({"status": status})).send().await.unwrap()).await.slug
        };
        assert_eq!(told("done", 202).await, "idempotency-key-reused");
        assert_eq!(told("doubt", 500).await, "idempotency-outcome-unknown");
        let in_flight = problem(send(&shop, "/charge", "busy").await.unwrap()).await;
        assert_eq!(in_flight.slug, "idempotency-in-progress");
        drop(held);
        assert_eq!(busy.await.unwrap().status(), 201, "what runs goes on");
    }
}

#[tokio::test]
async fn clause_23_who_waits_is_answered_at_once() {
    let shop = Shop::open_with(router(), |builder| builder.batch(1)).await;
    let held = shop.probe.hold().await;
    let first = running(&shop, "/patient", "k1").await;
    let waiting: Vec<_> = (0..3).map(|_| send(&shop, "/patient", "k1")).collect();
    eventually(async || shop.store.calls(Verb::Claim) == 4).await;
    shop.runtime.start_draining();
    for waiting in waiting {
        let answer = tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("before their 30 s are up");
        assert_eq!(problem(answer.unwrap()).await.slug, "idempotency-in-progress");
    }
    assert_eq!(shop.probe.effects(), 0);
    drop(held);
    assert_eq!(first.await.unwrap().status(), 201);
}

/// The store has granted it, but whoever asked has not been told when the time is up, and is not polled meanwhile. As soon as it is, the
/// claim is given back, and the body does not start. (What is granted ahead of its call is given back by the shutdown: `batches`.)
#[tokio::test]
async fn scenario_56_a_body_that_has_not_started_never_does() {
    let shop = Shop::open(router()).await;
    shop.store.tell(Verb::Claim, Fault::ReplySlow(SHORT * 3));
    let request = Request::post("/charge")
        .header("authorization", "Bearer acme")
        .header("idempotency-key", "k1")
        .header("content-type", "application/json")
        .body(Body::from("{}"));
    let mut call = pin!(shop.service(router()).oneshot(request.unwrap()));
    while shop.records().await == 0 {
        assert!(poll!(call.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    let drained = shop.runtime.shutdown(SHORT).await;
    assert_eq!((drained.completed, drained.in_doubt, drained.released), (false, 0, 0));
    let answer = call.await.unwrap();
    assert_eq!((answer.status().as_u16(), shop.probe.started()), (503, 0));
    assert_eq!(shop.record("shutdown.charge", "k1").await.state, Stands::Released);
    let next = Shop::open_on(std::sync::Arc::clone(&shop.place), router(), |builder| builder).await;
    assert_eq!(send(&next, "/charge", "k1").await.unwrap().status(), 201, "another process may run it");
}

/// The claim is still on its way when the time is up.
#[tokio::test]
async fn scenario_56_a_claim_that_is_granted_too_late_is_given_back() {
    let shop = Shop::open_with(router(), |builder| builder.lease(Duration::from_secs(3600))).await;
    shop.store.tell(Verb::Claim, Fault::Slow(SHORT * 3));
    let first = send(&shop, "/charge", "k1");
    eventually(async || shop.store.calls(Verb::Claim) == 1).await;
    assert!(!shop.runtime.shutdown(SHORT).await.completed);
    assert_eq!(problem(first.await.unwrap()).await.slug, "idempotency-draining");
    assert_eq!((shop.state().await, shop.probe.started()), (4, 0));
}
