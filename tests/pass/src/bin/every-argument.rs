//! All arguments of the attribute at once, for both kinds.
#![deny(warnings)]

mod support;

use axum::{
    Json, Router,
    extract::{FromRef, Path, State},
    http::StatusCode,
    routing,
};
use idem_runtime::{Error, Execution, Runtime, idempotent};

#[derive(Clone, FromRef)]
struct App {
    idem: Runtime,
    rate: u64,
}

#[idempotent(
    op = "every.argument_v2-1",
    scope = (tenant, account),
    ttl = "1h",
    refuse_late = "7d",
    header = "X-Request-Id",
    optional,
    key_format = uuid,
    payload = fields("/amount", "/a~1b"),
    in_flight = wait("2s"),
    client_errors = keep("30s"),
    in_doubt = rerun_deduped,
    timeout = "10s",
    state = App,
    crate = ::idem_runtime,
)]
async fn handler(
    Path((tenant, account)): Path<(String, u64)>,
    State(rate): State<u64>,
    #[idem] exec: Execution,
    Json(amount): Json<u64>,
) -> Result<(StatusCode, String), StatusCode> {
    Ok((StatusCode::CREATED, format!("{tenant} {account} {} {}", amount * rate, exec.is_protected())))
}

#[idempotent(scope = tenant, op = "given-key", key = (*amount, 0).0, payload = none, in_flight = reject, client_errors = store, in_doubt = hold, webhook)]
async fn given_key(Path(tenant): Path<String>, Json(amount): Json<u64>) -> String {
    format!("{tenant} {amount}")
}

#[idempotent(
    function,
    runtime = app.idem,
    op = "every-argument-function",
    scope = "tenant",
    key = "id",
    ttl = "1h",
    refuse_late = "2h",
    payload = none,
    in_flight = reject,
    in_doubt = rerun_deduped,
    input = "tenant",
    timeout = "10s",
    foreign_scope = reject,
    crate = ::idem_runtime
)]
async fn function(app: &App, tenant: &str, id: u64, #[idem] exec: Execution) -> Result<u64, Error> {
    let _ = tenant;
    Ok(id * app.rate + u64::from(exec.attempts()))
}

#[idempotent(scope = tenant, op = "accepted", in_flight = accepted, timeout = "10s", foreign_scope = reject)]
async fn accepted(Path(tenant): Path<String>, Json(amount): Json<u64>) -> String {
    format!("{tenant} {amount}")
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let app = App { idem: support::runtime().await, rate: 2 };
    let router = Router::new()
        .route("/every/{tenant}/{account}", routing::post(handler))
        .route("/key/{tenant}", routing::post(given_key))
        .route("/accepted/{tenant}", routing::post(accepted))
        .with_state(app.clone());
    assert_eq!(support::post(&router, "/every/acme/3", "7").await, (201, "acme 3 14 false".to_owned()));
    assert_eq!(support::post(&router, "/key/acme", "7").await, (200, "acme 7".to_owned()));
    assert_eq!(function(&app, "acme", 3).await.unwrap(), 7);
}
