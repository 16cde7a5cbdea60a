//! Doubts that no retry meets: the sweeper sees them.

use std::time::Duration;

use axum::{Router, routing::post};
use idem_runtime::{Audit, Resolution};
use serde_json::json;

use crate::support::{App, Fault, Logs, Shop, Verb, eventually, handler};

handler!(charge, op = "sweeps.charge");

async fn shop() -> Shop {
    let router: Router<App> = Router::new().route("/charge", post(charge));
    Shop::open_with(router, |builder| builder.sweep_every(Duration::from_millis(20))).await
}

fn lines(logs: &Logs, what: &str) -> usize {
    logs.all().iter().filter(|line| line.target == "idem::sweep" && line.text.contains(what)).count()
}

#[tokio::test]
async fn clause_14_a_doubt_that_nobody_meets_is_told_once_and_again_when_it_is_settled() {
    let logs = Logs::collect();
    let shop = shop().await;
    assert_eq!(shop.post("/charge", "k").json(&json!({"status": 500})).send().await.unwrap().status(), 500);
    shop.pass(Duration::from_secs(5)).await;
    eventually(async || lines(&logs, "in doubt: whether") == 1).await;
    let swept = shop.store.calls(Verb::Survey);
    eventually(async || shop.store.calls(Verb::Survey) > swept + 3).await;
    assert_eq!(lines(&logs, "in doubt: whether"), 1, "not at every look");

    let record = shop.record("sweeps.charge", "k").await;
    let by = Audit { who: "alice".to_owned(), why: "asked the bank".to_owned() };
    shop.runtime.resolve(record.id, record.fence, Resolution::Void, by).await.unwrap();
    eventually(async || lines(&logs, "no operation is in doubt any more") == 1).await;
}

#[tokio::test]
async fn a_store_that_is_down_or_panics_is_told_once_and_looked_at_again() {
    let logs = Logs::collect();
    let shop = shop().await;
    shop.store.tell(Verb::Survey, Fault::Fails(5));
    eventually(async || shop.store.calls(Verb::Survey) > 8).await;
    assert_eq!(lines(&logs, "could not look"), 1);
    shop.store.tell(Verb::Survey, Fault::Panics);
    eventually(async || lines(&logs, "could not look") == 2).await;
    let swept = shop.store.calls(Verb::Survey);
    eventually(async || shop.store.calls(Verb::Survey) > swept + 1).await;
    assert!(shop.runtime.shutdown(Duration::from_secs(1)).await.completed);
    let swept = shop.store.calls(Verb::Survey);
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(shop.store.calls(Verb::Survey), swept, "shutdown ends it");
}
