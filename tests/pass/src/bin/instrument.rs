//! `#[tracing::instrument]` above ours, and below.
#![deny(warnings)]

mod support;

use axum::{Json, Router, extract::Path, http::StatusCode, routing};
use idem_runtime::{Error, Runtime, idempotent};

#[tracing::instrument(skip_all, fields(tenant = %tenant.0))]
#[idempotent(scope = tenant.0, op = "instrumented")]
async fn above(tenant: Path<String>, Json(amount): Json<u64>) -> Result<String, StatusCode> {
    Ok(format!("{} {amount}", tenant.0))
}

#[idempotent(scope = "tenant", op = "instrumented-below")]
#[tracing::instrument(skip_all)]
async fn below(Path(tenant): Path<String>, Json(amount): Json<u64>) -> Result<String, StatusCode> {
    Ok(format!("{tenant} {amount}"))
}

#[tracing::instrument(skip(idem), ret)]
#[idempotent(function, runtime = idem, scope = global, op = "instrumented-function", key = id)]
async fn function(idem: &Runtime, id: u64) -> Result<u64, Error> {
    let _ = idem;
    Ok(id)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let idem = support::runtime().await;
    let router = Router::new()
        .route("/above/{tenant}", routing::post(above))
        .route("/below/{tenant}", routing::post(below))
        .with_state(idem.clone());
    assert_eq!(support::post(&router, "/above/acme", "7").await, (200, "acme 7".to_owned()));
    assert_eq!(support::post(&router, "/below/acme", "7").await, (200, "acme 7".to_owned()));
    assert_eq!(function(&idem, 7).await.unwrap(), 7);
}
