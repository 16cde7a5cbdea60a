//! Scenario 69 and clause 04: duplicates that are told where to fetch the result.

use axum::{
    Router,
    extract::{Path, State},
    response::Response,
    routing::{get, post},
};
use idem_runtime::{InFlight, RecordId, Runtime};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{App, Seen, Shop, Tenant, Verb, eventually, handler, problem, seen};

handler!(export, op = "accepted.export", ttl = "24h", in_flight = accepted);
handler!(plain, op = "accepted.plain", ttl = "24h");

async fn show(tenant: Tenant, State(idem): State<Runtime>, Path(id): Path<RecordId>) -> Response {
    idem.operation(id, &tenant).await
}

fn router() -> Router<App> {
    Router::new().route("/exports", post(export)).route("/plain", post(plain)).route("/operations/{id}", get(show))
}

fn send(shop: &Shop, path: &str, plan: &Value) -> JoinHandle<reqwest::Response> {
    let request = shop.post(path, "k1").json(plan);
    tokio::spawn(async { request.send().await.unwrap() })
}

/// A first request whose body has started.
async fn running(shop: &Shop, path: &str, plan: &Value) -> JoinHandle<reqwest::Response> {
    let started = shop.probe.started();
    let request = send(shop, path, plan);
    eventually(async || shop.probe.started() > started).await;
    request
}

/// An answer that says that the first run is under way.
struct Accepted {
    headers: HeaderMap,
    body: Value,
}

async fn accepted(response: reqwest::Response) -> Accepted {
    assert_eq!(response.status(), 202);
    let headers = response.headers().clone();
    assert_eq!(headers["idempotency-status"], "in-progress", "not the handler's own 202");
    assert_eq!(headers["cache-control"], "no-store");
    assert_eq!(headers["content-type"], "application/json");
    assert!((1..=5).contains(&headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap()));
    for name in ["idempotent-replayed", "link"] {
        assert!(!headers.contains_key(name), "{name}: neither a replay nor a problem");
    }
    Accepted { headers, body: response.json().await.unwrap() }
}

#[tokio::test]
async fn clause_04_a_duplicate_is_told_where_to_fetch_the_result() {
    for by_default in [false, true] {
        let builder = |builder: idem_runtime::Builder| match by_default {
            true => builder.in_flight(InFlight::Accepted).operations_at("https://shop.example/ops/{id}?wait"),
            false => builder.operations_at("/shop/operations/{id}"),
        };
        let shop = Shop::open_with(router(), builder).await;
        let (path, op) = if by_default { ("/plain", "accepted.plain") } else { ("/exports", "accepted.export") };
        let gate = shop.probe.hold().await;
        let first = running(&shop, path, &json!({})).await;
        let told = accepted(send(&shop, path, &json!({})).await.unwrap()).await;
        let id = shop.record(op, "k1").await.id.to_string();
        assert_eq!(told.body, json!({"state": "in_flight", "op": op, "operation": id}));
        let place = match by_default {
            true => format!("https://shop.example/ops/{id}?wait"),
            false => format!("/shop/operations/{id}"),
        };
        assert_eq!(told.headers["location"], place);
        drop(gate);
        let first = seen(first.await.unwrap()).await;
        assert!(first.ran(), "the first caller gets its own answer: {first:?}");
        let again = seen(send(&shop, path, &json!({})).await.unwrap()).await;
        assert_eq!((again.replayed, again.body), (true, first.body));
        assert_eq!(shop.probe.effects(), 1);
    }
}

/// Nothing else changes: another payload, and what is in doubt, are told as ever.
#[tokio::test]
async fn clause_04_only_a_run_under_way_is_accepted() {
    let shop = Shop::open(router()).await;
    let gate = shop.probe.hold().await;
    let first = running(&shop, "/exports", &json!({"panic": true})).await;
    let other = problem(send(&shop, "/exports", &json!({"amount": 1})).await.unwrap()).await;
    assert_eq!((other.status, other.slug.as_str()), (422, "idempotency-key-reused"));
    drop(gate);
    first.await.unwrap();
    let doubt = problem(send(&shop, "/exports", &json!({"panic": true})).await.unwrap()).await;
    assert_eq!((doubt.status, doubt.slug.as_str()), (409, "idempotency-outcome-unknown"));
    shop.sql("update idem_key set state = 99").await;
    let newer = problem(send(&shop, "/exports", &json!({"panic": true})).await.unwrap()).await;
    assert_eq!((newer.status, newer.slug.as_str()), (409, "idempotency-in-progress"), "a state of a newer version");
}

/// The type of the body was tightened while the first run was under way.
#[tokio::test]
async fn clause_37_a_refused_retry_is_told_where_to_fetch_the_result() {
    let shop = Shop::open(router()).await;
    let gate = shop.probe.hold().await;
    let body = json!({"status": 201});
    let first = running(&shop, "/exports", &body).await;
    shop.sql("update idem_key set fp_alg = 0").await; // whatever payload it was
    accepted(send(&shop, "/exports", &json!({"status": "created"})).await.unwrap()).await;
    drop(gate);
    assert!(seen(first.await.unwrap()).await.ran());
}

#[tokio::test]
async fn clause_04_a_duplicate_may_ask_to_wait_for_the_result() {
    let shop = Shop::open(router()).await;
    let gate = shop.probe.hold().await;
    let first = running(&shop, "/exports", &json!({})).await;
    let prefer = |wait: &str| shop.post("/exports", "k1").header("prefer", wait).json(&json!({}));
    accepted(prefer("wait=0").send().await.unwrap()).await;
    accepted(prefer("wait=1").send().await.unwrap()).await;
    let polled = shop.store.calls(Verb::Peek);
    let waiting = tokio::spawn(prefer("wait=20").send());
    eventually(async || shop.store.calls(Verb::Peek) > polled).await;
    drop(gate);
    let Seen { replayed, body, .. } = seen(waiting.await.unwrap().unwrap()).await;
    assert_eq!((replayed, body), (true, seen(first.await.unwrap()).await.body));
}
