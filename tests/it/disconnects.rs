//! Case 03 over HTTP: a caller who leaves at any moment leaves nothing half done.

use std::time::Duration;

use axum::{Router, routing::post};
use serde_json::json;

use crate::support::{App, Fault, Shop, Verb, eventually, handler, seen};

handler!(charge, op = "disconnects.charge");

fn router() -> Router<App> {
    Router::new().route("/charge", post(charge))
}

/// The store takes 30 ms for a claim and as long for a finish, so that the steps hit before, within and after both.
#[tokio::test]
async fn case_03_a_caller_who_leaves_at_any_moment_leaves_nothing_stuck() {
    let shop = Shop::open_with(router(), |builder| builder.lease(Duration::from_secs(3600))).await;
    shop.store.tell(Verb::Claim, Fault::Slow(Duration::from_millis(30)));
    shop.store.tell(Verb::Finish, Fault::Slow(Duration::from_millis(30)));
    let moments = || (0..100).step_by(4);
    for ms in moments() {
        let leaves = shop.post("/charge", &format!("left{ms}")).json(&json!({}));
        let _ = tokio::time::timeout(Duration::from_millis(ms), leaves.send()).await;
        let fresh = shop.post("/charge", &format!("fresh{ms}")).json(&json!({})).send().await.unwrap();
        assert_eq!(fresh.status(), 201, "after {ms} ms");
        let id = shop.record("disconnects.charge", &format!("fresh{ms}")).await.id;
        let written = format!("select count(*) from idem_key where state = 2 and kid = {}", shop.place.id(id));
        assert_eq!(shop.count(&written).await, 1, "another connection sees what it wrote, after {ms} ms");
    }
    eventually(async || shop.count("select count(*) from idem_key where state not in (2, 4)").await == 0).await;
    let given_back = shop.count("select count(*) from idem_key where state = 4").await;
    let started = shop.probe.started();
    assert_eq!(shop.probe.effects(), started, "whatever started has ended");

    shop.store.heal();
    for ms in moments() {
        let retry = seen(shop.post("/charge", &format!("left{ms}")).json(&json!({})).send().await.unwrap()).await;
        assert_eq!(retry.status, 201, "{ms}");
    }
    let keys = i64::try_from(moments().count() * 2).unwrap();
    assert_eq!(shop.records().await, keys);
    assert_eq!(i64::try_from(shop.probe.effects()).unwrap(), keys, "one each ({given_back} had been given back)");
}
