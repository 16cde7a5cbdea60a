//! A key of another scope is refused: scenario 25 and clause 05.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path, State},
    response::Response,
    routing::{get, post},
};
use idem_runtime::{Audit, Error, ErrorKind, Execution, RecordId, Resolution, Runtime, idempotent};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::support::{App, Fault, Plan, Probe, Seen, Shop, Tenant, Verb, eventually, handler, problem, seen};

handler!(charge, op = "foreign.charge", ttl = "24h", refuse_late = "48h", foreign_scope = reject);
handler!(keeps, op = "foreign.keeps", client_errors = keep("30s"), foreign_scope = reject, in_flight = accepted);
handler!(waits, op = "foreign.waits", foreign_scope = reject, in_flight = wait("10s"));

#[idempotent(scope = "tenant", op = "foreign.keyed", foreign_scope = reject, payload = none)]
async fn keyed(tenant: Tenant, State(probe): State<Probe>) -> Response {
    probe.perform(&Plan::default()).await
}

#[idempotent(function, runtime = runtime, scope = tenant, op = "foreign.job", key = id, foreign_scope = reject)]
async fn job(runtime: &Runtime, tenant: &str, id: &str, #[idem] exec: Execution) -> Result<u32, Error> {
    Ok(exec.attempts())
}

async fn show(tenant: Tenant, State(idem): State<Runtime>, Path(id): Path<RecordId>) -> Response {
    idem.operation(id, &tenant).await
}

fn router() -> Router<App> {
    Router::new()
        .route("/charge", post(charge))
        .route("/keeps", post(keeps))
        .route("/waits", post(waits))
        .route("/keyed", post(keyed))
        .route("/operations/{id}", get(show))
}

async fn send(shop: &Shop, tenant: &str, path: &str, plan: &Value) -> reqwest::Response {
    let request = shop.client.post(shop.url(path)).bearer_auth(tenant).header("idempotency-key", "k1");
    request.json(plan).send().await.unwrap()
}

/// All that a client can see, but for the date.
async fn whole(response: reqwest::Response) -> (u16, HeaderMap, String) {
    let (status, mut headers) = (response.status().as_u16(), response.headers().clone());
    headers.remove("date");
    (status, headers, response.text().await.unwrap())
}

/// Globex, with acme's key and payload, is told what acme is told with another payload: scenario 4.
async fn assert_told_as_of_another_payload(shop: &Shop, path: &str, plan: &Value) {
    let own = whole(send(shop, "acme", path, &json!({"amount": 4})).await).await;
    assert_eq!(own.0, 422, "{}", own.2);
    let body: Value = serde_json::from_str(&own.2).unwrap();
    assert!(body["type"].as_str().unwrap().ends_with("#idempotency-key-reused"));
    for payload in [plan, &json!({"amount": 4})] {
        assert_eq!(whole(send(shop, "globex", path, payload).await).await, own);
    }
}

#[tokio::test]
async fn scenario_25_another_scope_is_told_what_another_payload_is() {
    for cache_bytes in [0, 1 << 20] {
        let shop = Shop::open_with(router(), |builder| builder.cache_bytes(cache_bytes)).await;
        let first = seen(send(&shop, "acme", "/charge", &json!({})).await).await;
        assert!(first.ran());
        assert_told_as_of_another_payload(&shop, "/charge", &json!({})).await;
        let again = seen(send(&shop, "acme", "/charge", &json!({})).await).await;
        assert_eq!(again, Seen { replayed: true, ..first });
        assert_eq!((shop.probe.effects(), shop.records().await), (1, 1));
    }
}

#[tokio::test]
async fn clause_05_in_flight_too() {
    for path in ["/charge", "/keeps", "/waits"] {
        let shop = Shop::open(router()).await;
        let gate = shop.probe.hold().await;
        let request = shop.post(path, "k1").json(&json!({}));
        let first = tokio::spawn(async { request.send().await.unwrap() });
        eventually(async || shop.probe.started() == 1).await;
        assert_told_as_of_another_payload(&shop, path, &json!({})).await;
        drop(gate);
        assert!(seen(first.await.unwrap()).await.ran());
    }
}

