//! Who asks. Runs before anything else, so an unauthenticated request never reaches a key.

use axum::{
    extract::FromRequestParts,
    http::{StatusCode, header, request::Parts},
};
use idem_runtime::{ScopePart, ScopeWriter};

/// The account that a bearer token acts for. Keys belong to it, not to the token, which may be rotated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tenant(pub(crate) &'static str);

impl ScopePart for Tenant {
    fn write_scope(&self, out: &mut ScopeWriter) {
        self.0.write_scope(out);
    }
}

impl<S: Sync> FromRequestParts<S> for Tenant {
    type Rejection = (StatusCode, &'static str);

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let authorization = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        match authorization.and_then(|value| value.strip_prefix("Bearer ")) {
            Some("sk_test_acme") => Ok(Self("acme")),
            Some("sk_test_globex") => Ok(Self("globex")),
            _ => Err((StatusCode::UNAUTHORIZED, "unknown bearer token")),
        }
    }
}
