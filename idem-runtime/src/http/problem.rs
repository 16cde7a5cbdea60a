//! Problem bodies (RFC 9457): one table from [`ErrorKind`] to what a client sees.

mod passed;
mod table;
#[cfg(test)]
mod tests;
mod words;

use std::time::Duration;

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

#[cfg(any(test, feature = "utoipa"))]
pub(super) use self::table::ALL;
pub(super) use self::table::{retry_after, row, status};
use super::config::HttpConfig;
use crate::{
    Runtime,
    error::{Error, ErrorKind, Fate},
    key::RecordId,
    operation::{self, Operation},
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

/// When a sender of events is to deliver again what a person must settle first.
const SETTLED_IN: Duration = Duration::from_secs(60);

/// When a doubt that may settle itself is worth coming back for.
const RECOVERS_IN: Duration = Duration::from_secs(5);

/// The statuses whose problems name the record: those in which somebody may have to look for it.
const NAMES_THE_RECORD: [u16; 4] = [409, 410, 500, 504];

/// What the caller has asked for who gets an error: its operation, and the record of its key.
///
/// The error itself may be about another one, which the body has called, or may know of none. What is told is told to the
/// caller, so whether that is a sender of webhooks says its own operation.
#[derive(Clone, Copy, Default)]
struct Asked {
    operation: Option<&'static Operation>,
    record: Option<RecordId>,
}

impl Problem {
    /// `recovers`: whether an operation has a recovery hook, so that its doubts may settle themselves.
    fn new(error: &Error, config: &HttpConfig, asked: Asked, recovers: impl FnOnce(&str) -> bool) -> Self {
        let (kind, about, row) = (error.kind(), error.about(), row(error.kind()));
        let usual = status(kind, config, false).as_u16();
        let status = status(kind, config, asked.is_webhook()).as_u16();
        let (op, record) = asked.about(error);
        let recovers = !about.given_up && op.is_some_and(recovers);
        let settles_itself = recovers && row.state == Some("in_doubt");
        let links =
            about.links.iter().map(|(provider, id)| ProviderLink { provider: provider.clone(), id: id.clone() });
        Self {
            type_uri: format!("{}{}", config.problem_base, row.slug),
            title: row.title,
            status,
            detail: words::detail(error, config, settles_itself),
            state: match about.fate {
                Some(Fate::Undone) => Some("released"),
                Some(Fate::Unknown) => Some("unknown"),
                Some(Fate::RunAgain) => Some("resumable"),
                None => row.state,
            },
            op,
            operation: record.filter(|_| NAMES_THE_RECORD.contains(&usual)).map(|id| id.to_string()),
            safe_new_key: row.safe_new_key && !about.body_ran,
            retry: if settles_itself || about.fate.is_some() { "same-key" } else { row.retry },
            original_status: about.original_status,
            links: links.collect(),
            retry_after: match kind {
                ErrorKind::InDoubt if recovers && about.fate.is_none() => Some(RECOVERS_IN),
                kind => retry_after(kind).or((status != usual).then_some(SETTLED_IN)),
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

impl Asked {
    /// What the error's own operation was asked for.
    fn of(error: &Error) -> Self {
        Self { operation: error.about().op.and_then(operation::named), record: error.about().record }
    }

    fn is_webhook(self) -> bool {
        self.operation.is_some_and(|operation| operation.webhook)
    }

    /// The operation and the record that an error is about.
    fn about(self, error: &Error) -> (Option<&'static str>, Option<RecordId>) {
        match error.about().op {
            Some(op) => (Some(op), error.about().record),
            None => (self.operation.map(|operation| operation.op), error.about().record.or(self.record)),
        }
    }
}

impl Runtime {
    /// The answer for an error of the operation that was asked for, in this runtime's format.
    pub(super) fn problem(&self, error: &Error) -> Response {
        self.tell(error, Asked::of(error))
    }

    fn tell(&self, error: &Error, asked: Asked) -> Response {
        let config = self.config();
        Problem::new(error, &config.http, asked, |op| config.recovers(op)).respond(&config.http)
    }
}