#[tokio::test]
async fn clause_05_in_doubt_and_expired_too() {
    let shop = Shop::open(router()).await;
    send(&shop, "acme", "/charge", &json!({"panic": true})).await;
    assert_told_as_of_another_payload(&shop, "/charge", &json!({"panic": true})).await;
    let record = shop.record("foreign.charge", "k1").await;
    let by = Audit { who: "ops".into(), why: "it happened".into() };
    shop.runtime.resolve(record.id, record.fence, Resolution::Void, by).await.unwrap();
    assert_told_as_of_another_payload(&shop, "/charge", &json!({"panic": true})).await;
    shop.pass(Duration::from_secs(25 * 3600)).await;
    assert_told_as_of_another_payload(&shop, "/charge", &json!({"panic": true})).await;
}

/// A deploy changed the payload rule, or a newer version its algorithm: then payloads are not compared, scopes are.
#[tokio::test]
async fn clause_05_whatever_the_algorithm() {
    for other_payload in [false, true] {
        let shop = Shop::open(router()).await;
        let fp = if other_payload { shop.place.joined("substr(fp, 1, 16)", &[0; 16]) } else { "fp".to_owned() };
        let change = format!("fp_alg = 16384 | 99, fp = {fp}");
        let first = seen(send(&shop, "acme", "/charge", &json!({})).await).await;
        shop.sql(&format!("update idem_key set {change}")).await;
        assert_eq!(send(&shop, "globex", "/charge", &json!({})).await.status(), 422, "{change}");
        let again = seen(send(&shop, "acme", "/charge", &json!({"amount": 9})).await).await;
        assert_eq!((again.replayed, again.body), (true, first.body), "{change}: a false match only replays");
    }
}

#[tokio::test]
async fn clause_05_also_where_the_payload_says_nothing() {
    let shop = Shop::open(router()).await;
    assert!(seen(send(&shop, "acme", "/keyed", &json!({})).await).await.ran());
    assert!(seen(send(&shop, "acme", "/keyed", &json!({"amount": 1})).await).await.replayed);
    assert_eq!(send(&shop, "globex", "/keyed", &json!({})).await.status(), 422);
    assert_eq!(shop.probe.effects(), 1);
}

/// What its body is made of was refused: it is looked up all the same.
#[tokio::test]
async fn clause_05_a_refused_request_learns_nothing_more() {
    let shop = Shop::open(router()).await;
    send(&shop, "acme", "/charge", &json!({})).await;
    let refused = json!({"status": "created"});
    let own = whole(send(&shop, "acme", "/charge", &refused).await).await;
    assert_eq!(own.0, 422);
    assert_eq!(whole(send(&shop, "globex", "/charge", &refused).await).await, own);
}

/// C-03: what was released, refused or forgotten binds no payload, and so no scope.
#[tokio::test]
async fn clause_05_a_key_that_is_free_is_free_for_all() {
    let shop = Shop::open(router()).await;
    for (path, op) in [("/charge", "foreign.charge"), ("/keeps", "foreign.keeps")] {
        assert_eq!(send(&shop, "acme", path, &json!({"status": 422})).await.status(), 422);
        assert!(shop.runtime.find(op, "acme", "k1").await.unwrap().is_some());
        assert!(seen(send(&shop, "globex", path, &json!({})).await).await.ran(), "{path}");
        assert_eq!(send(&shop, "acme", path, &json!({})).await.status(), 422, "now it is acme that is foreign");
        assert!(shop.runtime.find(op, "acme", "k1").await.unwrap().is_none());
        assert_eq!(shop.runtime.find(op, "globex", "k1").await.unwrap().unwrap().scope, "globex");
    }
    shop.pass(Duration::from_secs(49 * 3600)).await;
    assert!(seen(send(&shop, "acme", "/charge", &json!({})).await).await.ran(), "`refuse_late` is over");
    assert_eq!(send(&shop, "globex", "/charge", &json!({})).await.status(), 422);
}

