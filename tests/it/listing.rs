//! The list of operations, for those who call them.

use std::time::Duration;

use axum::{Form, Json, Router, http::StatusCode, routing::post};
use idem_runtime::{
    Error, InFlight, MemoryStore, Runtime, idempotent,
    operations::{InDoubt, KeyRule, OperationInfo},
};
use serde_json::{Value, json};

use crate::support::{App, Plan, Shop, Tenant, handler};

handler!(charge, op = "listing.charge");

#[derive(Debug, serde::Deserialize)]
struct Donation {
    key: String,
}

#[idempotent(
    scope = (tenant.0, "form"), op = "listing.donate", key = donation.key, ttl = "7d", refuse_late = "30d",
    in_flight = wait("10s"), client_errors = keep("30s"), timeout = "1m"
)]
async fn donate(tenant: Tenant, Form(donation): Form<Donation>) -> StatusCode {
    StatusCode::CREATED
}

#[idempotent(
    scope = "tenant", op = "listing.pay", header = "PayPal-Request-Id", optional, key_format = uuid,
    payload = fields("/amount", "/to/iban"), in_flight = reject, client_errors = store,
    foreign_scope = reject
)]
async fn pay(tenant: Tenant, Json(_): Json<Plan>) -> StatusCode {
    StatusCode::CREATED
}

#[idempotent(function, runtime = runtime, scope = global, op = "listing.job", key = id.to_string())]
async fn job(runtime: &Runtime, id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn router() -> Router<App> {
    Router::new().route("/charge", post(charge)).route("/donate", post(donate)).route("/pay", post(pay))
}

async fn served(op: &'static str, with: impl FnOnce(idem_runtime::Builder) -> idem_runtime::Builder) -> Runtime {
    let builder = Runtime::builder(MemoryStore::volatile()).namespace("shop");
    with(builder.serve_only(move |served| served == op)).build().await.unwrap()
}

fn json_of(infos: &[OperationInfo]) -> Value {
    serde_json::to_value(infos).unwrap()
}

#[tokio::test]
async fn the_list_says_what_applies_and_in_whole_seconds() {
    let shop = Shop::open_with(router(), |builder| builder.serve_only(|op| op.starts_with("listing."))).await;
    let list = json_of(shop.runtime.operations());
    let expected = json!([
        {
            "op": "listing.charge", "kind": "handler", "function": "charge", "scope": "tenant",
            "key": {"from": "header", "name": "Idempotency-Key", "required": true, "format": "any"},
            "payload": {"rule": "whole"}, "ttl_seconds": 86400, "refuse_late_seconds": 86400,
            "foreign_scope": {"rule": "isolate"},
            "in_flight": {"rule": "reject"}, "client_errors": {"rule": "release"}, "in_doubt": {"rule": "hold"},
            "provider_window_seconds": null,
            "timeout_seconds": null,
            "webhook": false,
            "order": null
        },
        {
            "op": "listing.donate", "kind": "handler", "function": "donate", "scope": "tenant.0, \"form\"",
            "key": {"from": "expression", "expression": "donation.key"},
            "payload": {"rule": "none"}, "ttl_seconds": 604_800, "refuse_late_seconds": 2_592_000,
            "foreign_scope": {"rule": "isolate"},
            "in_flight": {"rule": "wait", "wait_seconds": 10},
            "client_errors": {"rule": "keep", "keep_seconds": 30}, "in_doubt": {"rule": "hold"},
            "provider_window_seconds": null,
            "timeout_seconds": 60,
            "webhook": false,
            "order": null
        },
        {
            "op": "listing.job", "kind": "function", "function": "job", "scope": "global",
            "key": {"from": "expression", "expression": "id.to_string()"},
            "payload": {"rule": "none"}, "ttl_seconds": 86400, "refuse_late_seconds": 86400,
            "foreign_scope": {"rule": "isolate"},
            "in_flight": {"rule": "reject"}, "client_errors": {"rule": "release"}, "in_doubt": {"rule": "hold"},
            "provider_window_seconds": null,
            "timeout_seconds": null,
            "webhook": false,
            "order": null
        },
        {
            "op": "listing.pay", "kind": "handler", "function": "pay", "scope": "tenant",
            "key": {"from": "header", "name": "PayPal-Request-Id", "required": false, "format": "uuid"},
            "payload": {"rule": "fields", "fields": ["/amount", "/to/iban"]},
            "ttl_seconds": 86400, "refuse_late_seconds": 86400,
            "foreign_scope": {"rule": "reject"},
            "in_flight": {"rule": "reject"}, "client_errors": {"rule": "store"}, "in_doubt": {"rule": "hold"},
            "provider_window_seconds": null,
            "timeout_seconds": null,
            "webhook": false,
            "order": null
        }
    ]);
    assert_eq!(list, expected, "{list:#}");
    assert_eq!(job(&shop.runtime, 1).await.unwrap(), 1);
}

#[tokio::test]
async fn the_builder_s_defaults_hold_where_an_annotation_is_silent() {
    let runtime = served("listing.charge", |builder| {
        builder
            .ttl(Duration::from_millis(90_900))
            .in_flight(InFlight::Wait(Duration::from_millis(2_100)))
            .header("X-Request-Key")
    })
    .await;
    let [charge] = runtime.operations() else { panic!("{:?}", runtime.operations()) };
    assert_eq!((charge.ttl, charge.refuse_late), (Duration::from_millis(90_900), Duration::from_millis(90_900)));
    assert_eq!(charge.in_doubt, InDoubt::Hold);
    assert!(matches!(&charge.key, KeyRule::Header { name, .. } if name == "X-Request-Key"), "{:?}", charge.key);
    let shown = &json_of(runtime.operations())[0];
    assert_eq!(
        (&shown["ttl_seconds"], &shown["refuse_late_seconds"]),
        (&json!(90), &json!(90)),
        "not more than is kept"
    );
    assert_eq!(shown["in_flight"], json!({"rule": "wait", "wait_seconds": 3}), "not less than it may take");

    let runtime = served("listing.donate", |builder| builder.ttl(Duration::from_secs(60)).header("X")).await;
    assert_eq!(runtime.operations()[0].ttl, Duration::from_secs(7 * 24 * 60 * 60), "the annotation comes first");
}

#[tokio::test]
async fn what_is_not_served_is_not_listed() {
    let runtime = served("listing.nothing", |builder| builder).await;
    assert_eq!(runtime.operations(), []);
    assert_eq!(json_of(runtime.operations()), json!([]));
}
