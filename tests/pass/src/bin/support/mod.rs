//! What a fixture needs to run what it has compiled.
#![allow(dead_code, reason = "not every fixture needs all of it")]

use axum::{
    Router,
    body::{Body, to_bytes},
    http::Request,
};
use idem_runtime::{MemoryStore, Runtime};
use tower::ServiceExt as _;

pub async fn runtime() -> Runtime {
    Runtime::builder(MemoryStore::volatile()).namespace("ui").operations_at("/operations/{id}").build().await.unwrap()
}

/// Posts `body` as JSON under the key `k`; the status, and the answer's body.
pub async fn post(router: &Router, path: &str, body: &str) -> (u16, String) {
    let request = Request::post(path).header("content-type", "application/json").header("idempotency-key", "k");
    let response = router.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), 10_000).await.unwrap();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}
