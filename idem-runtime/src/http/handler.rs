//! Runs an annotated handler: from the request to a [`Call`], and from an [`Answer`] to the response.

mod answer;
mod run;
#[cfg(test)]
mod tests;
mod unprotected;

use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use http::{HeaderName, HeaderValue, request::Parts};
use tracing::Instrument;

use self::answer::refuse;
pub(super) use self::answer::respond;
use super::{
    header::{HeaderFault, parse_key},
    order,
    payload::{Incoming, Received, Unproven},
    reply::STATUS,
};
use crate::{
    Runtime,
    call::{Call, KeySource},
    engine,
    error::{Error, ErrorKind},
    execution::{Execution, Supply},
    key::{RecordId, Scope},
    observe::{Ending, Watch},
    operation::Operation,
    outcome::Declared,
    transaction,
};

/// Proof that a handler's return type can be replayed.
#[must_use]
#[derive(Debug)]
pub struct Witness<R>(pub(crate) fn(R) -> Response);

/// A handler's body, from what the runtime supplies to the response. Without the types of the handler: a future that is
/// held across an await must be `Send` for every lifetime in its type, and a `&'static str` in the handler's return type
/// is one (rust-lang/rust#110338). A `dyn` has none.
pub type Body = Box<dyn FnOnce(&mut Supply) -> Result<BoxFuture<'static, Response>, Error> + Send>;

/// The body as the expansion has it, with how its value becomes a response. One that is not `Send` is one error here, in
/// words.
pub fn body_runs_on_its_own_task<R, B, F>(Witness(respond): Witness<R>, body: B) -> Body
where
    B: FnOnce(&mut Supply) -> Result<F, Error> + Send + 'static,
    F: Future<Output = R> + Send + 'static,
    R: 'static,
{
    Box::new(move |supply| Ok(Box::pin(body(supply)?.map(respond))))
}

/// What a request comes to before the store is asked.
enum Prepared {
    /// No key, and none is needed.
    Unprotected(Ending),
    Protected(Call),
    Refused(Error),
}

/// Runs the handler's body, or answers in its place.
// No `async fn`: that keeps room for its arguments beside the block that has them, in every request whose body runs.
pub fn handle(
    operation: &'static Operation,
    incoming: Incoming,
    scope: Scope,
    key: KeySource,
    body: Body,
) -> impl Future<Output = Response> {
    let watch = incoming.runtime.observer().watch(operation.op, Some(&scope));
    let span = watch.span();
    let handled = async move {
        let runtime = incoming.runtime.clone();
        let prepared = prepare(operation, &incoming, &scope, key, &watch).await;
        let head = incoming.parts;
        match prepared {
            Prepared::Unprotected(ending) => {
                drop(incoming.content); // the extractor has read it, and a request that waits for its body needs it no more
                watch.end(ending);
                unprotected(&runtime, operation, body).await
            }
            Prepared::Refused(error) => refuse(&runtime, &watch, &error),
            Prepared::Protected(mut call) => {
                match order::read(&runtime, operation, &scope, &incoming.content) {
                    Ok(order) => call.order = order,
                    Err(error) => return Box::pin(unordered(&runtime, &call, head, error)).await, // rare: no room in every request
                }
                drop(incoming.content); // as above
                let answer = engine::run(&runtime, &call, |owner| run::detached(owner, body)).await;
                respond(&runtime, &call, Some(head), answer).await
            }
        }
    };
    handled.instrument(span)
}

/// Where its event stands cannot be read, so it is not run. But if it was, before a deploy asked for an order, its answer is due.
async fn unordered(runtime: &Runtime, call: &Call, head: Parts, error: Error) -> Response {
    match engine::peek(runtime, call).await {
        Some(answer) => respond(runtime, call, Some(head), answer).await,
        None => refuse(runtime, &call.watch, &call.explain(error)),
    }
}

/// The typed part of the request was refused. Nothing is claimed; but a key that is already answered is answered
/// again, since a deploy that tightens a type must not turn a due replay into a refusal.
// No `async fn`, as `handle`.
pub fn rejected(
    operation: &'static Operation,
    incoming: Incoming,
    scope: Scope,
    key: KeySource,
    rejection: Response,
) -> impl Future<Output = Response> {
    let watch = incoming.runtime.observer().watch(operation.op, Some(&scope));
    let span = watch.span();
    let looked = async move {
        let runtime = incoming.runtime.clone();
        let prepared = match incoming.content {
            Received::Bytes(_) if !is_unproven(operation, &rejection) => {
                prepare(operation, &incoming, &scope, key, &watch).await
            }
            Received::Bytes(_) | Received::Unread | Received::Failed => Prepared::Unprotected(Ending::Rejected),
        };
        match prepared {
            Prepared::Unprotected(_) => {}
            Prepared::Refused(error) => return refuse(&runtime, &watch, &error),
            Prepared::Protected(call) => {
                if let Some(answer) = engine::peek(&runtime, &call).await {
                    return respond(&runtime, &call, Some(incoming.parts), answer).await;
                }
            }
        }
        watch.end(Ending::Rejected);
        runtime.in_house_format(operation, None, None, rejection).1
    };
    looked.instrument(span)
}

