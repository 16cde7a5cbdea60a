//! The verbs that have a lane.

use futures_util::future::BoxFuture;

use crate::{
    fingerprint::Fingerprint,
    key::RecordId,
    store::{
        Attempt, Claim, Claimed, EndStep, Finish, Finished, Found, Peek, StartStep, Started, StepEnded, Store,
        StoreError,
    },
};

/// A verb of the store that takes a slice.
pub(super) trait Verb: Send + Sync + 'static {
    type Item: Clone + Send + Sync + 'static;
    type Answer: Send + 'static;

    /// No slice has two items of one record.
    fn record(item: &Self::Item) -> RecordId;

    /// What an item carries beyond a small row.
    fn bytes(_: &Self::Item) -> usize {
        0
    }

    fn send<'a>(store: &'a dyn Store, items: &'a [Self::Item]) -> BoxFuture<'a, Result<Vec<Self::Answer>, StoreError>>;

    /// Whose answer must be its own, if it was sent before and went without one.
    fn attempt(_: &Self::Item) -> Option<Attempt> {
        None
    }

    /// Whether what the first one of a record is told says what the second one is to be told.
    fn says(_first: &Self::Item, _second: &Self::Item) -> bool {
        false
    }

    /// What the second one is told; `None` never comes where [`says`](Self::says) is never true.
    fn echo(_first: &Self::Item, _answer: &Self::Answer, _second: &Self::Item) -> Option<Self::Answer> {
        None
    }
}

pub(super) struct Claims;

impl Verb for Claims {
    type Item = Claim;
    type Answer = Claimed;

    fn record(claim: &Claim) -> RecordId {
        claim.record
    }

    fn bytes(claim: &Claim) -> usize {
        claim.input.as_ref().map_or(0, bytes::Bytes::len)
    }

    fn send<'a>(store: &'a dyn Store, claims: &'a [Claim]) -> BoxFuture<'a, Result<Vec<Claimed>, StoreError>> {
        store.claim(claims)
    }

    fn attempt(claim: &Claim) -> Option<Attempt> {
        Some(claim.attempt)
    }

    /// By `state::claim`, two claims of one record, payload and promise to run again are told the same at one instant, but
    /// for two that ask whose it is: an attempt that has the record already is told so again. That can only be one that was
    /// sent before, and those answer for themselves (`Unsure`). With another payload it is a mismatch for one of the two.
    fn says(first: &Claim, second: &Claim) -> bool {
        same(&first.fingerprint, &second.fingerprint) && first.rerun.is_zero() == second.rerun.is_zero()
    }

    fn echo(first: &Claim, answer: &Claimed, second: &Claim) -> Option<Claimed> {
        Some(match answer {
            Claimed::Owner(_) if first.attempt != second.attempt => {
                Claimed::Found(Found::InFlight { age: std::time::Duration::ZERO })
            }
            told => told.clone(),
        })
    }
}

pub(super) struct Peeks;

impl Verb for Peeks {
    type Item = Peek;
    type Answer = Option<Found>;

    fn record(peek: &Peek) -> RecordId {
        peek.record
    }

    fn send<'a>(store: &'a dyn Store, peeks: &'a [Peek]) -> BoxFuture<'a, Result<Vec<Option<Found>>, StoreError>> {
        store.peek(peeks)
    }

    fn says(first: &Peek, second: &Peek) -> bool {
        same(&first.fingerprint, &second.fingerprint) && first.rerun == second.rerun
    }

    fn echo(_: &Peek, answer: &Option<Found>, _: &Peek) -> Option<Option<Found>> {
        Some(answer.clone())
    }
}

/// Equal, which is more than that one matches the other.
fn same(one: &Fingerprint, other: &Fingerprint) -> bool {
    (one.algorithm(), one.digest()) == (other.algorithm(), other.digest())
}

pub(super) struct Finishes;

impl Verb for Finishes {
    type Item = Finish;
    type Answer = Finished;

    fn record(finish: &Finish) -> RecordId {
        finish.record
    }

    fn bytes(finish: &Finish) -> usize {
        let body = |response: &crate::StoredResponse| response.body.as_ref().map_or(0, bytes::Bytes::len);
        finish.outcome.response().map_or(0, |response| response.headers.len() + body(response))
    }

    fn send<'a>(store: &'a dyn Store, finishes: &'a [Finish]) -> BoxFuture<'a, Result<Vec<Finished>, StoreError>> {
        store.finish(finishes)
    }
}

pub(super) struct StartSteps;

impl Verb for StartSteps {
    type Item = StartStep;
    type Answer = Started;

    fn record(start: &StartStep) -> RecordId {
        start.record
    }

    fn send<'a>(store: &'a dyn Store, starts: &'a [StartStep]) -> BoxFuture<'a, Result<Vec<Started>, StoreError>> {
        store.start_steps(starts)
    }
}

pub(super) struct EndSteps;

impl Verb for EndSteps {
    type Item = EndStep;
    type Answer = StepEnded;

    fn record(end: &EndStep) -> RecordId {
        end.record
    }

    fn bytes(end: &EndStep) -> usize {
        end.result.len()
    }

    fn send<'a>(store: &'a dyn Store, ends: &'a [EndStep]) -> BoxFuture<'a, Result<Vec<StepEnded>, StoreError>> {
        store.end_steps(ends)
    }
}
