//! Operations under way: where their results can be fetched, and the fetching.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header, request::Parts};
use serde::Serialize;

use super::{handler::respond, problem::whole_seconds, reply::STATUS};
use crate::{
    Runtime,
    call::Call,
    engine::{self, Answer},
    error::{Error, ErrorKind},
    fingerprint::Fingerprint,
    key::{RecordId, Scope, ScopePart},
    operation::{self, Kind, Operation},
    state::State,
    store::Record,
};

/// The body of a 202: no problem, since nothing is wrong.
#[derive(Serialize)]
struct UnderWay {
    state: &'static str,
    op: &'static str,
    operation: String,
}

/// 202 in the place of `refusal`, if that only says that the first run is under way, and its operation tells
/// duplicates where to fetch the result. The header keeps it apart from a 202 of the handler's own.
pub(super) fn accepted(runtime: &Runtime, call: &Call, refusal: &Error) -> Option<Response> {
    let ErrorKind::InProgress { retry_after } = refusal.kind() else { return None };
    if !call.accepts || !refusal.about().under_way {
        return None;
    }
    let body = UnderWay { state: "in_flight", op: call.operation.op, operation: call.record.to_string() };
    let mut response = (StatusCode::ACCEPTED, Json(body)).into_response();
    let headers = response.headers_mut();
    if let Some(location) = runtime.config().http.location(call.record) {
        headers.insert(header::LOCATION, location);
    }
    headers.insert(STATUS, HeaderValue::from_static("in-progress"));
    headers.insert(header::RETRY_AFTER, whole_seconds(retry_after));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Some(response)
}

impl Runtime {
    /// What became of the operation of this caller: the answer at [`operations_at`](crate::Builder::operations_at). The
    /// program mounts it, and says who asks: `scope` is made as in the annotation ([`Global`](crate::Global) where that
    /// says `global`).
    ///
    /// | the operation | the response |
    /// |---|---|
    /// | runs | 202 with `Retry-After` and `Idempotency-Status: in-progress`, and with `Location` if the builder says where |
    /// | has an answer | that one, byte for byte, marked `Idempotent-Replayed: true`; also a 4xx that is kept |
    /// | has an answer that was not retained | 410 `idempotency-result-unavailable`, with its status and links |
    /// | had an answer, whose time is over | 410 `idempotency-result-expired` |
    /// | has an unknown outcome | 409 `idempotency-outcome-unknown`; its `retry` is `same-key` where the next retry runs it again |
    /// | ended without an effect | 409 `idempotency-operation-released`: send it again with the same key |
    /// | is not there, or another scope's, or a plain function's, or not of an operation that this program has and this runtime serves | 404 `idempotency-operation-unknown`, always the same |
    /// | is in a state that a newer version wrote | 409 `idempotency-in-progress` |
    /// | cannot be looked up | 503 `idempotency-store-unavailable` |
    ///
    /// A result without a `Cache-Control` of its own gets `no-store`: it was the answer to a request that nothing caches.
    ///
    /// `Path<RecordId>` extracts `id`; axum answers 400 where it is malformed. To answer 404 there too, extract a `String`
    /// and parse it. With [`authorize_replay`](crate::Builder::authorize_replay) use
    /// [`operation_for`](Self::operation_for): here there is no request to decide by, so each result is 403.
    ///
    /// # Cancel safety
    /// Reads only; drop it at will.
    pub async fn operation(&self, id: RecordId, scope: impl ScopePart + Send) -> Response {
        self.show(id, Scope::of(&scope), None).await
    }

    /// As [`operation`](Self::operation), for a runtime that asks [`authorize_replay`](crate::Builder::authorize_replay)
    /// before it shows a result. It is asked about this request: the one that fetches, not the one that ran. Axum extracts
    /// `request` as [`Parts`].
    ///
    /// # Cancel safety
    /// Reads only; drop it at will.
    pub async fn operation_for(&self, id: RecordId, scope: impl ScopePart + Send, request: Parts) -> Response {
        self.show(id, Scope::of(&scope), Some(request)).await
    }

    async fn show(&self, id: RecordId, scope: Scope, request: Option<Parts>) -> Response {
        let found = match self.find_record(id).await {
            Ok(found) => found.and_then(|record| Some((self.shown_to(&scope, &record)?, record.state))),
            Err(error) => return self.problem(&error),
        };
        let unknown = || self.problem(&Error::new(ErrorKind::UnknownOperation));
        let Some((operation, state)) = found else { return unknown() };
        let call = Call {
            input: None,
            order: None,
            operation,
            record: id,
            scope: scope.text(),
            fingerprint: operation.bound(&scope, Fingerprint::unknown()),
            patience: std::time::Duration::ZERO,
            accepts: true,
            watch: self.observer().fetch(operation.op),
        };
        let answer = match engine::peek(self, &call).await {
            // Another scope has taken it since.
            Some(Answer::Refused(error)) if error.kind() == ErrorKind::Mismatch => return unknown(),
            Some(answer) => answer,
            // A claim would be granted.
            None if state == State::Done => Answer::Refused(engine::with_links(self, &call, ErrorKind::Expired).await),
            None => Answer::Refused(call.error(ErrorKind::Released)),
        };
        let mut response = respond(self, &call, request, answer).await;
        response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        response
    }

    /// The operation of a record that belongs to `scope`, if this runtime serves it to clients.
    fn shown_to(&self, scope: &Scope, record: &Record) -> Option<&'static Operation> {
        let operation = operation::named(&record.op)?;
        let is_shown = operation.kind == Kind::Handler && (self.config().serves)(operation.op);
        (is_shown && record.scope == scope.as_str()).then_some(operation)
    }
}
