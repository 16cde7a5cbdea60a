//! C108: handlers of one module, and associated functions of one type, with settings of their own.
#![deny(warnings)]

mod support;

use axum::{
    Router,
    body::Body,
    extract::Path,
    http::{Request, StatusCode},
    routing,
};
use idem_runtime::idempotent;
use tower::ServiceExt as _;

#[idempotent(scope = "tenant", op = "required", ttl = "1s")]
async fn required(Path(tenant): Path<String>) -> String {
    tenant
}

#[idempotent(scope = "tenant", op = "optional", ttl = "1h", optional)]
async fn optional(Path(tenant): Path<String>) -> String {
    tenant
}

struct Api;

impl Api {
    #[idempotent(scope = "tenant", op = "associated", header = "X-Key")]
    async fn charge(Path(tenant): Path<String>) -> String {
        tenant
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let router = Router::new()
        .route("/required/{tenant}", routing::post(required))
        .route("/optional/{tenant}", routing::post(optional))
        .route("/associated/{tenant}", routing::post(Api::charge))
        .with_state(support::runtime().await);
    for (path, header, status) in [
        ("/required/acme", "x-other", StatusCode::BAD_REQUEST),
        ("/required/acme", "idempotency-key", StatusCode::OK),
        ("/optional/acme", "x-other", StatusCode::OK),
        ("/associated/acme", "idempotency-key", StatusCode::BAD_REQUEST),
        ("/associated/acme", "x-key", StatusCode::OK),
    ] {
        let request = Request::post(path).header(header, "k").body(Body::empty()).unwrap();
        assert_eq!(router.clone().oneshot(request).await.unwrap().status(), status, "{path} {header}");
    }
}
