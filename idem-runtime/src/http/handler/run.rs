//! The run of a handler's body, by whoever owns the record.

use std::pin::pin;

use axum::response::Response;

use super::{Body, declared};
use crate::{
    engine::{self, Answer},
    error::ErrorKind,
    execution::Execution,
    http::reply,
    observe::Ending,
    outcome::Declared,
    owner::{Ended, Owner},
    state::Reason,
    store::Outcome,
    transaction,
};

/// A handler's body on its own task: a caller who hangs up does not stop it.
pub(super) async fn detached(owner: Owner, body: Body) -> Answer<Response> {
    let (runtime, call) = (owner.runtime().clone(), owner.call().clone());
    // In a box of its own: otherwise whoever waits for it keeps its room, too.
    let task = Box::pin(async move {
        if owner.is_stale() {
            let (stored, response) = reply::passed_over();
            return engine::settle(owner, Ended::by_itself(Outcome::Done(stored), true), response).await;
        }
        let execution = match owner.start().await {
            Ok(execution) => execution,
            Err(error) => return Answer::Refused(error),
        };
        let (ended, response) = ended(&owner, execution, body).await;
        engine::settle(owner, ended, response).await
    });
    // `None` only if storing the outcome panicked: the lease, dropped by that, has left a note.
    match runtime.on_its_own_task(task).await {
        Some(answer) => answer,
        None => Answer::Refused(call.failed(ErrorKind::Panicked)),
    }
}

async fn ended(owner: &Owner, execution: Execution, body: Body) -> (Ended, Response) {
    let (runtime, call) = (owner.runtime(), owner.call());
    let run = async {
        match body(&mut owner.supply(&execution)) {
            Ok(body) => {
                let response = body.await;
                let declared = declared(&response, &execution);
                let (status, response) = runtime.in_house_format(call.operation, Some(call.record), declared, response);
                // A client error that is kept by the operation's policy only is no reason to keep what was written.
                let keeps_rows = declared == Some(Declared::Final) || status.as_u16() < 400;
                let policy = call.operation.client_errors;
                let (outcome, response) = reply::capture(status, response, &execution, policy, runtime.config()).await;
                (Ended::by_itself(outcome, keeps_rows).said(declared), response)
            }
            Err(error) => {
                transaction::failed::tell(call.operation, Some(call.record), &error);
                call.watch.end(Ending::of_refusal(error.kind()));
                let released = Outcome::Released(Reason::Status);
                (Ended::by_itself(released, false), runtime.problem(&call.explain(error)))
            }
        }
    };
    match owner.run_caught(pin!(run)).await {
        Ok(ended) => ended,
        Err(cut_off) => {
            let (ended, error) = owner.cut_off(cut_off);
            (ended, runtime.problem(&error))
        }
    }
}
