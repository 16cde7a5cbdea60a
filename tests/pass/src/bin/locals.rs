//! C68: arguments and locals named like everything that an expansion could introduce keep the user's values.
#![deny(warnings)]

mod support;

use axum::{
    Router,
    extract::{Path, State},
    routing,
};
use idem_runtime::{Error, Execution, Runtime, idempotent};

#[idempotent(scope = key, op = "locals", ttl = "1s")]
async fn charge(
    State(state): State<Runtime>,
    Path((key, scope, op)): Path<(String, String, String)>,
    #[idem] supply: Execution,
    __idem_last: String,
) -> String {
    let _ = state;
    let (ttl, ctx, store, req, res, fut, claim, inner, value) = (1, 2, 3, 4, 5, 6, 7, 8, 9);
    let (body, witness, operation, incoming, rejection) = (10, 11, 12, 13, 14);
    let (__idempotent, __idem_operation, __idem_value, __idem_supply, __idem_s0, __idem_1) = (15, 16, 17, 18, 19, 20);
    let ours = [ttl, ctx, store, req, res, fut, claim, inner, value, body, witness, operation, incoming, rejection];
    let hidden = [__idempotent, __idem_operation, __idem_value, __idem_supply, __idem_s0, __idem_1];
    format!("{key} {scope} {op} {} {__idem_last} {ours:?} {hidden:?}", supply.attempts())
}

#[idempotent(function, runtime = runtime, scope = scope, op = "function-locals", key = key)]
async fn capture(
    runtime: &Runtime,
    scope: &str,
    key: u64,
    __idem_body: u64,
    __idem_recorder: u64,
    #[idem] __idem_key: Execution,
) -> Result<String, Error> {
    let _ = runtime;
    let __idem_scope = 3;
    Ok(format!("{scope} {key} {__idem_body} {__idem_recorder} {__idem_scope} {}", __idem_key.attempts()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let idem = support::runtime().await;
    let router = Router::new().route("/{a}/{b}/{c}", routing::post(charge)).with_state(idem.clone());
    let seen = "a b c 1 text [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14] [15, 16, 17, 18, 19, 20]";
    assert_eq!(support::post(&router, "/a/b/c", "text").await, (200, seen.to_owned()));
    assert_eq!(capture(&idem, "s", 1, 2, 4).await.unwrap(), "s 1 2 4 3 1");
}
