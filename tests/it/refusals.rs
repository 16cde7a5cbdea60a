//! Case 103: every refusal has a fixed status, slug and shape, and a program can give it its own.

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use idem_runtime::{Builder, Problem, idempotent};
use serde_json::json;

use crate::support::{App, Plan, Probe, Shop, Tenant, eventually, problem};

#[derive(Debug)]
struct AppError;

impl IntoResponse for AppError {
    fn into_response(self) -> Response {
        StatusCode::IM_A_TEAPOT.into_response()
    }
}

#[idempotent(scope = "tenant", op = "refusals.result")]
async fn result(tenant: Tenant, State(probe): State<Probe>, Json(plan): Json<Plan>) -> Result<Response, AppError> {
    Ok(probe.perform(&plan).await)
}

#[idempotent(scope = "tenant", op = "refusals.opaque")]
async fn opaque(tenant: Tenant, State(probe): State<Probe>, Json(plan): Json<Plan>) -> impl IntoResponse + use<> {
    probe.perform(&plan).await
}

fn router() -> Router<App> {
    Router::new().route("/result", post(result)).route("/opaque", post(opaque))
}

/// One refusal of each kind, for requests without a hand on the clock.
async fn provoke(shop: &Shop, path: &str) -> Vec<(&'static str, reqwest::Response)> {
    let mut refusals = Vec::new();
    let bare = || shop.client.post(shop.url(path)).bearer_auth("acme");
    refusals.push(("key-missing", bare().json(&json!({})).send().await.unwrap()));
    refusals.push(("key-invalid", shop.post(path, "undefined").json(&json!({})).send().await.unwrap()));

    let held = shop.probe.hold().await;
    let first = tokio::spawn(shop.post(path, "busy").json(&json!({})).send());
    let started = shop.probe.started() + 1;
    eventually(async || shop.probe.started() == started).await;
    refusals.push(("in-progress", shop.post(path, "busy").json(&json!({})).send().await.unwrap()));
    drop(held);
    first.await.unwrap().unwrap();

    refusals.push(("key-reused", shop.post(path, "busy").json(&json!({"amount": 2})).send().await.unwrap()));
    shop.post(path, "doubt").json(&json!({"status": 500})).send().await.unwrap();
    refusals.push(("outcome-unknown", shop.post(path, "doubt").json(&json!({"status": 500})).send().await.unwrap()));
    shop.store.down();
    refusals.push(("store-unavailable", shop.post(path, "down").json(&json!({})).send().await.unwrap()));
    shop.store.heal();
    refusals
}

#[tokio::test]
async fn case_103_every_refusal_has_its_status_and_slug_and_all_have_one_shape() {
    for path in ["/result", "/opaque"] {
        let shop = Shop::open(router()).await;
        for (slug, refusal) in provoke(&shop, path).await {
            let problem = problem(refusal).await; // checks the shape
            let (status, retry, comes_back) = match slug {
                "key-missing" | "key-invalid" => (400, "new-key", false),
                "in-progress" => (409, "same-key", true),
                "key-reused" => (422, "never", false),
                "outcome-unknown" => (409, "operator", false),
                _ => (503, "same-key", true),
            };
            assert_eq!((problem.slug.as_str(), problem.status), (format!("idempotency-{slug}").as_str(), status));
            assert_eq!(problem.body["retry"], retry, "{slug}");
            assert_eq!(problem.retry_after.is_some(), comes_back, "{slug}");
            assert!(problem.retry_after.is_none_or(|seconds| (1..=5).contains(&seconds)), "{slug}");
            assert_eq!(problem.body["op"], format!("refusals.{}", &path[1..]), "{slug}");
            assert_eq!(problem.body["operation"].is_string(), problem.status == 409, "{slug}: clause 1, members");
        }
        assert_eq!(shop.probe.effects(), 2, "none of them ran anything");
    }
}

/// A house's own format.
fn house(builder: Builder) -> Builder {
    builder.problem_response(|problem: Problem| {
        let code = problem.type_uri.rsplit('-').next().unwrap_or_default().to_owned();
        (StatusCode::from_u16(problem.status).unwrap(), Json(json!({"house": code}))).into_response()
    })
}

#[tokio::test]
async fn case_103_a_program_can_give_all_of_them_its_own_format() {
    let shop = Shop::open_with(router(), house).await;
    for (slug, refusal) in provoke(&shop, "/result").await {
        let headers = refusal.headers().clone();
        let body: serde_json::Value = refusal.json().await.unwrap();
        assert_eq!(body, json!({"house": slug.rsplit('-').next().unwrap()}));
        assert_eq!(headers["cache-control"], "no-store", "{slug}: added where the format does not say");
        assert!(headers["link"].to_str().unwrap().contains(slug));
        assert_eq!(headers.contains_key("retry-after"), ["in-progress", "store-unavailable"].contains(&slug));
    }
}
