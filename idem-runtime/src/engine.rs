//! THE story: claim → run → finish. Read this first.
//!
//! A [`Call`] comes in with its key and its payload's fingerprint. Either it owns the record and its work runs, or it is
//! told what stands in its way. Nothing here knows HTTP or SQL.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use crate::{
    Runtime, batch,
    call::Call,
    error::{Error, ErrorKind},
    lease::{Claiming, Settled, Told},
    outcome::Body,
    owner::{Ended, Owner},
    recovery::TRIES,
    state::{Reason, State},
    store::{Found, Outcome, Peek, StoredResponse},
    transaction,
    wait::Patience,
};

/// What a call gets.
#[derive(Debug)]
pub(crate) enum Answer<R> {
    /// Its own work ran. Not `recorded`: the outcome could not be stored while the lease lasted.
    Ran { value: R, recorded: bool },
    /// The stored answer of an earlier run.
    Replay(StoredResponse),
    /// Neither.
    Refused(Error),
}

/// One call, from its key to its answer.
///
/// `work` is what an owner does. A handler's body runs on a task of its own, so that a caller who hangs up does not stop
/// it; a function's body borrows, so it runs where it is called. (A closure, not a trait: an associated future would be
/// looked up again for every lifetime in `R` when somebody asks whether this one is `Send`.)
///
/// Cancel safety: dropped at any point, nothing is left undecided. A claim under way finishes and is given back, a
/// detached body goes on, a borrowed body is held in doubt (or left to be run again), a waiter leaves the queue.
pub(crate) async fn run<R, F>(runtime: &Runtime, call: &Call, work: impl FnOnce(Owner) -> F) -> Answer<R>
where
    F: Future<Output = Answer<R>>,
{
    let mut patience = Patience::new(runtime, call);
    loop {
        match admit(runtime, call).await {
            Ok(Admission::Own(owner)) => {
                drop(patience); // it waits no more
                return work(owner).await;
            }
            Ok(Admission::Found(found)) if is_to_come(runtime, call, &found) && patience.wait().await => {} // look again
            Ok(Admission::Found(found)) => return tell(runtime, call, found).await,
            Err(error) => {
                transaction::failed::tell(call.operation, Some(call.record), &error);
                return Answer::Refused(call.explain(error));
            }
        }
    }
}

/// An answer may come by itself: from the first run, or from a recovery hook.
pub(crate) fn is_to_come(runtime: &Runtime, call: &Call, found: &Found) -> bool {
    match found {
        Found::InFlight { .. } => true,
        Found::InDoubt(_) => runtime.config().recovers(call.operation.op),
        _ => false,
    }
}

/// What stands behind a call's key, without running anything; `None` if nothing does.
pub(crate) async fn peek<R>(runtime: &Runtime, call: &Call) -> Option<Answer<R>> {
    match behind(runtime, call).await {
        Ok(Behind::Nothing) => None,
        Ok(Behind::Found(found)) => Some(tell(runtime, call, found).await),
        Ok(Behind::ToBeRunAgain) => Some(Answer::Refused(call.failed(ErrorKind::InDoubt))),
        Err(error) => Some(Answer::Refused(call.explain(error))),
    }
}

/// Stores how a run ended, and answers: with its own value, unless the run had lost its lease and somebody else's
/// answer counts. Two callers never get two answers.
///
/// A run in a transaction is committed or undone by this.
pub(crate) async fn settle<R>(owner: Owner, ended: Ended, value: R) -> Answer<R> {
    let lease = match owner {
        Owner::Leased(lease) => lease,
        // In a box of its own: otherwise every body that sleeps keeps the room for it.
        Owner::Transacted(transaction) => return Box::pin(transaction.settle(ended, value)).await,
    };
    let (runtime, call) = (lease.runtime().clone(), lease.call().clone());
    match lease.finish(ended.outcome, ended.body).await {
        Settled::Stored => Answer::Ran { value, recorded: true },
        Settled::Unrecorded => Answer::Ran { value, recorded: false },
        Settled::Withheld => Answer::Refused(call.error(ErrorKind::InDoubt).with(|about| about.body_ran = true)),
        Settled::Lost => match peek(&runtime, &call).await {
            Some(Answer::Refused(error)) => Answer::Refused(error.with(|about| about.body_ran = true)),
            Some(answer) => answer,
            None => Answer::Refused(call.error(ErrorKind::InDoubt).with(|about| about.body_ran = true)),
        },
    }
}

/// What is behind a key, for whoever is not going to run.
enum Behind {
    Nothing,
    Found(Found),
    /// A retry would run it again; whoever does not must not take it for nothing.
    ToBeRunAgain,
}

async fn behind(runtime: &Runtime, call: &Call) -> Result<Behind, Error> {
    if let Some(found) = look(runtime, call, call.peek()).await? {
        return Ok(Behind::Found(found));
    }
    if !call.operation.reruns() {
        return Ok(Behind::Nothing);
    }
    Ok(match look(runtime, call, Peek { rerun: false, ..call.peek() }).await? {
        None => Behind::Nothing,
        Some(Found::InDoubt(_)) => Behind::ToBeRunAgain,
        Some(found) => Behind::Found(found), // it has moved since
    })
}

/// Whose the record is, as a call is told.
pub(crate) enum Admission {
    Own(Owner),
    Found(Found),
}

