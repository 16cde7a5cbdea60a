//! Problem bodies (RFC 9457): one table from [`ErrorKind`] to what a client sees.

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use super::config::HttpConfig;
use crate::{
    Runtime,
    error::{Error, ErrorKind, Fate},
    operation::{self, KeyFormat},
};

/// What a client is told when its call was not run, as RFC 9457 has it. Clients branch on `type`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// A URI that ends in the slug: `…/#idempotency-key-reused`.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// The kind of problem, in words.
    pub title: &'static str,
    /// As the status line.
    pub status: u16,
    /// This problem, in words.
    pub detail: String,
    /// Where the key stands: `in_flight`, `completed`, `expired`, `in_doubt`, `released` or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// The operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op: Option<&'static str>,
    /// The record, as 32 hex digits: for support, and for `Runtime::resolve`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// A new key cannot make it happen twice: nothing can have run under this one. False where that is not known, as of
    /// a retry whose first try may have run.
    pub safe_new_key: bool,
    /// Whether to come back: `same-key`, `new-key`, `never`, or `operator` (a person must settle it first).
    pub retry: &'static str,
    /// The status of the first answer, where that cannot be sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_status: Option<u16>,
    /// What providers call the operation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<ProviderLink>,
    /// When it is worth coming back; sent as `Retry-After`, in whole seconds, rounded up.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
}

/// A provider's id of the operation.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ProviderLink {
    /// Whose id it is.
    pub provider: String,
    /// The id.
    pub id: String,
}

/// A row of the table.
pub(super) struct Row {
    pub(super) slug: &'static str,
    pub(super) status: StatusCode,
    pub(super) title: &'static str,
    state: Option<&'static str>,
    pub(super) retry: &'static str,
    safe_new_key: bool,
}

