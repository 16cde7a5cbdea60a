//! Scenarios 39 … 48: callers that leave, and owners that fall silent and come back.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{Request, State},
    http::StatusCode,
    middleware::Next,
    response::{IntoResponse, Response},
    routing::post,
};
use idem_runtime::{Audit, ErrorKind, Execution, Resolution, StoredResponse, idempotent, state::State as Stands};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::support::{App, Fault, Plan, Probe, Seen, Shop, Tenant, Verb, eventually, handler, problem, seen};

handler!(charge, op = "interruptions.charge");
handler!(limited, op = "interruptions.limited", timeout = "1s");

/// Goes on until it is told that going on is of no use.
#[idempotent(scope = "tenant", op = "interruptions.watchful")]
async fn watchful(
    tenant: Tenant,
    State(probe): State<Probe>,
    #[idem] exec: Execution,
    Json(plan): Json<Plan>,
) -> Response {
    tokio::select! {
        () = exec.cancelled().cancelled() => {
            probe.effect("cancelled");
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
        response = probe.perform(&plan) => response,
    }
}

/// Sees whether the server has dropped the future of a request.
async fn notice_hang_ups(State(probe): State<Probe>, request: Request, next: Next) -> Response {
    struct Unfinished(Option<Probe>);
    impl Drop for Unfinished {
        fn drop(&mut self) {
            self.0.iter().for_each(|probe| probe.effect("hung up"));
        }
    }
    let mut unfinished = Unfinished(Some(probe));
    let response = next.run(request).await;
    unfinished.0 = None;
    response
}

fn router() -> Router<App> {
    Router::new().route("/charge", post(charge)).route("/limited", post(limited)).route("/watchful", post(watchful))
}

fn send(shop: &Shop, path: &str, key: &str) -> JoinHandle<reqwest::Response> {
    let request = shop.post(path, key).json(&json!({}));
    tokio::spawn(async { request.send().await.unwrap() })
}

/// Sends a request whose body is held, and waits until it runs.
async fn running(shop: &Shop, path: &str, key: &str) -> JoinHandle<reqwest::Response> {
    let started = shop.probe.started();
    let request = send(shop, path, key);
    eventually(async || shop.probe.started() > started).await;
    request
}

/// The caller leaves while the body runs; what the retry gets.
async fn hang_up(client: reqwest::Client) {
    let probe = Probe::default();
    let watched = router().layer(axum::middleware::from_fn_with_state(probe.clone(), notice_hang_ups));
    let shop = Shop::open(watched).await;
    let post = |key: &str| client.post(shop.url("/charge")).bearer_auth("acme").header("idempotency-key", key);
    assert_eq!(post("k0").json(&json!({})).send().await.unwrap().status(), 201);

    let held = shop.probe.hold().await;
    let request = tokio::spawn(post("k1").json(&json!({})).send());
    eventually(async || shop.probe.started() == 2).await;
    request.abort();
    eventually(async || probe.log() == ["hung up"]).await;
    assert_eq!(shop.record("interruptions.charge", "k1").await.state, Stands::InFlight);
    drop(held);
    eventually(async || shop.record("interruptions.charge", "k1").await.state == Stands::Done).await;

    let again = seen(post("k1").json(&json!({})).send().await.unwrap()).await;
    assert_eq!((again.status, again.replayed, again.body.as_str()), (201, true, "effect 2"));
    assert_eq!(shop.probe.effects(), 2, "one of each key");
}

/// Case 04 and clause 17 as well.
#[tokio::test]
async fn scenario_39_a_caller_who_hangs_up_does_not_stop_the_body() {
    hang_up(reqwest::Client::builder().no_proxy().http1_only().build().unwrap()).await;
}

#[tokio::test]
async fn scenario_39_a_stream_that_is_reset_does_not_stop_the_body() {
    hang_up(reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap()).await;
}

/// The held half of scenario 47, and T11: late, but nobody else's.
#[tokio::test]
async fn clause_19_a_late_completion_counts_if_nobody_took_over() {
    let shop = Shop::open(router()).await;
    let held = shop.probe.hold().await;
    let first = running(&shop, "/charge", "k1").await;
    shop.freeze().await;
    let meanwhile = problem(send(&shop, "/charge", "k1").await.unwrap()).await;
    assert_eq!(meanwhile.slug, "idempotency-outcome-unknown");
    drop(held);
    let first = seen(first.await.unwrap()).await;
    assert_eq!((first.status, first.replayed), (201, false));
    let again = seen(send(&shop, "/charge", "k1").await.unwrap()).await;
    assert_eq!((again.status, again.replayed, &again.body), (201, true, &first.body));
    assert_eq!(shop.probe.effects(), 1);
}

/// A held body, frozen; then an operator settles its record, and the body goes on. What its caller and a retry get.
async fn settled_meanwhile(how: Resolution) -> (reqwest::Response, reqwest::Response) {
    let shop = Shop::open(router()).await;
    let held = shop.probe.hold().await;
    let first = running(&shop, "/charge", "k1").await;
    let by = Audit { who: "ops".to_owned(), why: "asked the bank".to_owned() };
    let live = shop.record("interruptions.charge", "k1").await;
    let early = shop.runtime.resolve(live.id, live.fence, how.clone(), by.clone()).await.unwrap_err();
    assert_eq!(early.kind(), ErrorKind::Conflict, "a live run is nobody's to settle");
    shop.freeze().await;
    shop.pass(Duration::from_secs(3600)).await;
    shop.runtime.resolve(live.id, live.fence, how, by).await.unwrap();
    drop(held);
    let first = first.await.unwrap();
    assert_eq!(shop.probe.effects(), 1);
    let its_own = format!(
        "select count(*) from {} where substr(body, 1, 6) = {}",
        shop.place.backend().answers(),
        shop.place.bytes(b"effect")
    );
    assert_eq!(shop.count(&its_own).await, 0);
    (first, send(&shop, "/charge", "k1").await.unwrap())
}

/// Case 08 (held part) and scenario 48 as well: its completion changes nothing.
#[tokio::test]
async fn clause_19_a_loser_serves_what_is_stored_and_never_its_own_answer() {
    let answer = StoredResponse::http((StatusCode::OK, [("location", "/charges/7")], "settled")).await.unwrap();
    let (first, again) = settled_meanwhile(Resolution::Complete(answer)).await;
    let (first, again) = (seen(first).await, seen(again).await);
    assert_eq!(first, again, "both callers get one answer");
    let location = Some("/charges/7".to_owned());
    assert_eq!(first, Seen { status: 200, location, body: "settled".to_owned(), replayed: true });
}

#[tokio::test]
async fn clause_19_a_loser_of_a_voided_record_says_that_its_answer_is_gone() {
    let (first, again) = settled_meanwhile(Resolution::Void).await;
    let (first, again) = (problem(first).await, problem(again).await);
    assert_eq!((first.status, first.slug.as_str()), (410, "idempotency-result-unavailable"));
    assert_eq!((again.status, &again.body), (410, &first.body));
    assert_eq!(first.body["safe_new_key"], false);
}

/// The one case in which two bodies ran: the operator vouched that the first would not act any more.
#[tokio::test]
async fn clause_19_a_loser_without_a_stored_answer_says_that_it_does_not_know() {
    let (first, again) = settled_meanwhile(Resolution::Release).await;
    let first = problem(first).await;
    assert_eq!((first.status, first.slug.as_str()), (409, "idempotency-outcome-unknown"));
    assert_eq!(first.body["safe_new_key"], false);
    assert_eq!(again.status(), 201, "released: the retry runs");
}

/// Case 14 as well: the lease is a crash detector, not a limit. Real seconds pass here, since the renewals of a living
/// process are what is shown.
#[tokio::test]
async fn case_60_a_living_owner_keeps_its_key_and_a_dead_one_does_not() {
    let living = Shop::open(router()).await; // leases of 2 s
    let shorter = |builder: idem_runtime::Builder| builder.lease(Duration::from_secs(1));
    let dead = Shop::open_on(Arc::clone(&living.place), router(), shorter).await;
    dead.store.tell(Verb::Renew, Fault::Down);
    let held = (living.probe.hold().await, dead.probe.hold().await);
    let keys: Vec<String> = (0..5).map(|n| n.to_string()).collect();
    let (mut first, mut lost) = (Vec::new(), Vec::new());
    for key in &keys {
        first.push(running(&living, "/charge", &format!("live{key}")).await);
        lost.push(running(&dead, "/charge", &format!("dead{key}")).await);
    }
    let refusal = async |key: String| problem(send(&living, "/charge", &key).await.unwrap()).await.slug;
    eventually(async || {
        assert_eq!(refusal("live0".to_owned()).await, "idempotency-in-progress");
        living.record("interruptions.charge", "live0").await.age > Duration::from_secs(5) // several leases
    })
    .await;
    for key in &keys {
        assert_eq!(refusal(format!("live{key}")).await, "idempotency-in-progress");
        assert_eq!(refusal(format!("dead{key}")).await, "idempotency-outcome-unknown");
    }
    drop(held);
    for (key, first) in keys.iter().zip(first) {
        let first = seen(first.await.unwrap()).await;
        let again = seen(send(&living, "/charge", &format!("live{key}")).await.unwrap()).await;
        assert_eq!((again.status, again.replayed, again.body), (201, true, first.body));
    }
    assert_eq!(living.probe.effects(), 5);
}

#[tokio::test]
async fn case_57_a_body_that_hangs_is_ended_by_its_time_limit() {
    let shop = Shop::open(router()).await;
    let _held = shop.probe.hold().await;
    let first = problem(send(&shop, "/limited", "k1").await.unwrap()).await;
    assert_eq!((first.status, first.slug.as_str()), (504, "idempotency-body-timeout"));
    assert_eq!((&first.body["safe_new_key"], &first.body["retry"]), (&json!(false), &json!("operator")));
    let again = problem(send(&shop, "/limited", "k1").await.unwrap()).await;
    assert_eq!((again.status, again.slug.as_str()), (409, "idempotency-outcome-unknown"));
    assert_eq!((shop.probe.started(), shop.probe.effects()), (1, 0), "it was dropped where it hung");
}

/// A layer outside that gives up is one more caller who leaves.
#[tokio::test]
async fn case_57_a_time_limit_outside_leaves_the_body_running() {
    let limit =
        tower_http::timeout::TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, Duration::from_secs(1));
    let shop = Shop::open(router().layer(limit)).await;
    let held = shop.probe.hold().await;
    let first = running(&shop, "/charge", "k1").await.await.unwrap();
    assert_eq!(first.status(), 408, "the layer's answer");
    let meanwhile = problem(send(&shop, "/charge", "k1").await.unwrap()).await;
    assert_eq!(meanwhile.slug, "idempotency-in-progress");
    drop(held);
    eventually(async || shop.state().await == 2).await;
    let again = seen(send(&shop, "/charge", "k1").await.unwrap()).await;
    assert_eq!((again.status, again.replayed, again.body.as_str()), (201, true, "effect 1"));
}

