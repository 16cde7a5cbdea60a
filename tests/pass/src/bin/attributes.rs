//! Attributes and documentation on the function and on its arguments: `cfg`, `allow`, `expect`, doc comments.
#![deny(warnings, missing_docs)]
#![allow(clippy::non_minimal_cfg, reason = "an attribute that changes nothing is the case")]

mod support;

use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    routing,
};
use idem_runtime::{Error, Execution, Runtime, idempotent};

/// Documented.
#[doc(alias = "pay")]
#[must_use]
#[allow(clippy::too_many_arguments)]
#[idempotent(scope = "tenant", op = "attributes", ttl = "24h")]
pub async fn charge(
    /// Who.
    Path(tenant): Path<String>,
    #[cfg(any())] missing: NoSuchType,
    #[cfg(all())] _headers: HeaderMap,
    #[cfg(any())]
    #[idem]
    missing_too: NoSuchType,
    #[allow(unused_variables)] State(idem): State<Runtime>,
    #[expect(unused_variables, reason = "this is what is tested")] headers: HeaderMap,
    #[expect(unused_mut, reason = "this is what is tested")] mut more: HeaderMap,
    #[allow(unused_variables)]
    #[idem]
    exec: Execution,
    #[allow(unused_variables)] body: String,
) -> StatusCode {
    drop(more);
    StatusCode::OK
}

/// One of two.
#[cfg(any())]
#[idempotent(scope = "tenant", op = "variant")]
async fn variant(tenant: NoSuchType) {}

/// The other.
#[cfg(all())]
#[idempotent(scope = "tenant", op = "variant")]
async fn variant(Path(tenant): Path<String>) -> String {
    tenant
}

/// A function.
///
/// # Errors
/// Never.
#[idempotent(function, runtime = idem, scope = global, op = "attributes-function", key = id)]
pub async fn capture(
    idem: &Runtime,
    #[cfg(any())] missing: NoSuchType,
    id: u64,
    #[allow(unused_variables)] note: &str,
    #[idem]
    #[expect(unused_variables, reason = "this is what is tested")]
    exec: Execution,
) -> Result<u64, Error> {
    let _ = idem;
    Ok(id)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let idem = support::runtime().await;
    let router = Router::new()
        .route("/charge/{tenant}", routing::post(charge))
        .route("/variant/{tenant}", routing::post(variant))
        .with_state(idem.clone());
    assert_eq!(support::post(&router, "/charge/acme", "").await.0, 200);
    assert_eq!(support::post(&router, "/variant/acme", "").await.1, "acme");
    assert_eq!(capture(&idem, 3, "note").await.unwrap(), 3);
}