#[tokio::test]
async fn clause_05_only_its_scope_finds_a_record() {
    let shop = Shop::open(router()).await;
    send(&shop, "acme", "/charge", &json!({})).await;
    let record = shop.record("foreign.charge", "k1").await;
    assert_eq!(record.scope, "acme");
    assert!(!format!("{record:?}").contains("acme"));
    for scope in ["globex", "", "acm"] {
        assert!(shop.runtime.find("foreign.charge", scope, "k1").await.unwrap().is_none());
    }
    // A program without the operation cannot know its rule.
    shop.sql("update idem_key set op = 'foreign.gone'").await;
    assert!(shop.runtime.find("foreign.gone", "acme", "k1").await.unwrap().is_none(), "the name is in the identity");
    let place = format!("/operations/{}", record.id);
    shop.sql("update idem_key set op = 'foreign.charge'").await;
    let fetch = async |tenant| shop.client.get(shop.url(&place)).bearer_auth(tenant).send().await.unwrap();
    assert_eq!(fetch("globex").await.status(), 404);
    assert!(seen(fetch("acme").await).await.replayed);
}

/// What cannot be read says all the same whose it is.
#[tokio::test]
async fn clause_05_a_state_of_a_newer_version_is_told_to_its_own_scope_only() {
    let shop = Shop::open(router()).await;
    send(&shop, "acme", "/charge", &json!({})).await;
    let place = format!("/operations/{}", shop.record("foreign.charge", "k1").await.id);
    shop.sql("update idem_key set state = 104").await;
    let fetch = async |tenant| shop.client.get(shop.url(&place)).bearer_auth(tenant).send().await.unwrap();
    for plan in [json!({}), json!({"amount": 4})] {
        let told = problem(send(&shop, "globex", "/charge", &plan).await).await;
        assert_eq!((told.status, told.slug.as_str()), (422, "idempotency-key-reused"));
        assert_eq!(send(&shop, "acme", "/charge", &plan).await.status(), 409);
    }
    assert_eq!((fetch("globex").await.status().as_u16(), fetch("acme").await.status().as_u16()), (404, 409));
    assert_eq!((shop.state().await, shop.probe.effects()), (104, 1));
}

#[tokio::test]
async fn clause_05_a_function_is_told_so_too() {
    let shop = Shop::open(router()).await;
    assert_eq!(job(&shop.runtime, "acme", "j1").await.unwrap(), 1);
    assert_eq!(job(&shop.runtime, "acme", "j1").await.unwrap(), 1);
    assert_eq!(job(&shop.runtime, "globex", "j1").await.unwrap_err().kind(), ErrorKind::Mismatch);
}

/// Changing the argument changes the identity, as changing `op` does.
#[tokio::test]
async fn clause_05_records_that_isolate_are_others() {
    let shop = Shop::open(router()).await;
    send(&shop, "acme", "/charge", &json!({})).await;
    let shared = shop.record("foreign.charge", "k1").await.id;
    let key = idem_runtime::Key::new("k1").unwrap();
    let isolated = RecordId::new("shop", &idem_runtime::Scope::of("acme"), "foreign.charge", &key);
    assert_ne!(shared, isolated);
    assert!(shop.runtime.find_record(isolated).await.unwrap().is_none());
    let other = Shop::open_on(Arc::clone(&shop.place), router(), |builder| builder.namespace("other")).await;
    assert!(seen(send(&other, "globex", "/charge", &json!({})).await).await.ran(), "another namespace, another key");
}

/// The key goes from one scope to another between the look at whose record it is and the look at its answer.
#[tokio::test]
async fn clause_05_a_result_is_never_fetched_by_whom_it_belonged_to_before() {
    let shop = Shop::open(router()).await;
    assert_eq!(send(&shop, "acme", "/keeps", &json!({"status": 422})).await.status(), 422);
    let place = format!("/operations/{}", shop.record("foreign.keeps", "k1").await.id);
    let looked = shop.store.calls(Verb::Find);
    shop.store.tell(Verb::Find, Fault::ReplySlow(Duration::from_secs(1)));
    let request = shop.client.get(shop.url(&place)).bearer_auth("acme");
    let fetched = tokio::spawn(async { seen(request.send().await.unwrap()).await });
    eventually(async || shop.store.calls(Verb::Find) > looked).await;
    assert!(seen(send(&shop, "globex", "/keeps", &json!({})).await).await.ran());
    // On a machine so slow that acme looked first, it was still its own.
    let fetched = fetched.await.unwrap();
    assert!(fetched.status == 404 || (fetched.status == 422 && fetched.body == "effect 1"), "{fetched:?}");
}
