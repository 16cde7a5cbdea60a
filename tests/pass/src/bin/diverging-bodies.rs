//! Bodies that return early, never return, or end in an expression that lints have an opinion of.
#![deny(warnings)]

mod support;

use axum::{Router, extract::Path, http::StatusCode, routing};
use idem_runtime::{Error, Runtime, idempotent};

#[idempotent(scope = "tenant", op = "early")]
async fn early(Path(tenant): Path<String>, body: String) -> Result<&'static str, StatusCode> {
    let Some(_) = body.find('x') else { return Err(StatusCode::IM_A_TEAPOT) };
    if tenant.is_empty() {
        return Err(StatusCode::NOT_FOUND);
    }
    Ok("done")
}

#[idempotent(scope = "tenant", op = "never")]
async fn never(Path(tenant): Path<String>) -> Result<&'static str, StatusCode> {
    drop(tenant);
    loop {
        tokio::task::yield_now().await;
    }
}

#[idempotent(scope = "tenant", op = "panics")]
async fn panics(Path(tenant): Path<String>) -> String {
    panic!("{tenant}")
}

#[idempotent(function, runtime = idem, scope = global, op = "returns", key = id)]
async fn returns(idem: &Runtime, id: u64) -> Result<(), Error> {
    let _ = (idem, id);
    return Ok(());
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let idem = support::runtime().await;
    let router = Router::new()
        .route("/early/{tenant}", routing::post(early))
        .route("/never/{tenant}", routing::post(never))
        .route("/panics/{tenant}", routing::post(panics))
        .with_state(idem.clone());
    assert_eq!(support::post(&router, "/early/acme", "y").await.0, 418);
    assert_eq!(support::post(&router, "/early/acme", "x").await.1, "done");
    returns(&idem, 1).await.unwrap();
}
