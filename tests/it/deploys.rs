//! A key outlives the code that it was first used with: scenarios 79 and 104, clause 38.

use axum::{Json, Router, extract::State, routing::post};
use idem_runtime::idempotent;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;

use crate::support::{App, Plan, Probe, Shop, Tenant, eventually, handler, problem, refusal, seen};

handler!(charge, op = "deploys.charge", ttl = "24h");

/// What a deploy changes.
trait Version: Send + 'static {
    type Order: DeserializeOwned + Send;
    fn answer(n: usize) -> String;
}

struct Old;
struct New;

#[derive(Deserialize)]
struct OldOrder {}

#[derive(Deserialize)]
struct NewOrder {
    #[serde(rename = "currency")]
    _currency: String,
}

impl Version for Old {
    type Order = OldOrder;
    fn answer(n: usize) -> String {
        format!("order {n}, the old way")
    }
}

impl Version for New {
    type Order = NewOrder;
    fn answer(n: usize) -> String {
        json!({ "order": n }).to_string()
    }
}

#[idempotent(scope = "tenant", op = "deploys.order", ttl = "24h")]
async fn order<V: Version>(tenant: Tenant, State(probe): State<Probe>, Json(_): Json<V::Order>) -> String {
    drop(probe.perform(&Plan::default()).await);
    V::answer(probe.effects())
}

fn version<V: Version>() -> Router<App> {
    Router::new().route("/orders", post(order::<V>))
}

/// The same store, before and after a deploy.
async fn deploy() -> (Shop, Shop) {
    let old = Shop::open(version::<Old>()).await;
    let new = Shop::open_on(old.place.clone(), version::<New>(), |same| same).await;
    (old, new)
}

/// A payload that only the old code accepts.
async fn send(shop: &Shop) -> reqwest::Response {
    shop.post("/orders", "k1").json(&json!({})).send().await.unwrap()
}

#[tokio::test]
async fn scenario_79_a_due_replay_survives_a_stricter_type() {
    let (old, new) = deploy().await;
    let first = seen(send(&old).await).await;
    let again = seen(send(&new).await).await;
    assert_eq!((again.status, again.replayed, &again.body), (200, true, &first.body));
    let other = new.post("/orders", "k1").json(&json!({"amount": 1})).send().await.unwrap();
    assert_eq!(
        refusal(other).await,
        (422, "idempotency-key-reused".to_owned()),
        "the payload is compared all the same"
    );
    assert_eq!((old.probe.effects(), new.probe.effects()), (1, 0));
}

#[tokio::test]
async fn clause_37_a_rejection_writes_nothing() {
    let (_, new) = deploy().await;
    let rejected = send(&new).await;
    assert_eq!((rejected.status().as_u16(), new.records().await), (422, 0));
    assert!(rejected.text().await.unwrap().contains("missing field `currency`"), "the extractor's own words");
    assert_eq!(new.store.calls(crate::support::Verb::Claim), 0);
    let corrected = new.post("/orders", "k1").json(&json!({"currency": "EUR"})).send().await.unwrap();
    assert!(seen(corrected).await.ran());
}

#[tokio::test]
async fn clause_37_a_rejected_retry_is_told_of_a_running_or_doubtful_first_run() {
    let (old, new) = deploy().await;
    let gate = old.probe.hold().await;
    let first = tokio::spawn(old.post("/orders", "k1").json(&json!({})).send());
    eventually(async || old.probe.started() == 1).await;
    assert_eq!(refusal(send(&new).await).await, (409, "idempotency-in-progress".to_owned()));
    drop(gate);
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
    new.sql("update idem_key set state = 5, reason = 2").await;
    assert_eq!(refusal(send(&new).await).await, (409, "idempotency-outcome-unknown".to_owned()));
    new.sql("update idem_key set state = 4").await;
    assert_eq!(send(&new).await.status(), 422, "released: there is nothing to tell");
    assert_eq!(new.probe.started(), 0);
}

#[tokio::test]
async fn clause_38_stored_bytes_replay_unchanged() {
    let (old, new) = deploy().await;
    let eur = json!({"currency": "EUR"});
    let first = seen(old.post("/orders", "k1").json(&eur).send().await.unwrap()).await;
    let again = seen(new.post("/orders", "k1").json(&eur).send().await.unwrap()).await;
    assert_eq!((again.replayed, again.body.as_str()), (true, "order 1, the old way"));
    assert_eq!(first.body, again.body);
    let fresh = seen(new.post("/orders", "k2").json(&eur).send().await.unwrap()).await;
    assert_eq!(fresh.body, r#"{"order":1}"#);
}

#[tokio::test]
async fn scenario_104_a_state_of_a_newer_version_is_never_taken_for_absent() {
    let shop = Shop::open(Router::new().route("/charge", post(charge))).await;
    shop.post("/charge", "k1").json(&json!({})).send().await.unwrap();
    shop.sql("update idem_key set state = 104").await;
    for payload in [json!({}), json!({"amount": 1})] {
        let told = problem(shop.post("/charge", "k1").json(&payload).send().await.unwrap()).await;
        assert_eq!((told.status, told.slug.as_str()), (409, "idempotency-in-progress"));
        assert_eq!(told.retry_after, Some(1));
    }
    shop.pass(std::time::Duration::from_secs(365 * 24 * 3600)).await;
    assert_eq!(shop.post("/charge", "k1").json(&json!({})).send().await.unwrap().status(), 409);
    assert_eq!((shop.state().await, shop.probe.effects()), (104, 1));
}
