//! Calls that wait together share their statements: C-46 for requests, and a store that has too much to do.

use std::time::{Duration, Instant};

use axum::{Router, routing::post};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::support::{App, Fault, Shop, Verb, eventually, handler, problem, seen};

handler!(charge, op = "sharing.charge");
handler!(patient, op = "sharing.patient", in_flight = wait("15s"));

fn router() -> Router<App> {
    Router::new().route("/charge", post(charge)).route("/patient", post(patient))
}

fn send(shop: &Shop, path: &str, key: &str) -> JoinHandle<reqwest::Response> {
    let request = shop.post(path, key).json(&json!({}));
    tokio::spawn(async { request.send().await.unwrap() })
}

/// A store at which each statement of this kind takes so long.
const SLOW: Fault = Fault::Slow(Duration::from_millis(60));

#[tokio::test]
async fn clause_46_requests_that_wait_together_share_their_statements() {
    let shop = Shop::open(router()).await;
    shop.store.tell(Verb::Claim, SLOW);
    shop.store.tell(Verb::Finish, SLOW);
    let requests: Vec<_> = (0..40).map(|n| send(&shop, "/charge", &n.to_string())).collect();
    for request in requests {
        assert!(seen(request.await.unwrap()).await.ran());
    }
    assert_eq!((shop.probe.effects(), shop.records().await), (40, 40));
    let (claims, finishes) = (shop.store.calls(Verb::Claim), shop.store.calls(Verb::Finish));
    assert!(claims + finishes <= 40, "{claims} claims and {finishes} completions were sent for 40 keys");
}

#[tokio::test]
async fn without_it_each_call_has_its_own() {
    let shop = Shop::open_with(router(), |builder| builder.batch(1)).await;
    let requests: Vec<_> = (0..20).map(|n| send(&shop, "/charge", &n.to_string())).collect();
    for request in requests {
        assert!(seen(request.await.unwrap()).await.ran());
    }
    assert_eq!((shop.store.calls(Verb::Claim), shop.store.calls(Verb::Finish)), (20, 20));
}

/// A click for each of 32 fingers.
#[tokio::test]
async fn clause_46_duplicates_cost_few_statements_and_have_one_effect() {
    let shop = Shop::open(router()).await;
    shop.store.tell(Verb::Claim, SLOW);
    let held = shop.probe.hold().await;
    let requests: Vec<_> = (0..32).map(|_| send(&shop, "/charge", "k1")).collect();
    let waiting: Vec<_> = (0..32).map(|_| send(&shop, "/patient", "k2")).collect();
    eventually(async || shop.probe.started() == 2 && requests.iter().filter(|it| it.is_finished()).count() == 31).await;
    assert!(shop.store.calls(Verb::Claim) <= 12, "{} claims were sent for 64 requests", shop.store.calls(Verb::Claim));
    drop(held);
    shop.store.heal();
    let mut answers = Vec::new();
    for request in requests {
        answers.push(request.await.unwrap().status().as_u16());
    }
    answers.sort_unstable();
    assert_eq!((answers[0], answers[1..].iter().all(|status| *status == 409)), (201, true), "{answers:?}");
    let mut ran = 0;
    for request in waiting {
        let seen = seen(request.await.unwrap()).await;
        assert_eq!(seen.status, 201);
        ran += usize::from(seen.ran());
    }
    assert_eq!((ran, shop.probe.effects()), (1, 2));
}

/// The store hangs with many waiting: what finds no place is refused at once, the others within their time, and nobody runs.
#[tokio::test]
async fn clause_21_a_store_with_too_much_to_do_refuses_and_nothing_runs() {
    let limit = Duration::from_millis(1500);
    let shop = Shop::open_with(router(), |builder| builder.store_queue(4).store_timeout(limit)).await;
    shop.store.tell(Verb::Claim, Fault::Slow(Duration::from_secs(60)));
    let began = Instant::now();
    let mut requests: Vec<_> = (0..60).map(|n| send(&shop, "/charge", &n.to_string())).collect();
    // At most four wait, and each 100 ms four more are on their way: the others have been told long before the time is up.
    eventually(async || requests.iter().filter(|request| request.is_finished()).count() >= 8).await;
    assert!(began.elapsed() < limit, "by the queue, and not by the time-out");
    assert_eq!(shop.store.calls(Verb::Finish), 0, "there is nothing to give back for what was not sent");
    for request in requests.drain(..) {
        let refused = problem(request.await.unwrap()).await;
        assert_eq!((refused.status, refused.slug.as_str()), (503, "idempotency-store-unavailable"));
        assert!(refused.retry_after.is_some());
        assert_eq!(refused.body["safe_new_key"], false);
    }
    assert_eq!((shop.probe.started(), shop.records().await), (0, 0));
    shop.store.heal();
    assert_eq!(send(&shop, "/charge", "0").await.unwrap().status(), 201);
}

/// Completions that wait for each other at shutdown are waited for, too.
#[tokio::test]
async fn clause_23_what_waits_for_a_statement_is_stored_before_the_end() {
    let shop = Shop::open(router()).await;
    let held = shop.probe.hold().await;
    let requests: Vec<_> = (0..20).map(|n| send(&shop, "/charge", &n.to_string())).collect();
    eventually(async || shop.probe.started() == 20).await;
    shop.store.tell(Verb::Finish, SLOW);
    let runtime = shop.runtime.clone();
    let shutdown = tokio::spawn(async move { runtime.shutdown(Duration::from_secs(20)).await });
    drop(held);
    let drained = shutdown.await.unwrap();
    assert_eq!((drained.completed, drained.in_doubt, drained.released), (true, 0, 0));
    assert_eq!(shop.count("select count(*) from idem_key where state = 2").await, 20);
    for request in requests {
        assert!(seen(request.await.unwrap()).await.ran());
    }
}
