//! C67: a `static`, a `const`, a nested function, a closure and an opaque type live in a body that is there once.
#![deny(warnings)]

mod support;

use std::sync::atomic::{AtomicU32, Ordering};

use axum::{Router, extract::Path, response::IntoResponse, routing};
use idem_runtime::{Error, Runtime, idempotent};

#[idempotent(scope = tenant, op = "items", key = body)]
async fn count(Path(tenant): Path<String>, body: String) -> impl IntoResponse {
    static OPERATION: AtomicU32 = AtomicU32::new(0);
    const ONE: u32 = 1;
    fn nested(n: u32) -> impl Iterator<Item = u32> {
        (0..n).map(|n| n + OPERATION.load(Ordering::SeqCst))
    }
    drop(tenant);
    let add = |n| OPERATION.fetch_add(n, Ordering::SeqCst);
    add(ONE);
    let _ = &body;
    format!("{:?}", nested(2).collect::<Vec<_>>())
}

#[idempotent(function, runtime = idem, scope = global, op = "items-function", key = id)]
async fn capture(idem: &Runtime, id: u32) -> Result<u32, Error> {
    static RUNS: AtomicU32 = AtomicU32::new(10);
    let _ = (idem, id);
    let next = move || RUNS.fetch_add(1, Ordering::SeqCst);
    Ok(next())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let idem = support::runtime().await;
    let router = Router::new().route("/{tenant}", routing::post(count)).with_state(idem.clone());
    assert_eq!(support::post(&router, "/acme", "a").await.1, "[1, 2]");
    assert_eq!(support::post(&router, "/acme", "a").await.1, "[1, 2]", "a replay");
    assert_eq!(support::post(&router, "/acme", "b").await.1, "[2, 3]", "a second run");
    assert_eq!([capture(&idem, 1).await.unwrap(), capture(&idem, 1).await.unwrap()], [10, 10]);
    assert_eq!(capture(&idem, 2).await.unwrap(), 11);
}
