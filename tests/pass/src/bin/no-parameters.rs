//! Handlers without parameters, and with nothing but a supplied one.
#![deny(warnings)]

mod support;

use axum::{Router, routing};
use idem_runtime::{Execution, idempotent};

#[idempotent(scope = global, op = "nothing")]
async fn nothing() {}

#[idempotent(scope = global, op = "supplied-only", key = 7_u8)]
async fn supplied_only(#[idem] exec: Execution) -> String {
    exec.attempts().to_string()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let router = Router::new()
        .route("/nothing", routing::post(nothing))
        .route("/supplied", routing::post(supplied_only))
        .with_state(support::runtime().await);
    assert_eq!(support::post(&router, "/nothing", "").await, (200, String::new()));
    assert_eq!(support::post(&router, "/supplied", "").await, (200, "1".to_owned()));
}