#[tokio::test]
async fn clause_20_a_body_whose_leases_cannot_be_renewed_is_told() {
    let shop = Shop::open_with(router(), |builder| builder.lease(Duration::from_secs(1))).await;
    let _held = shop.probe.hold().await;
    shop.store.tell(Verb::Renew, Fault::Down);
    let first = running(&shop, "/watchful", "k1").await.await.unwrap();
    assert_eq!((first.status().as_u16(), shop.probe.log()), (503, vec!["cancelled".to_owned()]));
}

/// By the first renewal that arrives after it: with 6 s of lease after 2 s, and not when the lease would have ended.
#[tokio::test]
async fn clause_20_a_body_whose_record_was_settled_is_told() {
    let shop = Shop::open_with(router(), |builder| builder.lease(Duration::from_secs(6))).await;
    let _held = shop.probe.hold().await;
    let first = running(&shop, "/watchful", "k1").await;
    shop.pass(Duration::from_secs(10)).await;
    let seen = shop.record("interruptions.watchful", "k1").await;
    let by = Audit { who: "ops".to_owned(), why: "void".to_owned() };
    shop.runtime.resolve(seen.id, seen.fence, Resolution::Void, by).await.unwrap();
    assert_eq!(problem(first.await.unwrap()).await.slug, "idempotency-result-unavailable");
    assert_eq!((shop.probe.log(), shop.store.calls(Verb::Renew)), (vec!["cancelled".to_owned()], 1));
}
