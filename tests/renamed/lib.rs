//! A user's crate that has renamed the runtime in its `Cargo.toml` (case C111): what the attribute expands to goes
//! through `crate = ::idem` alone, since there is no `idem_runtime` here.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unused_qualifications, clippy::all, clippy::pedantic, clippy::nursery)]
#![deny(clippy::panic, clippy::unreachable, clippy::unwrap_used, clippy::used_underscore_binding)]

use axum::{Json, Router, extract::Path, http::StatusCode, response::IntoResponse, routing::post};
use idem::{Error, Execution, Runtime, idempotent};

/// The routes of this crate.
pub fn routes() -> Router<Runtime> {
    Router::new().route("/{tenant}/charges", post(charge)).route("/{tenant}/notes", post(note))
}

/// A handler.
///
/// # Errors
/// If there is nothing to charge.
#[idempotent(crate = ::idem, scope = "tenant", op = "renamed.charge", ttl = "24h", in_flight = wait("1s"), state = Runtime)]
pub async fn charge(
    Path(tenant): Path<String>,
    #[idem] exec: Execution,
    Json(amount): Json<u64>,
) -> Result<(StatusCode, String), StatusCode> {
    if amount == 0 {
        return Err(StatusCode::UNPROCESSABLE_ENTITY);
    }
    Ok((StatusCode::CREATED, format!("{tenant} {amount} {}", exec.attempts())))
}

/// A handler with a key of its own.
#[idempotent(crate = ::idem, scope = tenant, op = "renamed.note", key = body, client_errors = keep("1s"))]
pub async fn note(Path(tenant): Path<String>, body: String) -> impl IntoResponse {
    drop(tenant);
    body
}

/// A function.
///
/// # Errors
/// If it is not run.
#[idempotent(crate = ::idem, function, runtime = idem, scope = global, op = "renamed.capture", key = id)]
pub async fn capture(idem: &Runtime, id: u64) -> Result<u64, Error> {
    let _ = idem;
    Ok(id)
}
