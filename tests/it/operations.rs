//! Where a result is fetched: scenario 69, and what every state answers there.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    extract::{Path, State},
    http::request::Parts,
    response::Response,
    routing::{get, post},
};
use bytes::Bytes;
use idem_runtime::{
    Audit, Error, RecordId, Replaying, Resolution, Runtime, idempotent,
    store::{Link, Store},
};
use serde_json::{Value, json};

use crate::support::{App, Fault, Shop, Tenant, Verb, eventually, handler, problem, seen};

handler!(export, op = "operations.export", ttl = "24h", refuse_late = "48h", in_flight = accepted);
handler!(checked, op = "operations.checked", ttl = "24h", client_errors = keep("30s"), in_flight = accepted);

#[idempotent(function, runtime = runtime, scope = tenant, op = "operations.job", key = id)]
async fn job(runtime: &Runtime, tenant: &str, id: &str) -> Result<u32, Error> {
    Ok(1)
}

async fn show(tenant: Tenant, State(idem): State<Runtime>, Path(id): Path<RecordId>) -> Response {
    idem.operation(id, &tenant).await
}

async fn show_if_allowed(
    tenant: Tenant,
    State(idem): State<Runtime>,
    Path(id): Path<RecordId>,
    request: Parts,
) -> Response {
    idem.operation_for(id, &tenant, request).await
}

fn router() -> Router<App> {
    Router::new()
        .route("/exports", post(export))
        .route("/checked", post(checked))
        .route("/operations/{id}", get(show))
        .route("/allowed/{id}", get(show_if_allowed))
}

async fn send(shop: &Shop, path: &str, plan: &Value) -> reqwest::Response {
    shop.post(path, "k1").json(plan).send().await.unwrap()
}

async fn fetch(shop: &Shop, tenant: &str, path: &str) -> reqwest::Response {
    shop.client.get(shop.url(path)).bearer_auth(tenant).send().await.unwrap()
}

/// Where acme's result is.
async fn place(shop: &Shop, op: &str) -> String {
    format!("/operations/{}", shop.record(op, "k1").await.id)
}

/// The whole of a response but for its date.
async fn whole(response: reqwest::Response) -> (u16, Vec<(String, Bytes)>, Bytes) {
    let status = response.status().as_u16();
    let headers = response.headers().iter().filter(|(name, _)| *name != "date");
    let headers = headers.map(|(name, value)| (name.to_string(), Bytes::copy_from_slice(value.as_bytes()))).collect();
    (status, headers, response.bytes().await.unwrap())
}

/// What whoever has no such operation is told.
async fn unknown(shop: &Shop) -> (u16, Vec<(String, Bytes)>, Bytes) {
    let nowhere = format!("/operations/{}", "0".repeat(32));
    let told = problem(fetch(shop, "acme", &nowhere).await).await;
    assert_eq!((told.status, told.slug.as_str()), (404, "idempotency-operation-unknown"));
    for name in ["operation", "op", "state", "links"] {
        assert!(told.body.get(name).is_none(), "{name}: {}", told.body);
    }
    whole(fetch(shop, "acme", &nowhere).await).await
}

#[tokio::test]
async fn scenario_69_the_result_is_fetched_by_whom_it_belongs_to() {
    for cache_bytes in [0, 1 << 20] {
        let shop = Shop::open_with(router(), |builder| builder.cache_bytes(cache_bytes)).await;
        let unknown = unknown(&shop).await;
        let gate = shop.probe.hold().await;
        let request = shop.post("/exports", "k1").json(&json!({}));
        let first = tokio::spawn(async { request.send().await.unwrap() });
        eventually(async || shop.probe.started() == 1).await;
        let told = send(&shop, "/exports", &json!({})).await;
        assert_eq!(told.status(), 202);
        let location = told.headers()["location"].to_str().unwrap().to_owned();
        let told = whole(told).await;
        assert_eq!(whole(fetch(&shop, "acme", &location).await).await, told, "the same 202");
        assert_eq!(whole(fetch(&shop, "globex", &location).await).await, unknown);
        drop(gate);
        let first = first.await.unwrap();
        assert_eq!(first.headers()["location"], "/things/1");
        let first = seen(first).await;
        let fetched = fetch(&shop, "acme", &location).await;
        assert_eq!(fetched.headers()["cache-control"], "no-store");
        let fetched = seen(fetched).await;
        assert!(fetched.replayed);
        assert_eq!((fetched.status, fetched.body, fetched.location), (first.status, first.body, first.location));
        assert_eq!(whole(fetch(&shop, "globex", &location).await).await, unknown);
        assert_eq!((fetch(&shop, "", &location).await.status().as_u16(), shop.probe.effects()), (401, 1));
    }
}