/// As [`rejected`], where scope or key are made of what was refused: there is nothing to look up.
pub fn unidentified(operation: &'static Operation, incoming: &Incoming, rejection: Response) -> Response {
    incoming.runtime.observer().watch(operation.op, None).end(Ending::Rejected);
    incoming.runtime.in_house_format(operation, None, None, rejection).1
}

/// Whoever sends it may know a key by hearsay: the store is not asked, and nothing is answered again.
fn is_unproven(operation: &Operation, rejection: &Response) -> bool {
    operation.webhook || rejection.extensions().get::<Unproven>().is_some()
}

async fn prepare(
    operation: &'static Operation,
    incoming: &Incoming,
    scope: &Scope,
    key: KeySource,
    watch: &Watch,
) -> Prepared {
    let body = match &incoming.content {
        Received::Bytes(body) => body,
        Received::Unread => return Prepared::Unprotected(Ending::Bypassed),
        Received::Failed => return Prepared::Refused(Error::new(ErrorKind::Unreadable)), // answered before, by its rejection
    };
    let record = match identify(operation, incoming, scope, key) {
        Ok(Some(record)) => record,
        Ok(None) => return Prepared::Unprotected(Ending::Unprotected),
        Err(error) => return Prepared::Refused(error.with(|about| about.op = Some(operation.op))),
    };
    Prepared::Protected(call(operation, incoming, scope, record, body, watch).await)
}

/// `None`: there is no key, and the operation allows that.
fn identify(
    operation: &'static Operation,
    incoming: &Incoming,
    scope: &Scope,
    key: KeySource,
) -> Result<Option<RecordId>, Error> {
    let runtime = &incoming.runtime;
    runtime.serves(operation)?;
    let key = match key {
        KeySource::Given(key) => return runtime.record(operation, scope, &key).map(Some),
        KeySource::Header => {
            let name = operation.header.map_or_else(|| Ok(runtime.config().http.header()), HeaderName::try_from);
            let name = name
                .map_err(|error| Error::new(ErrorKind::NotServed).with(|about| about.source = Some(Box::new(error))))?;
            let lines = incoming.parts.headers.get_all(name).iter().map(HeaderValue::as_bytes);
            parse_key(lines, operation.key_format)
        }
    };
    match key {
        Ok(key) => Ok(Some(operation.identity(&runtime.config().namespace, scope, &key))),
        Err(HeaderFault::Missing) if operation.optional => Ok(None),
        Err(HeaderFault::Missing) => Err(Error::new(ErrorKind::MissingKey)),
        Err(HeaderFault::Invalid(why)) => Err(Error::new(ErrorKind::InvalidKey).with(|about| about.detail = Some(why))),
    }
}

async fn call(
    operation: &'static Operation,
    incoming: &Incoming,
    scope: &Scope,
    record: RecordId,
    body: &Bytes,
    watch: &Watch,
) -> Call {
    let rules = incoming.runtime.rules(operation);
    let longest = if rules.accepts { ACCEPTED_WAIT } else { rules.patience };
    let wished = prefer_wait(incoming).map(|wait| wait.min(longest));
    Call {
        input: None,
        order: None, // read where it is run
        operation,
        record,
        scope: scope.text(),
        fingerprint: operation.bound(scope, incoming.fingerprint(operation.payload, body).await),
        patience: wished.unwrap_or(rules.patience),
        accepts: rules.accepts,
        watch: watch.clone(),
    }
}

/// How long a duplicate may ask to wait for the result itself before it is told where to fetch it.
const ACCEPTED_WAIT: Duration = Duration::from_secs(30);

/// `Prefer: wait=5` (RFC 7240, section 4.3) may shorten a wait; where a duplicate is told where to fetch the result, it
/// may ask for one.
fn prefer_wait(incoming: &Incoming) -> Option<Duration> {
    let lines = incoming.parts.headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let mut preferences = lines.flat_map(|line| line.split(',')).filter_map(|preference| preference.split(';').next());
    preferences.find_map(|preference| {
        let (name, seconds) = preference.split_once('=')?;
        let seconds = seconds.trim().trim_matches('"').parse().ok()?;
        name.trim().eq_ignore_ascii_case("wait").then(|| Duration::from_secs(seconds))
    })
}

async fn unprotected(runtime: &Runtime, operation: &'static Operation, body: Body) -> Response {
    let response = match operation.transaction {
        Some(_) => unprotected::in_transaction(runtime, operation, body).await,
        None => match body(&mut Supply::new(Execution::unprotected(runtime, operation), None)) {
            Ok(body) => Ok(body.await),
            Err(error) => Err(error),
        },
    };
    match response {
        Ok(response) => with_status(runtime.in_house_format(operation, None, None, response).1, "ignored"),
        Err(error) => {
            transaction::failed::tell(operation, None, &error);
            runtime.problem(&error.with(|about| about.op = Some(operation.op)))
        }
    }
}

fn declared(response: &Response, execution: &Execution) -> Option<Declared> {
    response.extensions().get::<Declared>().copied().or_else(|| execution.declared())
}

fn with_status(mut response: Response, status: &'static str) -> Response {
    response.headers_mut().insert(STATUS, HeaderValue::from_static(status));
    response
}
