//! C28: `mut`, destructured and nested patterns, `ref`, wildcards and parts that nobody binds.
#![deny(warnings)]

mod support;

use axum::{
    Json, Router,
    extract::{Path, Query},
    http::HeaderMap,
    routing,
};
use idem_runtime::{Error, Execution, Runtime, idempotent};
use serde::Deserialize;

#[derive(Deserialize)]
struct Charge {
    amount: u64,
    card: Card,
}

#[derive(Deserialize)]
struct Card {
    number: String,
}

#[idempotent(scope = tenant, op = "plain-mut", key = body)]
async fn plain_mut(Path(tenant): Path<String>, mut body: String) -> String {
    body.push_str(&tenant);
    body
}

#[idempotent(scope = (tenant, n), op = "nested", key = number)]
async fn nested(
    Path((ref tenant, mut n)): Path<(String, u64)>,
    _: HeaderMap,
    _unused: HeaderMap,
    Query(_): Query<Vec<(String, String)>>,
    #[idem] mut exec: Execution,
    Json(Charge { ref mut amount, card: Card { ref number } }): Json<Charge>,
) -> String {
    exec = exec.clone();
    n += 1;
    *amount += 1;
    format!("{tenant} {n} {amount} {number} {}", exec.attempts())
}

#[idempotent(function, runtime = idem, scope = tenant, op = "pattern-function", key = id)]
async fn function(idem: &Runtime, (ref tenant, mut id): (String, u64), [first, ..]: [u8; 3]) -> Result<u64, Error> {
    let _ = (idem, tenant);
    id += u64::from(first);
    Ok(id)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let idem = support::runtime().await;
    let router = Router::new()
        .route("/mut/{tenant}", routing::post(plain_mut))
        .route("/nested/{tenant}/{n}", routing::post(nested))
        .with_state(idem.clone());
    assert_eq!(support::post(&router, "/mut/acme", "x").await, (200, "xacme".to_owned()));
    let charge = r#"{"amount":1,"card":{"number":"42"}}"#;
    assert_eq!(support::post(&router, "/nested/acme/3", charge).await, (200, "acme 4 2 42 1".to_owned()));
    assert_eq!(function(&idem, ("acme".to_owned(), 1), [2, 3, 4]).await.unwrap(), 3);
}