/// No oracle: neither of these can be told from an id that nobody has.
#[tokio::test]
async fn clause_04_what_is_not_shown_is_not_there() {
    let shop = Shop::open(router()).await;
    let unknown = unknown(&shop).await;
    for (tenant, path) in [("globex", "/exports"), ("acm", "/exports"), ("acme%2F", "/exports")] {
        send(&shop, path, &json!({})).await;
        let place = place(&shop, "operations.export").await;
        assert_eq!(whole(fetch(&shop, tenant, &place).await).await, unknown, "{tenant}");
    }
    job(&shop.runtime, "acme", "k1").await.unwrap();
    let of_a_function = place(&shop, "operations.job").await;
    assert_eq!(whole(fetch(&shop, "acme", &of_a_function).await).await, unknown, "it has no response");
    let place = place(&shop, "operations.export").await;
    let elsewhere = |serves: fn(&str) -> bool| {
        Shop::open_on(Arc::clone(&shop.place), router(), move |builder| builder.serve_only(serves))
    };
    let other = elsewhere(|op| op == "operations.checked").await;
    assert_eq!(whole(fetch(&other, "acme", &place).await).await, unknown, "not served");
    let same = elsewhere(|op| op == "operations.export").await;
    assert_eq!(seen(fetch(&same, "acme", &place).await).await.body, "effect 1");
    shop.sql("update idem_key set op = 'operations.gone'").await;
    assert_eq!(whole(fetch(&shop, "acme", &place).await).await, unknown, "of another program");
}

#[tokio::test]
async fn clause_13_a_kept_refusal_is_fetched_while_it_is_kept() {
    let shop = Shop::open(router()).await;
    let refused = seen(send(&shop, "/checked", &json!({"status": 422})).await).await;
    let place = place(&shop, "operations.checked").await;
    let fetched = seen(fetch(&shop, "acme", &place).await).await;
    assert_eq!((fetched.status, fetched.replayed, &fetched.body), (422, true, &refused.body));
    shop.pass(Duration::from_secs(31)).await;
    let told = problem(fetch(&shop, "acme", &place).await).await;
    assert_eq!((told.status, told.slug.as_str()), (409, "idempotency-operation-released"));
    assert_eq!((&told.body["retry"], &told.body["safe_new_key"]), (&json!("same-key"), &json!(false)));
}

#[tokio::test]
async fn clause_13_what_was_released_says_so() {
    let shop = Shop::open(router()).await;
    send(&shop, "/exports", &json!({"status": 422})).await;
    let place = place(&shop, "operations.export").await;
    let told = problem(fetch(&shop, "acme", &place).await).await;
    assert_eq!((told.status, told.slug.as_str()), (409, "idempotency-operation-released"));
    assert_eq!((&told.body["state"], &told.body["op"]), (&json!("released"), &json!("operations.export")));
    assert_eq!(send(&shop, "/exports", &json!({})).await.status(), 201, "as it says: the same key runs");
}

#[tokio::test]
async fn clause_14_an_unknown_outcome_names_its_operation() {
    let shop = Shop::open(router()).await;
    send(&shop, "/exports", &json!({"panic": true})).await;
    let record = shop.record("operations.export", "k1").await;
    let place = place(&shop, "operations.export").await;
    let told = problem(fetch(&shop, "acme", &place).await).await;
    assert_eq!((told.status, told.slug.as_str()), (409, "idempotency-outcome-unknown"));
    assert_eq!(told.body["operation"], record.id.to_string());
    let by = Audit { who: "ops".into(), why: "there is no such charge".into() };
    shop.runtime.resolve(record.id, record.fence, Resolution::Void, by).await.unwrap();
    let told = problem(fetch(&shop, "acme", &place).await).await;
    assert_eq!((told.status, told.slug.as_str()), (410, "idempotency-result-unavailable"));
}

/// A crashed owner: nobody has written the doubt down.
#[tokio::test]
async fn clause_18_a_lease_that_is_over_is_an_unknown_outcome() {
    let shop = Shop::open(router()).await;
    let gate = shop.probe.hold().await;
    let request = shop.post("/exports", "k1").json(&json!({}));
    let first = tokio::spawn(async { request.send().await.unwrap() });
    eventually(async || shop.probe.started() == 1).await;
    let place = place(&shop, "operations.export").await;
    shop.freeze().await;
    let told = problem(fetch(&shop, "acme", &place).await).await;
    assert_eq!((told.status, told.slug.as_str()), (409, "idempotency-outcome-unknown"));
    drop(gate);
    first.await.unwrap();
}

