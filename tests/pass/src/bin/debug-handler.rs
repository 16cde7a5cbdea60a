//! `#[axum::debug_handler]` above ours emits the item a second time: still one operation. It reads the parameters as they
//! are written, so a handler with `#[idem]` has it below, where it sees what axum is going to see.
#![deny(warnings)]

mod support;

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    routing,
};
use idem_runtime::{Execution, Runtime, idempotent};

#[axum::debug_handler(state = Runtime)]
#[idempotent(scope = "tenant", op = "debugged", ttl = "24h")]
async fn above(
    Path(tenant): Path<String>,
    State(_idem): State<Runtime>,
    Json(amount): Json<u64>,
) -> Result<String, StatusCode> {
    Ok(format!("{tenant} {amount}"))
}

#[idempotent(scope = "tenant", op = "debugged-below", ttl = "24h")]
#[axum::debug_handler(state = Runtime)]
async fn below(Path(tenant): Path<String>, #[idem] exec: Execution, Json(amount): Json<u64>) -> &'static str {
    if tenant.len() as u64 == amount && exec.attempts() == 1 { "equal" } else { "different" }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let router = Router::new()
        .route("/above/{tenant}", routing::post(above))
        .route("/below/{tenant}", routing::post(below))
        .with_state(support::runtime().await);
    assert_eq!(support::post(&router, "/above/acme", "7").await, (200, "acme 7".to_owned()));
    assert_eq!(support::post(&router, "/below/acme", "4").await, (200, "equal".to_owned()));
}
