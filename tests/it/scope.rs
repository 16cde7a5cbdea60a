//! Whose key it is: scenarios 24 … 27, C06, C12, C86, C108.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path, State},
    http::StatusCode,
    response::Response,
    routing::{delete, post},
};
use idem_runtime::idempotent;
use serde_json::json;

use crate::support::{App, Plan, Probe, Seen, Shop, Tenant, handler, refusal, seen};

handler!(charge, op = "scope.charge", ttl = "24h");
handler!(refund, op = "scope.refund", ttl = "24h");
handler!(short, op = "scope.short", ttl = "1s");
handler!(long, op = "scope.long", ttl = "1h", optional);

#[idempotent(scope = "tenant", op = "scope.create", ttl = "24h")]
async fn create(tenant: Tenant, State(probe): State<Probe>) -> StatusCode {
    probe.effect("created");
    StatusCode::CREATED
}

#[idempotent(scope = "tenant", op = "scope.drop", ttl = "24h")]
async fn drop_it(tenant: Tenant, State(probe): State<Probe>, Path(id): Path<u64>) -> StatusCode {
    probe.effect(format!("dropped {id}"));
    StatusCode::NO_CONTENT
}

#[idempotent(scope = global, op = "scope.global", ttl = "24h")]
async fn shared(_tenant: Tenant, State(probe): State<Probe>) -> Response {
    probe.perform(&Plan::default()).await
}

/// `payload = none`, so that nothing but the scope keeps two requests apart.
#[idempotent(scope = (account, section), op = "scope.tuple", ttl = "24h", payload = none)]
async fn tuple(State(probe): State<Probe>, Path((account, section)): Path<(String, String)>) -> Response {
    probe.perform(&Plan::default()).await
}

#[idempotent(scope = (tenant.0, account), op = "scope.mixed", ttl = "24h", payload = none)]
async fn mixed(tenant: Tenant, State(probe): State<Probe>, Path(account): Path<u64>) -> Response {
    probe.perform(&Plan::default()).await
}

fn router() -> Router<App> {
    Router::new()
        .route("/charge", post(charge))
        .route("/refund", post(refund))
        .route("/short", post(short))
        .route("/long", post(long))
        .route("/things", post(create))
        .route("/things/{id}", delete(drop_it))
        .route("/shared", post(shared))
        .route("/tuple/{account}/{section}", post(tuple))
        .route("/mixed/{account}", post(mixed))
}

/// A POST with key `k1` and an empty plan.
async fn send(shop: &Shop, token: &str, path: &str) -> Seen {
    let request = shop.client.post(shop.url(path)).bearer_auth(token).header("idempotency-key", "k1");
    seen(request.json(&json!({})).send().await.unwrap()).await
}

/// Also C06.
#[tokio::test]
async fn scenario_24_tenants_do_not_see_each_other() {
    let shop = Shop::open(router()).await;
    let acme = send(&shop, "acme", "/charge").await;
    let globex = send(&shop, "globex", "/charge").await;
    assert_eq!((globex.status, globex.replayed), (201, false));
    assert_ne!(globex.body, acme.body);
    assert_eq!((shop.probe.effects(), shop.records().await), (2, 2));
    assert_eq!(send(&shop, "acme", "/charge").await.body, acme.body);
    assert_eq!(send(&shop, "globex", "/charge").await.body, globex.body);
}

#[tokio::test]
async fn scenario_26_operations_do_not_share_keys() {
    let shop = Shop::open(router()).await;
    let charged = send(&shop, "acme", "/charge").await;
    let refunded = send(&shop, "acme", "/refund").await;
    assert!(refunded.ran());
    assert_eq!(send(&shop, "acme", "/charge").await.body, charged.body);
    assert_eq!(send(&shop, "acme", "/refund").await.body, refunded.body);
    assert_eq!(shop.probe.effects(), 2);
}

