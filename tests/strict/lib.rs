//! A user's crate under the strictest lints: whatever the attribute expands to must be clean in it (case C47).
//!
//! Handlers that nobody mounts, since a library only offers them. Compiled, linted and documented with the workspace;
//! there is nothing to run.
#![forbid(unsafe_code)]
#![deny(
    warnings,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    unused_qualifications,
    unused_lifetimes,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unit_bindings,
    let_underscore_drop,
    rust_2018_idioms,
    clippy::all,
    clippy::pedantic,
    clippy::nursery
)]
// Of the restriction group: what an expansion is likely to trip over.
#![deny(
    clippy::absolute_paths,
    clippy::allow_attributes_without_reason,
    clippy::as_conversions,
    clippy::default_numeric_fallback,
    clippy::exhaustive_structs,
    clippy::expect_used,
    clippy::impl_trait_in_params,
    clippy::indexing_slicing,
    clippy::let_underscore_must_use,
    clippy::let_underscore_untyped,
    clippy::missing_docs_in_private_items,
    clippy::multiple_inherent_impl,
    clippy::panic,
    clippy::pattern_type_mismatch,
    clippy::pub_use,
    clippy::same_name_method,
    clippy::semicolon_inside_block,
    clippy::shadow_reuse,
    clippy::shadow_same,
    clippy::shadow_unrelated,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::str_to_string,
    clippy::unreachable,
    clippy::unwrap_used,
    clippy::used_underscore_binding,
    clippy::wildcard_enum_match_arm
)]

use axum::{
    Json,
    extract::{FromRef, FromRequestParts, Path, Query, State},
    http::{HeaderMap, StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use idem_runtime::{Error, Execution, Runtime, ScopePart, ScopeWriter, idempotent};
use serde::{Deserialize, Serialize};

/// The state of the router.
#[derive(Debug, Clone, FromRef)]
#[non_exhaustive]
pub struct App {
    /// The runtime.
    pub idem: Runtime,
    /// Cents per charge.
    pub fee: u64,
}

/// Who asks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tenant {
    /// Its number.
    pub id: u64,
}

impl ScopePart for Tenant {
    fn write_scope(&self, out: &mut ScopeWriter) {
        self.id.write_scope(out);
    }
}

impl<S: Sync> FromRequestParts<S> for Tenant {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let id = parts.headers.get("x-tenant").and_then(|value| value.to_str().ok()?.parse().ok());
        id.map(|number| Self { id: number }).ok_or(StatusCode::UNAUTHORIZED)
    }
}

/// What to charge.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct Charge {
    /// Names the request.
    pub id: String,
    /// In cents.
    pub amount: u64,
}

/// What was charged.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Receipt {
    /// In cents.
    pub total: u64,
}

/// Why it was not.
#[derive(Debug)]
#[non_exhaustive]
pub enum ApiError {
    /// Nothing to charge.
    Empty,
    /// Not run.
    Idem(Error),
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match self {
            Self::Empty => StatusCode::UNPROCESSABLE_ENTITY.into_response(),
            Self::Idem(error) => error.into_response(),
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

/// The usual handler.
///
/// # Errors
/// If there is nothing to charge.
#[idempotent(scope = "tenant", op = "strict.charge", ttl = "24h")]
pub async fn charge(
    tenant: Tenant,
    State(app): State<App>,
    #[idem] exec: Execution,
    Json(Charge { amount, .. }): Json<Charge>,
) -> Result<(StatusCode, Json<Receipt>), ApiError> {
    if amount == 0 {
        return Err(ApiError::Empty);
    }
    exec.link("tenant", &tenant.id.to_string()).await.map_err(ApiError::Idem)?;
    Ok((StatusCode::CREATED, Json(Receipt { total: amount.saturating_add(app.fee) })))
}

/// Every argument, and every way to leave a parameter unused.
#[idempotent(
    op = "strict.every",
    scope = (tenant.id, "branch"),
    ttl = "1h",
    refuse_late = "7d",
    header = "X-Key",
    optional,
    key_format = uuid,
    payload = fields("/amount"),
    in_flight = wait("5s"),
    client_errors = keep("30s"),
    timeout = "10s",
    state = App,
)]
pub async fn every(
    tenant: Tenant,
    _unused: HeaderMap,
    _: HeaderMap,
    State(_): State<App>,
    #[expect(unused_variables, reason = "met in the body's scope")] headers: HeaderMap,
    #[idem] _exec: Execution,
    Json(_charge): Json<Charge>,
) -> impl IntoResponse {
    StatusCode::NO_CONTENT
}

