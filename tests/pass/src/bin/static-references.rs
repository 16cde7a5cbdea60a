//! References in the types of a handler: what a router holds must be `Send` whatever their lifetimes.
#![deny(warnings)]
#![allow(clippy::type_complexity, reason = "a return type with several static references is the case")]

mod support;

use std::borrow::Cow;

use axum::{
    Extension, Json, Router,
    extract::{FromRef, Path, State},
    http::StatusCode,
    routing,
};
use idem_runtime::{Execution, Runtime, idempotent};

struct Config {
    rate: u64,
}

#[derive(Clone, FromRef)]
struct App {
    idem: Runtime,
    config: &'static Config,
}

#[idempotent(scope = ("a", tenant), op = "static", state = App)]
async fn charge(
    Path(tenant): Path<String>,
    State(config): State<&'static Config>,
    Extension(label): Extension<&'static str>,
    #[idem] exec: Execution,
    Json(amount): Json<Cow<'static, str>>,
) -> Result<(StatusCode, [(&'static str, &'static str); 1], &'static str), Cow<'static, str>> {
    tokio::task::yield_now().await;
    if amount.len() as u64 == config.rate && exec.attempts() == 1 {
        Ok((StatusCode::CREATED, [("x-label", label)], "equal"))
    } else {
        Err(tenant.into())
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() {
    let app = App { idem: support::runtime().await, config: &Config { rate: 3 } };
    let router = Router::new().route("/{tenant}", routing::post(charge)).layer(Extension("label")).with_state(app);
    assert_eq!(support::post(&router, "/acme", "\"abc\"").await, (201, "equal".to_owned()));
}