#[tokio::test]
async fn clause_12_a_result_expires_and_stays_expired() {
    let shop = Shop::open(router()).await;
    send(&shop, "/exports", &json!({})).await;
    let place = place(&shop, "operations.export").await;
    // The end of `ttl`, and that of `refuse_late`: the key is free, its operation is not forgotten.
    for _ in 0..2 {
        shop.pass(Duration::from_secs(25 * 3600)).await;
        let told = problem(fetch(&shop, "acme", &place).await).await;
        assert_eq!((told.status, told.slug.as_str()), (410, "idempotency-result-expired"));
    }
}

#[tokio::test]
async fn clause_28_a_result_that_was_not_retained_says_what_is_known() {
    let shop = Shop::open_with(router(), |builder| builder.max_response(1)).await;
    send(&shop, "/exports", &json!({})).await;
    let record = shop.record("operations.export", "k1").await;
    let place = place(&shop, "operations.export").await;
    let (provider, id) = ("stripe".to_owned(), "ch_1".to_owned());
    let link = Link { record: record.id, epoch: record.epoch, attempt: record.attempt, provider, id };
    shop.place.connect().await.link(&[link]).await.unwrap();
    let told = problem(fetch(&shop, "acme", &place).await).await;
    assert_eq!((told.status, told.slug.as_str()), (410, "idempotency-result-unavailable"));
    assert_eq!(told.body["original_status"], 201);
    assert_eq!(told.body["links"], json!([{"provider": "stripe", "id": "ch_1"}]));
    assert_eq!(told.body["operation"], record.id.to_string());
}

#[tokio::test]
async fn clause_21_a_store_that_is_down_says_so() {
    let shop = Shop::open(router()).await;
    send(&shop, "/exports", &json!({})).await;
    let place = place(&shop, "operations.export").await;
    for verb in [Verb::Find, Verb::Peek] {
        shop.store.tell(verb, Fault::Down);
        let told = problem(fetch(&shop, "acme", &place).await).await;
        assert_eq!((told.status, told.slug.as_str()), (503, "idempotency-store-unavailable"));
        assert!(told.retry_after.is_some());
        shop.store.heal();
    }
    assert!(seen(fetch(&shop, "acme", &place).await).await.replayed);
}

/// It is asked about the request that fetches. Without one, nothing is shown.
#[tokio::test]
async fn clause_32_a_result_is_shown_to_whom_the_program_allows() {
    let rights: Arc<Mutex<(bool, Vec<String>)>> = Arc::new(Mutex::new((true, Vec::new())));
    let asked = Arc::clone(&rights);
    let shop = Shop::open_with(router(), |builder| {
        builder.authorize_replay(move |Replaying { op, request, .. }| {
            let mut asked = asked.lock().unwrap();
            asked.1.push(format!("{op} {} {}", request.method, request.uri.path().split('/').nth(1).unwrap()));
            let may = asked.0;
            async move { may }
        })
    })
    .await;
    send(&shop, "/exports", &json!({})).await;
    let place = place(&shop, "operations.export").await;
    let allowed = place.replace("operations", "allowed");
    assert!(seen(fetch(&shop, "acme", &allowed).await).await.replayed);
    assert_eq!(rights.lock().unwrap().1, ["operations.export GET allowed"]);
    assert_eq!(fetch(&shop, "globex", &allowed).await.status(), 404, "the scope comes first");
    rights.lock().unwrap().0 = false;
    for place in [&allowed, &place] {
        let told = problem(fetch(&shop, "acme", place).await).await;
        assert_eq!((told.status, told.slug.as_str()), (403, "idempotency-replay-forbidden"), "{place}");
        assert!(told.body.get("operation").is_none());
    }
    rights.lock().unwrap().0 = true;
    assert_eq!(problem(fetch(&shop, "acme", &place).await).await.status, 403, "no request, nothing to decide by");
}

#[tokio::test]
async fn a_malformed_id_is_refused_before_the_store_is_asked() {
    let shop = Shop::open(router()).await;
    for id in ["x", "0", &"g".repeat(32), &"0".repeat(33)] {
        assert_eq!(fetch(&shop, "acme", &format!("/operations/{id}")).await.status(), 400, "{id}");
    }
    assert_eq!(shop.asked(), 0);
}
