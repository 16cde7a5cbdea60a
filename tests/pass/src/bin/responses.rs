//! What a handler may return: axum's own `Result`, a type of the user's with `Replayable`, tuples, `Final`, `Response`.
#![deny(warnings)]

mod support;

use std::borrow::Cow;

use axum::{
    Json, Router,
    body::Bytes,
    extract::Path,
    http::{HeaderMap, StatusCode, header},
    response::{ErrorResponse, Html, IntoResponse, Redirect, Response},
    routing,
};
use idem_runtime::{Final, NotApplied, Replayable, idempotent};

struct Receipt(String);

impl IntoResponse for Receipt {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl Replayable for Receipt {}

macro_rules! returns {
    ($($name:ident, $op:literal: $ty:ty = |$tenant:ident| $value:expr;)*) => {
        $(
            #[idempotent(scope = "tenant", op = $op)]
            async fn $name(Path(tenant): Path<String>) -> $ty {
                let $tenant = tenant;
                $value
            }
        )*
        async fn all() -> Vec<(&'static str, u16, String)> {
            let idem = support::runtime().await;
            let router = Router::new()$(.route(concat!("/", $op, "/{tenant}"), routing::post($name)))*.with_state(idem);
            let mut seen = Vec::new();
            $(
                let first = support::post(&router, concat!("/", $op, "/acme"), "").await;
                let again = support::post(&router, concat!("/", $op, "/acme"), "").await;
                assert_eq!(first, again, $op);
                seen.push(($op, first.0, first.1));
            )*
            seen
        }
    };
}

returns! {
    axum_result, "axum-result": axum::response::Result<String> = |tenant| if tenant.is_empty() { Err(ErrorResponse::from(StatusCode::NOT_FOUND)) } else { Ok(tenant) };
    own, "own": Receipt = |tenant| Receipt(tenant);
    own_in_tuple, "own-in-tuple": Result<(StatusCode, HeaderMap, Receipt), Receipt> = |tenant| Ok((StatusCode::CREATED, HeaderMap::new(), Receipt(tenant)));
    response, "response": Response = |tenant| tenant.into_response();
    headers, "headers": (StatusCode, [(header::HeaderName, &'static str); 1], Json<String>) = |tenant| (StatusCode::CREATED, [(header::LOCATION, "/x")], Json(tenant));
    last_word, "final": Final<(StatusCode, String)> = |tenant| Final((StatusCode::PAYMENT_REQUIRED, tenant));
    not_applied, "not-applied": Result<NotApplied<StatusCode>, StatusCode> = |tenant| if tenant.is_empty() { Err(StatusCode::NOT_FOUND) } else { Ok(NotApplied(StatusCode::SERVICE_UNAVAILABLE)) };
    redirect, "redirect": Redirect = |tenant| Redirect::to(&tenant);
    html, "html": Html<Cow<'static, str>> = |tenant| Html(tenant.into());
    bytes, "bytes": Result<Bytes, (StatusCode, String)> = |tenant| if tenant.is_empty() { Err((StatusCode::NOT_FOUND, tenant)) } else { Ok(tenant.into()) };
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let seen = all().await;
    let text = |status| (status, "acme".to_owned());
    let expected = [
        text(200),
        text(200),
        text(201),
        text(200),
        (201, "\"acme\"".to_owned()),
        text(402),
        (503, String::new()),
        (303, String::new()),
        text(200),
        text(200),
    ];
    for ((op, status, body), expected) in seen.into_iter().zip(expected) {
        assert_eq!((status, body), expected, "{op}");
    }
}
