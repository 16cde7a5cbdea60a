//! The table itself, and what it says of statuses and pauses.

use std::time::Duration;

use http::StatusCode;

use crate::{error::ErrorKind, http::config::HttpConfig};

/// A row of the table.
pub(in crate::http) struct Row {
    pub(in crate::http) slug: &'static str,
    pub(in crate::http) status: StatusCode,
    pub(in crate::http) title: &'static str,
    pub(super) state: Option<&'static str>,
    pub(in crate::http) retry: &'static str,
    pub(super) safe_new_key: bool,
}

#[rustfmt::skip] // a table is read by column
pub(in crate::http) fn row(kind: ErrorKind) -> Row {
    let (slug, status, title, state, retry, safe_new_key) = match kind {
        ErrorKind::MissingKey         => ("idempotency-key-missing", 400, "The request needs an idempotency key", None, "new-key", true),
        ErrorKind::InvalidKey         => ("idempotency-key-invalid", 400, "The idempotency key is invalid", None, "new-key", true),
        ErrorKind::Mismatch           => ("idempotency-key-reused", 422, "The idempotency key was used with another payload", None, "never", false),
        ErrorKind::InProgress { .. }  => ("idempotency-in-progress", 409, "The first request with this key is in progress", Some("in_flight"), "same-key", false),
        ErrorKind::InDoubt            => ("idempotency-outcome-unknown", 409, "The outcome of the first request is unknown", Some("in_doubt"), "operator", false),
        ErrorKind::ResultUnavailable  => ("idempotency-result-unavailable", 410, "The result was not retained", Some("completed"), "never", false),
        ErrorKind::Expired            => ("idempotency-result-expired", 410, "The result has expired", Some("expired"), "never", false),
        ErrorKind::Released           => ("idempotency-operation-released", 409, "The operation ended without an effect", Some("released"), "same-key", false),
        ErrorKind::UnknownOperation   => ("idempotency-operation-unknown", 404, "There is no such operation", None, "never", false),
        ErrorKind::Unavailable { .. } => ("idempotency-store-unavailable", 503, "The idempotency store is unavailable", None, "same-key", false),
        ErrorKind::TooLarge           => ("idempotency-request-too-large", 413, "The request body is too large", None, "never", false),
        ErrorKind::Unreadable         => ("idempotency-request-unreadable", 400, "The request body could not be read", None, "same-key", false),
        ErrorKind::Unverified         => ("idempotency-signature-invalid", 401, "The signature does not hold", None, "never", false),
        ErrorKind::InvalidEvent       => ("idempotency-event-invalid", 400, "The event cannot be read", None, "never", false),
        ErrorKind::TimedOut           => ("idempotency-body-timeout", 504, "The operation ran into its time limit", Some("in_doubt"), "operator", false),
        ErrorKind::Panicked           => ("idempotency-body-panicked", 500, "The operation failed", Some("in_doubt"), "operator", false),
        ErrorKind::Draining           => ("idempotency-draining", 503, "The service is shutting down", None, "same-key", true),
        ErrorKind::OrderUnreadable    => ("idempotency-order-unreadable", 422, "The order of the event cannot be read", None, "never", false),
        ErrorKind::ReplayForbidden    => ("idempotency-replay-forbidden", 403, "The stored result may not be shown", None, "never", false),
        ErrorKind::InvalidLink        => ("idempotency-link-invalid", 500, "A provider's id cannot be recorded", None, "operator", false),
        ErrorKind::InvalidBatch       => ("idempotency-batch-invalid", 500, "The batch cannot be claimed", None, "never", false),
        ErrorKind::Conflict           => ("idempotency-conflict", 409, "The record is in another state", None, "never", false),
        ErrorKind::Transaction        => ("idempotency-transaction-failed", 500, "The transaction failed", None, "operator", false),
        ErrorKind::Step               => ("idempotency-step-failed", 500, "A step of the operation failed", None, "same-key", false),
        ErrorKind::NotServed          => ("idempotency-not-served", 500, "The operation is not served here", None, "never", false),
        ErrorKind::Store              => ("idempotency-store-unreadable", 500, "The stored record cannot be read", Some("unknown"), "operator", false),
    };
    Row { slug, status: StatusCode::from_u16(status).unwrap_or_default(), title, state, retry, safe_new_key }
}

/// Every row's kind. That none is missing is what the tests of the documents that list them show.
#[cfg(any(test, feature = "utoipa"))]
pub(in crate::http) const ALL: [ErrorKind; 26] = [
    ErrorKind::MissingKey,
    ErrorKind::InvalidKey,
    ErrorKind::TooLarge,
    ErrorKind::Unreadable,
    ErrorKind::Unavailable { retry_after: Duration::ZERO },
    ErrorKind::Draining,
    ErrorKind::Mismatch,
    ErrorKind::InProgress { retry_after: Duration::ZERO },
    ErrorKind::InDoubt,
    ErrorKind::ResultUnavailable,
    ErrorKind::Expired,
    ErrorKind::Released,
    ErrorKind::UnknownOperation,
    ErrorKind::Unverified,
    ErrorKind::InvalidEvent,
    ErrorKind::OrderUnreadable,
    ErrorKind::ReplayForbidden,
    ErrorKind::TimedOut,
    ErrorKind::Panicked,
    ErrorKind::InvalidLink,
    ErrorKind::InvalidBatch,
    ErrorKind::Conflict,
    ErrorKind::Transaction,
    ErrorKind::Step,
    ErrorKind::NotServed,
    ErrorKind::Store,
];

/// When it is worth coming back.
pub(in crate::http) fn retry_after(kind: ErrorKind) -> Option<Duration> {
    match kind {
        ErrorKind::InProgress { retry_after } | ErrorKind::Unavailable { retry_after } => Some(retry_after),
        ErrorKind::Draining => Some(Duration::from_secs(1)),
        _ => None,
    }
}

/// The table's status, but for what the service chooses, and for a `webhook`: its sender takes a 409 as its own fault and a
/// 410 as the end of the endpoint, so it is told to come back (C-41, C-43). Another payload stays a fault.
pub(in crate::http) fn status(kind: ErrorKind, config: &HttpConfig, webhook: bool) -> StatusCode {
    let status = if kind == ErrorKind::Mismatch { config.mismatch_status } else { row(kind).status };
    match status {
        StatusCode::CONFLICT | StatusCode::GONE if webhook && kind == ErrorKind::Mismatch => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        StatusCode::CONFLICT | StatusCode::GONE if webhook => StatusCode::SERVICE_UNAVAILABLE,
        status => status,
    }
}