async fn admit(runtime: &Runtime, call: &Call) -> Result<Admission, Error> {
    transaction::refuse_nested(runtime)?;
    let _counted = runtime.bodies().token(); // before the look at `draining`: shutdown waits for whoever passes it
    if let Some(admission) = batch::admit(runtime, call).await {
        return admission;
    }
    if let Some(found) = runtime.cache().look(call) {
        return Ok(Admission::Found(found));
    }
    if runtime.is_draining() {
        return match behind(runtime, call).await? {
            Behind::Found(found) => Ok(Admission::Found(found)),
            Behind::Nothing => Err(Error::new(ErrorKind::Draining)),
            Behind::ToBeRunAgain => Err(Error::new(ErrorKind::Draining).with(|about| about.body_ran = true)),
        };
    }
    // A caller who leaves must not cut a claim in half, nor leave one behind that nobody owns.
    match runtime.uncut(claim(runtime.clone(), call.clone())).await {
        Some(admission) => admission,
        None => Err(Error::new(ErrorKind::Store)),
    }
}

async fn claim(runtime: Runtime, call: Call) -> Result<Admission, Error> {
    if call.operation.transaction.is_some() {
        return Ok(match transaction::begin(runtime, call).await? {
            Ok(transaction) => Admission::Own(Owner::Transacted(Box::new(transaction))),
            Err(found) => Admission::Found(found),
        });
    }
    let claimed = claim_all(runtime, vec![call]).await?.pop();
    claimed.unwrap_or_else(|| Err(Error::new(ErrorKind::Store)))
}

/// Claims in one statement what is to be run under leases; see [`Claiming::new`].
pub(crate) async fn claim_all(runtime: Runtime, calls: Vec<Call>) -> Result<Vec<Result<Admission, Error>>, Error> {
    let claimed = Claiming::new(runtime, calls).send().await.map_err(Error::from_store)?;
    Ok(join_all(claimed.into_iter().map(admitted)).await)
}

/// (Not a closure: rustc 1.95 fails on an asynchronous one here where it compiles by increments.)
async fn admitted(told: Told) -> Result<Admission, Error> {
    match told {
        Told::Granted(lease) if lease.runtime().leases().are_given_up() => {
            lease.finish(Outcome::Released(Reason::Shutdown), Body::Ended).await; // here: nobody writes down what is dropped now
            Err(Error::new(ErrorKind::Draining))
        }
        Told::Granted(lease) => Ok(Admission::Own(Owner::Leased(lease))),
        Told::Found(found) => Ok(Admission::Found(found)),
    }
}

/// What stands in a call's way, in the store or in this process. What runs here in a transaction comes last: its session may
/// be gone, and another process may have answered.
pub(crate) async fn look(runtime: &Runtime, call: &Call, peek: Peek) -> Result<Option<Found>, Error> {
    if let Some(found) = runtime.cache().look(call) {
        return Ok(Some(found));
    }
    let asked = Instant::now();
    let found = runtime.ask_one(runtime.store().peek(&[peek])).await.map_err(Error::from_store)?;
    Ok(found.map(|found| found.aged(asked.elapsed())).or_else(|| runtime.transactions().look(call)))
}

/// What a call is told about what it found.
async fn tell<R>(runtime: &Runtime, call: &Call, found: Found) -> Answer<R> {
    let error = match found {
        Found::Replay(replay) => {
            if replay.fingerprint.algorithm() != call.fingerprint.algorithm() {
                call.watch.unknown_fingerprint();
            }
            runtime.cache().keep(call.record, &replay);
            return Answer::Replay(replay.response);
        }
        Found::Mismatch => call.error(ErrorKind::Mismatch),
        Found::InFlight { age } => {
            let retry_after = runtime.pace().retry_after(call.operation.op, age);
            call.error(ErrorKind::InProgress { retry_after }).with(|about| about.under_way = true)
        }
        // Written by a newer version of this program, and readable by it: worth coming back for.
        Found::Unknown => call.error(ErrorKind::InProgress { retry_after: Duration::from_secs(1) }),
        Found::InDoubt(reason) => {
            let given_up = is_given_up(runtime, call).await;
            if call.watch.is_of_a_call() {
                // A client may retry for hours. People are told once, by the end of the run or by the look for doubts.
                tracing::debug!(target: "idem::engine", op = call.operation.op, outcome = "in_doubt", ?reason, record = %call.record, "a request met a key whose outcome is unknown");
            }
            call.error(ErrorKind::InDoubt).with(|about| about.given_up = given_up)
        }
        Found::Expired => with_links(runtime, call, ErrorKind::Expired).await,
        Found::NotRetained { status } => {
            let error = with_links(runtime, call, ErrorKind::ResultUnavailable).await;
            error.with(|about| about.original_status = status)
        }
    };
    Answer::Refused(error)
}

/// The recovery hook has been asked for the last time, or is not asked: a record that could be run again when it began, by
/// an operation that says so no more, is nobody's before its window is over. A store that fails here costs only that.
async fn is_given_up(runtime: &Runtime, call: &Call) -> bool {
    if !runtime.config().recovers(call.operation.op) {
        return false;
    }
    let found = runtime.ask(runtime.store().find(call.record)).await;
    matches!(found, Ok(Some(record)) if record.tries >= TRIES || record.state == State::Resumable)
}

/// An answer that is gone still says what providers call the operation. A store that fails here costs only that.
pub(crate) async fn with_links(runtime: &Runtime, call: &Call, kind: ErrorKind) -> Error {
    let links = match runtime.ask(runtime.store().find(call.record)).await {
        Ok(record) => {
            record.filter(|record| *record.scope == *call.scope).map(|record| record.links).unwrap_or_default()
        }
        Err(_) => Vec::new(),
    };
    call.error(kind).with(|about| about.links = links)
}
