//! C16: `impl Trait` in every place of a return type; its trait is imported for nothing else.
#![deny(warnings)]

mod support;

use axum::{
    Json, Router,
    extract::Path,
    http::StatusCode,
    response::{AppendHeaders, IntoResponse, IntoResponseParts},
    routing,
};
use idem_runtime::{Runtime, idempotent};

#[idempotent(scope = tenant, op = "whole")]
async fn whole(Path(tenant): Path<String>) -> impl IntoResponse {
    (StatusCode::CREATED, tenant)
}

#[idempotent(scope = tenant, op = "in-result")]
async fn in_result(Path(tenant): Path<String>, Json(amount): Json<u64>) -> Result<impl IntoResponse, StatusCode> {
    if amount == 0 {
        return Err(StatusCode::BAD_REQUEST);
    }
    Ok(Json(tenant))
}

#[idempotent(scope = tenant, op = "in-tuple")]
async fn in_tuple(
    Path(tenant): Path<String>,
) -> Result<(StatusCode, impl IntoResponseParts, impl IntoResponse), StatusCode> {
    Ok((StatusCode::CREATED, AppendHeaders([("x-a", "b")]), tenant))
}

#[idempotent(scope = tenant, op = "in-both")]
async fn in_both(Path(tenant): Path<String>) -> Result<impl IntoResponse, impl IntoResponse + Send> {
    if tenant.is_empty() { Err(StatusCode::NOT_FOUND) } else { Ok(tenant) }
}

#[idempotent(scope = global, op = "in-parameter")]
async fn in_parameter(tenant: impl axum::extract::FromRequestParts<Runtime> + Send + 'static, body: String) -> String {
    drop(tenant);
    body
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let router = Router::new()
        .route("/whole/{tenant}", routing::post(whole))
        .route("/result/{tenant}", routing::post(in_result))
        .route("/tuple/{tenant}", routing::post(in_tuple))
        .route("/both/{tenant}", routing::post(in_both))
        .route("/parameter/{tenant}", routing::post(|tenant: Path<String>, body| in_parameter(tenant, body)))
        .with_state(support::runtime().await);
    assert_eq!(support::post(&router, "/whole/acme", "").await, (201, "acme".to_owned()));
    assert_eq!(support::post(&router, "/result/acme", "1").await, (200, "\"acme\"".to_owned()));
    assert_eq!(support::post(&router, "/tuple/acme", "").await, (201, "acme".to_owned()));
    assert_eq!(support::post(&router, "/both/acme", "").await, (200, "acme".to_owned()));
    assert_eq!(support::post(&router, "/parameter/acme", "x").await, (200, "x".to_owned()));
}