#[rustfmt::skip] // a table is read by column
pub(super) fn row(kind: ErrorKind) -> Row {
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
pub(super) const ALL: [ErrorKind; 25] = [
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
pub(super) fn retry_after(kind: ErrorKind) -> Option<Duration> {
    match kind {
        ErrorKind::InProgress { retry_after } | ErrorKind::Unavailable { retry_after } => Some(retry_after),
        ErrorKind::Draining => Some(Duration::from_secs(1)),
        _ => None,
    }
}

/// The table's status, but for what the service chooses, and for a `webhook`: its sender takes a 409 as its own fault and a
/// 410 as the end of the endpoint, so it is told to come back (C-41, C-43). Another payload stays a fault.
pub(super) fn status(kind: ErrorKind, config: &HttpConfig, webhook: bool) -> StatusCode {
    let status = if kind == ErrorKind::Mismatch { config.mismatch_status } else { row(kind).status };
    match status {
        StatusCode::CONFLICT | StatusCode::GONE if webhook && kind == ErrorKind::Mismatch => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        StatusCode::CONFLICT | StatusCode::GONE if webhook => StatusCode::SERVICE_UNAVAILABLE,
        status => status,
    }
}

/// When a sender of events is to deliver again what a person must settle first.
const SETTLED_IN: Duration = Duration::from_secs(60);

/// When a doubt that may settle itself is worth coming back for.
const RECOVERS_IN: Duration = Duration::from_secs(5);

/// The statuses whose problems name the record: those in which somebody may have to look for it.
const NAMES_THE_RECORD: [u16; 4] = [409, 410, 500, 504];

impl Problem {
    /// `recovers`: the operation has a recovery hook, so a doubt may settle itself. `webhook`: see [`status`].
    fn new(error: &Error, config: &HttpConfig, recovers: bool, webhook: bool) -> Self {
        let (kind, about, row) = (error.kind(), error.about(), row(error.kind()));
        let usual = status(kind, config, false).as_u16();
        let status = status(kind, config, webhook);
        let operation = about.record.filter(|_| NAMES_THE_RECORD.contains(&usual)).map(|id| id.to_string());
        let settles_itself = recovers && row.state == Some("in_doubt");
        let links =
            about.links.iter().map(|(provider, id)| ProviderLink { provider: provider.clone(), id: id.clone() });
        Self {
            type_uri: format!("{}{}", config.problem_base, row.slug),
            title: row.title,
            status: status.as_u16(),
            detail: detail(error, config, settles_itself),
            state: match about.fate {
                Some(Fate::Undone) => Some("released"),
                Some(Fate::Unknown) => Some("unknown"),
                Some(Fate::RunAgain) => Some("resumable"),
                None => row.state,
            },
            op: about.op,
            operation,
            safe_new_key: row.safe_new_key && !about.body_ran,
            retry: if settles_itself || about.fate.is_some() { "same-key" } else { row.retry },
            original_status: about.original_status,
            links: links.collect(),
            retry_after: match kind {
                ErrorKind::InDoubt if recovers && about.fate.is_none() => Some(RECOVERS_IN),
                kind => retry_after(kind).or((status.as_u16() != usual).then_some(SETTLED_IN)),
            },
        }
    }

    fn respond(self, config: &HttpConfig) -> Response {
        let (type_uri, retry_after) = (self.type_uri.clone(), self.retry_after);
        let mut response = match &config.problem_response {
            Some(format) => format(self),
            None => self.into_response(),
        };
        let headers = response.headers_mut();
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        if let Ok(link) = HeaderValue::try_from(format!("<{type_uri}>; rel=\"describedby\"")) {
            headers.entry(header::LINK).or_insert(link);
        }
        if let Some(retry_after) = retry_after {
            headers.entry(header::RETRY_AFTER).or_insert(whole_seconds(retry_after));
        }
        response
    }
}

/// `application/problem+json`: what a client gets where no format of the house's own
/// ([`Builder::problem_response`](crate::Builder::problem_response)) stands in its place, for such a format that is meant
/// for some operations only. Without the headers, which are added to whatever it answers.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self)).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}

/// `Retry-After`, rounded up.
pub(super) fn whole_seconds(retry_after: Duration) -> HeaderValue {
    (retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0)).into()
}

/// What a caller can make use of: never a source, which may name tables, files or hosts.
fn detail(error: &Error, config: &HttpConfig, settles_itself: bool) -> String {
    let about_the_key = about_the_key(error, config);
    let advice = match error.kind() {
        _ if about_the_key.is_some() => about_the_key.as_deref().unwrap_or_default(),
        _ if matches!(error.about().fate, Some(Fate::Unknown | Fate::RunAgain)) => {
            "It may have taken effect. Send the same request with the same key again: it does not happen twice."
        }
        _ if settles_itself => {
            "It may have taken effect; that is being found out. Send the same request with the same key again, not with a new one: it could happen twice."
        }
        _ if error.about().fate == Some(Fate::Undone) => {
            "Nothing of it is kept. Send the same request with the same key again."
        }
        ErrorKind::MissingKey => "Send a new, unique key, the same one on every retry of this action.",
        ErrorKind::InvalidKey => "Send 1 to 255 visible ASCII characters, a UUID for instance.",
        ErrorKind::Mismatch => "Use a new key for a new action, and the first payload for a retry.",
        ErrorKind::InProgress { .. } => "Send the same request with the same key again.",
        ErrorKind::InDoubt => {
            "It may have taken effect and is not run again by itself. Do not use a new key: it could happen twice."
        }
        ErrorKind::ResultUnavailable => "The operation is settled; its answer cannot be sent again.",
        ErrorKind::Expired => {
            "The operation was settled; the retry came too late to be answered, and is not run again."
        }
        ErrorKind::Released => "Nothing of it is kept. Send the same request with the same key again.",
        ErrorKind::UnknownOperation => "Check the address: a 202, or a problem of the caller's own, has named it.",
        ErrorKind::Unavailable { .. } | ErrorKind::Draining if error.about().body_ran => {
            "The operation ran, at least in part. Send the same request with the same key again."
        }
        ErrorKind::Unavailable { .. } => "This request was not run. Send it again with the same key.",
        ErrorKind::Draining => "Nothing was run. Send the same request with the same key again.",
        ErrorKind::TimedOut | ErrorKind::Panicked => "It may have taken effect and is not run again by itself.",
        ErrorKind::TooLarge => "This request was not run.",
        ErrorKind::Unreadable => "This request was not run. Send the whole of it again with the same key.",
        ErrorKind::Unverified => {
            "This request was not run. Sign the body exactly as it is sent, with the secret of this endpoint."
        }
        ErrorKind::InvalidEvent => "The signature holds, but nothing was done.",
        ErrorKind::ReplayForbidden => "The caller's rights have changed since the first request.",
        ErrorKind::InvalidLink => "It may have taken effect and is not run again by itself.",
        ErrorKind::Conflict => "Look at the record again before deciding.",
        ErrorKind::Transaction if error.about().body_ran => {
            "Part of it may be kept, and would be written again by a retry. This is a fault of the service."
        }
        ErrorKind::InvalidBatch
        | ErrorKind::Transaction
        | ErrorKind::Step
        | ErrorKind::NotServed
        | ErrorKind::Store => "This is a fault of the service.",
    };
    match error.about().detail {
        Some(detail) => format!("{advice} ({detail})"),
        None => advice.to_owned(),
    }
}

/// Where the key goes and what it looks like, for a client that sent none or a bad one. `None` where no header carries it.
fn about_the_key(error: &Error, config: &HttpConfig) -> Option<String> {
    let operation = error.about().op.and_then(operation::named).filter(|operation| operation.key.is_none())?;
    let header = operation.header.unwrap_or(&config.header_as_written);
    let form = match operation.key_format {
        KeyFormat::Any => "1 to 255 visible ASCII characters, a UUID for instance",
        KeyFormat::Uuid => "a hyphenated UUID",
    };
    match error.kind() {
        ErrorKind::MissingKey => Some(format!(
            "Send a new, unique key in the header `{header}` ({form}), the same one on every retry of this action."
        )),
        ErrorKind::InvalidKey => Some(format!("Send {form}, in the header `{header}`.")),
        _ => None,
    }
}

impl Runtime {
    /// The answer for an error, in this runtime's format.
    pub(super) fn problem(&self, error: &Error) -> Response {
        let config = &self.config().http;
        let recovers = !error.about().given_up && error.about().op.is_some_and(|op| self.config().recovers(op));
        let webhook = error.about().op.and_then(operation::named).is_some_and(|operation| operation.webhook);
        Problem::new(error, config, recovers, webhook).respond(config)
    }
}

/// The problem with this crate's defaults; as the answer of an annotated handler, it gets the runtime's own settings.
///
/// Only a body has an error in its hands, so the problem never says that a new key is safe.
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let error = self.with(|about| about.body_ran = true);
        let config = HttpConfig::default();
        let mut response = Problem::new(&error, &config, false, false).respond(&config);
        response.extensions_mut().insert(Passed(Arc::new(error)));
        response
    }
}

/// An error that a body has passed on, with its response.
#[derive(Clone)]
struct Passed(Arc<Error>);

impl Runtime {
    /// A body's response as it is, unless it is an error of ours passed on unchanged: that gets this runtime's format.
    pub(super) fn in_house_format(&self, mut response: Response) -> Response {
        match response.extensions_mut().remove::<Passed>() {
            Some(Passed(error)) if response.status() == row(error.kind()).status => self.problem(&error),
            _ => response,
        }
    }
}