/// A key from the last parameter; patterns with `mut` and `ref`.
#[idempotent(scope = tenant, op = "strict.given-key", key = id, client_errors = store)]
pub async fn given_key(
    Path(ref tenant): Path<u64>,
    Query(mut counts): Query<Vec<(String, u64)>>,
    Json(Charge { ref id, mut amount }): Json<Charge>,
) -> Result<impl IntoResponse, ApiError> {
    amount = amount.saturating_add(1);
    counts.push((id.clone(), *tenant));
    Ok(Json((counts, amount)))
}

/// Nothing comes in, nothing goes out.
#[idempotent(scope = global, op = "strict.nothing")]
pub async fn nothing() {}

/// Text, from nothing but a body.
#[idempotent(scope = global, op = "strict.text", payload = raw)]
pub async fn text(mut body: String) -> String {
    body.push('!');
    body
}

/// What a generic handler works with.
pub trait Gateway: Send + Sync + 'static {
    /// What it costs.
    fn fee(amount: u64) -> u64;
}

/// Generic over a type and a number.
#[idempotent(scope = tenant, op = "strict.generic")]
pub async fn generic<G, const N: usize>(tenant: Tenant, Json(charge): Json<Charge>) -> Json<Vec<u64>>
where
    G: Gateway,
{
    Json([G::fee(charge.amount).saturating_add(tenant.id); N].to_vec())
}

/// A service with methods.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Ledger {
    /// The runtime.
    pub idem: Runtime,
    /// Names the ledger.
    pub name: String,
}

impl Ledger {
    /// A method that borrows.
    ///
    /// # Errors
    /// If it is not run.
    #[idempotent(function, runtime = self.idem, scope = (self.name, tenant), op = "strict.book", key = charge.id, ttl = "7d")]
    pub async fn book(
        &self,
        tenant: &Tenant,
        charge: Charge,
        _note: &str,
        #[idem] exec: Execution,
    ) -> Result<Receipt, ApiError> {
        exec.link(&self.name, &tenant.id.to_string()).await.map_err(ApiError::Idem)?;
        Ok(Receipt { total: charge.amount })
    }

    /// An associated handler.
    #[idempotent(scope = tenant, op = "strict.associated")]
    pub async fn open(tenant: Tenant) -> &'static str {
        if tenant.id == 0 { "closed" } else { "open" }
    }
}

/// A plain function.
///
/// # Errors
/// If it is not run.
#[idempotent(function, runtime = idem, scope = global, op = "strict.capture", key = id, timeout = "1m")]
pub async fn capture(idem: &Runtime, mut id: u64, out: &mut Vec<u64>) -> Result<(), ApiError> {
    drop(idem.clone());
    id = id.saturating_add(1);
    out.push(id);
    Ok(())
}

/// Out of a macro of the user's.
macro_rules! handlers {
    ($($(#[$doc:meta])* $name:ident, $op:literal;)*) => {$(
        $(#[$doc])*
        #[idempotent(scope = "tenant", op = $op)]
        pub async fn $name(tenant: Tenant, body: String) -> String {
            format!("{} {body}", tenant.id)
        }
    )*};
}
handlers! {
    /// One.
    first, "strict.first";
    /// Another.
    second, "strict.second";
}
