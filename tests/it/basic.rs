//! Scenarios 1 … 11: one request and its repeats.

use axum::{
    Json, Router,
    extract::{Path, State},
    response::Response,
    routing::post,
};
use futures_util::future::join_all;
use idem_runtime::idempotent;
use serde_json::json;

use crate::support::{App, Plan, Probe, Shop, Tenant, eventually, handler, problem, refusal, seen};

handler!(charge, op = "basic.charge", ttl = "24h");

/// A deploy changes what the code answers.
#[idempotent(scope = "tenant", op = "basic.deployed", ttl = "24h")]
async fn deployed<const STATUS: u16>(tenant: Tenant, State(probe): State<Probe>, Json(_): Json<Plan>) -> Response {
    probe.perform(&Plan { status: Some(STATUS), panic: false }).await
}

#[idempotent(scope = "tenant", op = "basic.account", ttl = "24h")]
async fn account(
    tenant: Tenant,
    State(probe): State<Probe>,
    Path(_account): Path<String>,
    Json(plan): Json<Plan>,
) -> Response {
    probe.perform(&plan).await
}

fn router() -> Router<App> {
    Router::new().route("/charge", post(charge)).route("/accounts/{account}", post(account))
}

#[tokio::test]
async fn scenario_01_first_request_runs_once() {
    let shop = Shop::open(router()).await;
    let first = seen(shop.post("/charge", "k1").json(&json!({"amount": 10})).send().await.unwrap()).await;
    assert_eq!((first.status, first.replayed), (201, false));
    assert_eq!(shop.probe.effects(), 1);
    assert_eq!(shop.state().await, 2, "done");
}

#[tokio::test]
async fn scenario_02_a_repeat_gets_the_same_answer_and_no_effect() {
    let shop = Shop::open(router()).await;
    let send = || shop.post("/charge", "k1").json(&json!({"amount": 10})).send();
    let first = seen(send().await.unwrap()).await;
    let again = seen(send().await.unwrap()).await;
    assert!(again.replayed);
    assert_eq!((again.status, &again.location, &again.body), (first.status, &first.location, &first.body));
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn scenario_03_a_stored_answer_outlives_the_code_that_gave_it() {
    let before = Shop::open(Router::new().route("/charge", post(deployed::<201>))).await;
    let first = seen(before.post("/charge", "k1").json(&json!({})).send().await.unwrap()).await;
    let after =
        Shop::open_on(before.place.clone(), Router::new().route("/charge", post(deployed::<200>)), |same| same).await;
    let again = seen(after.post("/charge", "k1").json(&json!({})).send().await.unwrap()).await;
    assert_eq!((again.status, &again.body, again.replayed), (201, &first.body, true));
    let new = seen(after.post("/charge", "k2").json(&json!({})).send().await.unwrap()).await;
    assert_eq!((new.status, after.probe.effects()), (200, 1), "the new code is there");
}

#[tokio::test]
async fn scenario_04_another_payload_is_refused() {
    let shop = Shop::open(router()).await;
    shop.post("/charge", "k1").json(&json!({"amount": 10})).send().await.unwrap();
    let other = problem(shop.post("/charge", "k1").json(&json!({"amount": 1000})).send().await.unwrap()).await;
    assert_eq!((other.status, other.slug.as_str()), (422, "idempotency-key-reused"));
    assert!(!other.body.to_string().contains("effect"), "nothing of the stored answer leaks");
    assert_eq!(shop.probe.effects(), 1);
}

/// Also C10, the path by a claim that meets a running one.
#[tokio::test]
async fn scenario_05_a_mismatch_is_told_before_the_first_run_has_ended() {
    let shop = Shop::open(router()).await;
    let gate = shop.probe.hold().await;
    let first = tokio::spawn(shop.post("/charge", "k1").json(&json!({"amount": 10})).send());
    eventually(async || shop.probe.started() == 1).await;
    let same = problem(shop.post("/charge", "k1").json(&json!({"amount": 10})).send().await.unwrap()).await;
    assert_eq!((same.status, same.slug.as_str()), (409, "idempotency-in-progress"));
    let other = shop.post("/charge", "k1").json(&json!({"amount": 1000})).send().await.unwrap();
    assert_eq!(refusal(other).await, (422, "idempotency-key-reused".to_owned()));
    drop(gate);
    assert_eq!(first.await.unwrap().unwrap().status(), 201);
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn scenario_09_another_path_parameter_is_another_payload() {
    let shop = Shop::open(router()).await;
    let send = |account: &str| shop.post(&format!("/accounts/{account}"), "k1").json(&json!({})).send();
    let first = seen(send("1").await.unwrap()).await;
    assert_eq!(refusal(send("2").await.unwrap()).await, (422, "idempotency-key-reused".to_owned()));
    assert_eq!(seen(send("1").await.unwrap()).await.body, first.body);
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn scenario_10_of_many_at_once_one_runs() {
    let shop = Shop::open(router()).await;
    let answers = join_all((0..50).map(|_| shop.post("/charge", "k1").json(&json!({"amount": 10})).send())).await;
    let (mut ran, mut replayed) = (Vec::new(), Vec::new());
    for answer in answers {
        let answer = answer.unwrap();
        if answer.status() == 409 {
            let told = problem(answer).await;
            assert_eq!(told.slug, "idempotency-in-progress");
            assert!(told.retry_after >= Some(1), "{:?}", told.retry_after);
        } else {
            let answer = seen(answer).await;
            assert_eq!(answer.status, 201);
            if answer.replayed { &mut replayed } else { &mut ran }.push(answer.body);
        }
    }
    assert_eq!(ran.len(), 1);
    assert!(replayed.iter().all(|body| *body == ran[0]), "{replayed:?}");
    assert_eq!(shop.probe.effects(), 1);
}

/// As scenario 10, but all of them surely meet the running one.
#[tokio::test]
async fn clause_04_a_duplicate_in_flight_is_told_to_come_back() {
    let shop = Shop::open(router()).await;
    let gate = shop.probe.hold().await;
    let first = tokio::spawn(shop.post("/charge", "k1").json(&json!({"amount": 10})).send());
    eventually(async || shop.probe.started() == 1).await;
    for answer in join_all((0..10).map(|_| shop.post("/charge", "k1").json(&json!({"amount": 10})).send())).await {
        let told = problem(answer.unwrap()).await;
        assert_eq!((told.status, told.retry_after), (409, Some(1)));
        assert_eq!((&told.body["state"], &told.body["retry"]), (&json!("in_flight"), &json!("same-key")));
        assert_eq!(told.body["safe_new_key"], false);
    }
    drop(gate);
    let first = seen(first.await.unwrap().unwrap()).await;
    let again = seen(shop.post("/charge", "k1").json(&json!({"amount": 10})).send().await.unwrap()).await;
    assert_eq!((again.replayed, again.body), (true, first.body));
    assert_eq!((shop.probe.started(), shop.probe.effects()), (1, 1));
}

#[tokio::test]
async fn scenario_11_the_status_of_a_mismatch_can_be_chosen() {
    for status in [409, 400] {
        let shop = Shop::open_with(router(), |builder| builder.mismatch_status(status)).await;
        shop.post("/charge", "k1").json(&json!({"amount": 10})).send().await.unwrap();
        let other = shop.post("/charge", "k1").json(&json!({"amount": 1000})).send().await.unwrap();
        assert_eq!(refusal(other).await, (status, "idempotency-key-reused".to_owned()));
    }
}
