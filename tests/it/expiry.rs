//! The end of a replay window: C56, clause 12.

use std::time::Duration;

use axum::{Router, routing::post};
use futures_util::future::join_all;
use serde_json::json;

use crate::support::{App, Seen, Shop, handler, problem, refusal, seen};

handler!(short, op = "expiry.short", ttl = "10s");
handler!(kept, op = "expiry.kept", ttl = "1h", client_errors = keep("30s"));
handler!(late, op = "expiry.late", ttl = "1h", refuse_late = "2h");
handler!(by_default, op = "expiry.default");

const MINUTE: Duration = Duration::from_secs(60);

fn router() -> Router<App> {
    Router::new()
        .route("/short", post(short))
        .route("/kept", post(kept))
        .route("/late", post(late))
        .route("/default", post(by_default))
}

async fn post_plan(shop: &Shop, path: &str, plan: serde_json::Value) -> reqwest::Response {
    shop.post(path, "k1").json(&plan).send().await.unwrap()
}

async fn send(shop: &Shop, path: &str) -> Seen {
    seen(post_plan(shop, path, json!({})).await).await
}

/// 20 at once: one runs, the others meet it or its answer.
async fn assert_one_of_many_runs(shop: &Shop, path: &str, plan: serde_json::Value) {
    let before = shop.probe.effects();
    let answers = join_all((0..20).map(|_| post_plan(shop, path, plan.clone()))).await;
    assert_eq!(shop.probe.effects(), before + 1);
    let mut ran = 0;
    for answer in answers {
        if answer.status() == 409 {
            assert_eq!(refusal(answer).await.1, "idempotency-in-progress");
            continue;
        }
        let answer = seen(answer).await;
        assert_eq!(answer.body, format!("effect {}", before + 1), "of the new run");
        ran += usize::from(!answer.replayed);
    }
    assert_eq!(ran, 1);
}

#[tokio::test]
async fn case_56_an_expired_key_is_run_once_by_many() {
    let shop = Shop::open(router()).await;
    let first = send(&shop, "/short").await;
    assert_eq!(send(&shop, "/short").await.body, first.body);
    shop.pass(Duration::from_secs(11)).await;
    assert_one_of_many_runs(&shop, "/short", json!({})).await;
    assert_eq!(shop.records().await, 1, "the row was there all along");
}

/// Every one of them is a repeat of the same client error.
#[tokio::test]
async fn case_56_an_expired_rejection_is_run_once_by_many() {
    let shop = Shop::open(router()).await;
    let declined = json!({"status": 402});
    let first = seen(post_plan(&shop, "/kept", declined.clone()).await).await;
    assert_eq!(seen(post_plan(&shop, "/kept", declined.clone()).await).await, Seen { replayed: true, ..first });
    shop.pass(Duration::from_secs(31)).await;
    assert_one_of_many_runs(&shop, "/kept", declined).await;
}

#[tokio::test]
async fn case_56_another_payload_may_use_an_expired_key() {
    let shop = Shop::open(router()).await;
    send(&shop, "/short").await;
    shop.pass(Duration::from_secs(11)).await;
    let other = seen(post_plan(&shop, "/short", json!({"amount": 1})).await).await;
    assert_eq!((other.status, other.replayed, shop.probe.effects()), (201, false, 2));
    assert_eq!(refusal(post_plan(&shop, "/short", json!({})).await).await.0, 422);
}

#[tokio::test]
async fn clause_12_a_late_retry_is_refused_then_runs_afresh() {
    let shop = Shop::open(router()).await;
    let first = send(&shop, "/late").await;
    shop.pass(59 * MINUTE).await;
    assert_eq!(send(&shop, "/late").await, Seen { replayed: true, ..first });
    shop.pass(30 * MINUTE).await;
    for _ in 0..2 {
        let told = problem(post_plan(&shop, "/late", json!({})).await).await;
        assert_eq!((told.status, told.slug.as_str()), (410, "idempotency-result-expired"));
        assert_eq!((&told.body["state"], &told.body["safe_new_key"]), (&json!("expired"), &json!(false)));
        assert!(!told.body.to_string().contains("effect"));
    }
    assert_eq!(
        refusal(post_plan(&shop, "/late", json!({"amount": 1})).await).await.0,
        422,
        "another payload is told so"
    );
    assert_eq!(shop.probe.effects(), 1);
    shop.pass(32 * MINUTE).await;
    let afresh = send(&shop, "/late").await;
    assert_eq!((afresh.replayed, afresh.body.as_str()), (false, "effect 2"));
    assert!(send(&shop, "/late").await.replayed, "with a window of its own");
}

#[tokio::test]
async fn clause_12_the_window_is_24_h_unless_said_otherwise() {
    let day = 24 * 60 * MINUTE;
    for (shop, window) in [
        (Shop::open(router()).await, day),
        (
            Shop::open_with(router(), |builder| builder.ttl(10 * MINUTE).serve_only(|op| op.starts_with("expiry.")))
                .await,
            10 * MINUTE,
        ),
    ] {
        send(&shop, "/default").await;
        shop.pass(window - MINUTE).await;
        assert!(send(&shop, "/default").await.replayed, "{window:?}");
        shop.pass(2 * MINUTE).await;
        assert!(send(&shop, "/default").await.ran(), "{window:?}");
    }
}

/// In doubt is not an answer, so no window ends it: only a decision does.
#[tokio::test]
async fn clause_12_a_doubt_does_not_expire() {
    let shop = Shop::open(router()).await;
    assert_eq!(post_plan(&shop, "/short", json!({"status": 500})).await.status(), 500);
    shop.pass(365 * 24 * 60 * MINUTE).await;
    let told = post_plan(&shop, "/short", json!({"status": 500})).await;
    assert_eq!(refusal(told).await, (409, "idempotency-outcome-unknown".to_owned()));
    assert_eq!(shop.probe.effects(), 1);
}
