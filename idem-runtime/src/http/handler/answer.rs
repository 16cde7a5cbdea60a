//! From what a call came to to the response.

use axum::response::Response;
use http::request::Parts;

use super::with_status;
use crate::{
    Runtime,
    call::Call,
    engine::Answer,
    error::{Error, ErrorKind},
    http::{config::Replaying, operations, reply},
    observe::{Ending, Watch},
};

/// `head`: the request that asks, for whoever decides what it may see.
pub(in crate::http) async fn respond(
    runtime: &Runtime,
    call: &Call,
    head: Option<Parts>,
    answer: Answer<Response>,
) -> Response {
    let error = match answer {
        Answer::Ran { value, recorded: true } => return value, // its end was seen when it was stored
        Answer::Ran { value, recorded: false } => return with_status(value, "unrecorded"),
        Answer::Refused(error) if !shows_a_result(error.kind()) => match operations::accepted(runtime, call, &error) {
            Some(accepted) => {
                call.watch.end(Ending::Accepted);
                return accepted;
            }
            None => error,
        },
        Answer::Refused(_) if call.operation.webhook => {
            // A result that is gone: the event was handled, and its sender need not know how.
            call.watch.end(Ending::Replayed);
            return reply::acknowledged(None);
        }
        _ if !may_see(runtime, call, head).await => match answer {
            // Nor may it know: but it is told that all is over, or it would deliver for days.
            Answer::Replay(stored) if call.operation.webhook && call.watch.is_of_a_call() => {
                call.watch.end(Ending::Replayed);
                return reply::acknowledged(stored.status);
            }
            _ => call.error(ErrorKind::ReplayForbidden),
        },
        Answer::Refused(error) => error,
        Answer::Replay(stored) => match reply::replay(&stored) {
            Ok(response) => {
                call.watch.end(Ending::Replayed);
                return response;
            }
            Err(error) => {
                tracing::error!(target: "idem::engine", op = call.operation.op, record = call.record.short(), "the stored response cannot be read");
                Error::from_store(error).with(|about| about.record = Some(call.record))
            }
        },
    };
    refuse(runtime, &call.watch, &error)
}

pub(super) fn refuse(runtime: &Runtime, watch: &Watch, error: &Error) -> Response {
    watch.end(Ending::of_refusal(error.kind()));
    runtime.problem(error)
}

/// These tell what became of an earlier request, links included.
fn shows_a_result(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ResultUnavailable | ErrorKind::Expired)
}

async fn may_see(runtime: &Runtime, call: &Call, request: Option<Parts>) -> bool {
    match (&runtime.config().http.authorize_replay, request) {
        (Some(ask), Some(request)) => ask(Replaying { op: call.operation.op, record: call.record, request }).await,
        (Some(_), None) => false, // nothing to decide by
        (None, _) => true,
    }
}
