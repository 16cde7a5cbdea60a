//! Captures a response as it is sent, and sends it again.

use axum::{body::Body, response::Response};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body::Body as _;
use http_body_util::BodyExt;

use super::config::HttpConfig;
use crate::{
    execution::Execution,
    operation::ClientErrors,
    outcome::{Class, Declared, classify},
    runtime::Config,
    state::Reason,
    store::{Outcome, StoreError, StoreErrorKind, StoredResponse},
};

pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
pub(super) const STATUS: HeaderName = HeaderName::from_static("idempotency-status");

/// Belong to one connection (RFC 9110, section 7.6.1), never to a stored answer.
const HOP_BY_HOP: [HeaderName; 6] = [
    header::CONNECTION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];

/// Speak of one message, one caller or one moment. `Content-Length` and `Date` are made anew.
const OMITTED: [HeaderName; 19] = [
    header::CONTENT_LENGTH,
    header::DATE,
    header::AGE,
    header::VIA,
    header::SERVER,
    header::SET_COOKIE,
    HeaderName::from_static("clear-site-data"),
    header::WWW_AUTHENTICATE,
    header::RETRY_AFTER,
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("baggage"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("server-timing"),
    header::ALT_SVC,
    header::STRICT_TRANSPORT_SECURITY,
    header::AUTHORIZATION,
    REPLAYED,
    STATUS,
];

/// As [`OMITTED`], whole families of them.
const OMITTED_PREFIXES: [&str; 4] = ["proxy-", "ratelimit-", "x-ratelimit-", "access-control-"];

pub(super) fn is_hop_by_hop(name: &HeaderName) -> bool {
    HOP_BY_HOP.contains(name)
}

/// What becomes of the record, and the response for the first caller, unchanged. `status`: what its run is judged by.
pub(super) async fn capture(
    status: StatusCode,
    mut response: Response,
    execution: &Execution,
    client_errors: ClientErrors,
    config: &Config,
) -> (Outcome, Response) {
    let declared = response.extensions_mut().remove::<Declared>().or_else(|| execution.declared());
    let class = classify(status.as_u16(), declared, client_errors);
    match class {
        Class::Released => (Outcome::Released(Reason::Status), response),
        Class::InDoubt => (Outcome::InDoubt(Reason::Status), response),
        Class::Done => {
            let (stored, response) = store(response, config).await;
            (Outcome::Done(stored), response)
        }
        Class::Rejected(window) => match store(response, config).await {
            (stored, response) if stored.body.is_some() => (Outcome::Rejected(stored, window), response),
            (_, response) => (Outcome::Released(Reason::Status), response), // an error too large to keep is not kept
        },
    }
}

async fn store(response: Response, config: &Config) -> (StoredResponse, Response) {
    let (parts, body) = response.into_parts();
    let headers = encode(&parts.headers, &config.http);
    let (kept, body) =
        if parts.status.is_informational() { (None, body) } else { keep(body, config.max_response).await };
    let stored = StoredResponse { status: Some(parts.status.as_u16()), headers, body: kept };
    (stored, Response::from_parts(parts, body))
}

/// Reads a body of known length within the limit. Any other goes on unread: nothing of it is sent before the
/// outcome is stored.
async fn keep(body: Body, max_response: u64) -> (Option<Bytes>, Body) {
    if body.size_hint().exact().is_none_or(|length| length > max_response) {
        return (None, body);
    }
    match body.collect().await {
        Ok(collected) => {
            let bytes = collected.to_bytes();
            (Some(bytes.clone()), Body::from(bytes))
        }
        // The caller must see a broken answer, as without us; the effect happened all the same.
        Err(error) => (None, Body::from_stream(futures_util::stream::iter([Err::<Bytes, _>(error)]))),
    }
}

fn is_stored(name: &HeaderName, config: &HttpConfig, connection: &[HeaderName]) -> bool {
    if is_hop_by_hop(name) || connection.contains(name) || config.omitted.contains(name) {
        return false;
    }
    let omitted = OMITTED.contains(name) || OMITTED_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix));
    !omitted || config.kept.contains(name)
}

/// Header lines as bytes, in order, one by one: what was two lines is two lines again.
fn encode(headers: &HeaderMap, config: &HttpConfig) -> Bytes {
    let named = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let connection: Vec<HeaderName> =
        named.flat_map(|names| names.split(',')).filter_map(|name| name.trim().parse().ok()).collect();
    let mut out = BytesMut::new();
    for (name, value) in headers.iter().filter(|(name, _)| is_stored(name, config, &connection)) {
        for part in [name.as_str().as_bytes(), value.as_bytes()] {
            out.put_u32(u32::try_from(part.len()).unwrap_or(u32::MAX));
            out.put_slice(part);
        }
    }
    out.freeze()
}

/// The stored answer, marked as a replay.
///
/// # Errors
/// [`StoreErrorKind::Corrupt`] if it is not what [`encode`] wrote.
pub(super) fn replay(stored: &StoredResponse) -> Result<Response, StoreError> {
    let corrupt = || StoreError::new(StoreErrorKind::Corrupt, "the stored response is damaged");
    let body = stored.body.clone().ok_or_else(corrupt)?;
    let status = stored.status.and_then(|status| StatusCode::from_u16(status).ok()).ok_or_else(corrupt)?;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let mut rest = stored.headers.clone();
    while !rest.is_empty() {
        let name = part(&mut rest).and_then(|name| HeaderName::from_bytes(&name).ok()).ok_or_else(corrupt)?;
        let value = part(&mut rest).and_then(|value| HeaderValue::from_maybe_shared(value).ok()).ok_or_else(corrupt)?;
        response.headers_mut().append(name, value);
    }
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}

/// What is told, and kept, of an event that is older than what was applied: that it is done with.
pub(super) fn passed_over() -> (StoredResponse, Response) {
    let stored = StoredResponse { status: Some(200), headers: Bytes::new(), body: Some(Bytes::new()) };
    (stored, Response::new(Body::empty()))
}

/// What is told of an answer that is gone, or that nobody may see: it was one, with this status.
pub(super) fn acknowledged(status: Option<u16>) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or_default();
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

fn part(rest: &mut Bytes) -> Option<Bytes> {
    let length = rest.try_get_u32().ok()? as usize;
    (length <= rest.len()).then(|| rest.split_to(length))
}

impl StoredResponse {
    /// An answer for [`Resolution::Complete`](crate::Resolution::Complete) of a handler's operation, as the handler
    /// would have returned it. Headers are filtered by the default policy; the body is stored whatever its size.
    ///
    /// # Errors
    /// The body's own error, if it cannot be read to its end.
    pub async fn http(response: impl axum::response::IntoResponse) -> Result<Self, axum::Error> {
        let (parts, body) = response.into_response().into_parts();
        let headers = encode(&parts.headers, &HttpConfig::default());
        let body = body.collect().await?.to_bytes();
        Ok(Self { status: Some(parts.status.as_u16()), headers, body: Some(body) })
    }
}