#[tokio::test]
async fn scenario_27_nobody_has_no_keys() {
    let shop = Shop::open(router()).await;
    for token in ["", ":"] {
        assert_eq!(send(&shop, token, "/charge").await.status, 401);
    }
    let nobody = shop.client.post(shop.url("/charge")).header("idempotency-key", "k1").json(&json!({}));
    assert_eq!(nobody.send().await.unwrap().status(), 401);
    assert_eq!((shop.records().await, shop.asked(), shop.probe.effects()), (0, 0, 0));
}

#[tokio::test]
async fn case_12_a_key_of_create_really_drops() {
    let shop = Shop::open(router()).await;
    assert_eq!(send(&shop, "acme", "/things").await.status, 201);
    let drop = || shop.client.delete(shop.url("/things/1")).bearer_auth("acme").header("idempotency-key", "k1").send();
    assert_eq!(drop().await.unwrap().status(), 204);
    assert_eq!(shop.probe.log(), ["created", "dropped 1"]);
    assert!(seen(drop().await.unwrap()).await.replayed);
}

#[tokio::test]
async fn case_86_a_rotated_credential_is_the_same_caller() {
    let shop = Shop::open(router()).await;
    let first = send(&shop, "acme:old", "/charge").await;
    let again = send(&shop, "acme:rotated", "/charge").await;
    assert_eq!((again.replayed, again.body), (true, first.body));
}

#[tokio::test]
async fn clause_05_global_is_one_scope_for_all() {
    let shop = Shop::open(router()).await;
    let first = send(&shop, "acme", "/shared").await;
    let again = send(&shop, "globex", "/shared").await;
    assert_eq!((again.replayed, again.body), (true, first.body));
}

#[tokio::test]
async fn clause_05_a_tuple_keeps_its_parts_apart() {
    let shop = Shop::open(router()).await;
    for path in ["/tuple/a/bc", "/tuple/ab/c", "/tuple/a%2Fb/c", "/tuple/a/b%2Fc", "/mixed/1", "/mixed/11"] {
        assert!(send(&shop, "acme", path).await.ran(), "{path}");
    }
    assert!(send(&shop, "acme1", "/mixed/1").await.ran(), "neither is acme's 1 or 11");
    for path in ["/tuple/a/bc", "/tuple/ab/c", "/mixed/1", "/mixed/11"] {
        assert!(send(&shop, "acme", path).await.replayed, "{path}");
    }
    let scopes = shop.count("select count(*) from idem_key where scope in ('a/bc', 'ab/c', 'a%2Fb/c', 'acme/11')");
    assert_eq!(scopes.await, 4, "in words for operators");
}

#[tokio::test]
async fn case_108_arguments_belong_to_their_function() {
    let shop = Shop::open(router()).await;
    for path in ["/short", "/long"] {
        assert!(send(&shop, "acme", path).await.ran());
    }
    shop.pass(Duration::from_secs(2)).await;
    assert!(send(&shop, "acme", "/short").await.ran());
    assert!(send(&shop, "acme", "/long").await.replayed);
    let keyless = |path| shop.client.post(shop.url(path)).bearer_auth("acme").json(&json!({})).send();
    assert_eq!(refusal(keyless("/short").await.unwrap()).await, (400, "idempotency-key-missing".to_owned()));
    assert_eq!(keyless("/long").await.unwrap().status(), 201);
}

#[tokio::test]
async fn case_108_two_stores_in_one_process_stay_apart() {
    let one = Shop::open(router()).await;
    let other = Shop::open_with(router(), |builder| builder.cache_bytes(1 << 20)).await;
    let same_file = Shop::open_on(Arc::clone(&one.place), router(), |builder| builder.namespace("other")).await;
    for shop in [&one, &other, &same_file] {
        assert!(send(shop, "acme", "/charge").await.ran());
        assert!(send(shop, "acme", "/charge").await.replayed);
        assert_eq!(shop.probe.effects(), 1);
    }
    assert_eq!((one.records().await, other.records().await), (2, 1), "the namespace is part of the identity");
}
