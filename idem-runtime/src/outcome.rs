//! What a body's end means for its record. Pure.

use std::time::Duration;

#[cfg(test)]
use bytes::Bytes;

use crate::{operation::ClientErrors, state::Reason, store::Outcome};
#[cfg(test)]
use crate::{state::State, store::StoredResponse};

/// What the body itself says, where its status cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Declared {
    /// It happened; this answer is final, whatever its status.
    Final,
    /// Nothing happened, whatever the status.
    NotApplied,
}

/// What becomes of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Done,
    Rejected(Duration),
    Released,
    InDoubt,
}

/// Client errors that speak of the moment, not of the payload: an answer to keep would be wrong a second later.
const NEVER_STORED: [u16; 6] = [401, 403, 408, 409, 425, 429];

/// Of a handler's response: what the body says, before the operation's policy, before the status.
pub(crate) fn classify(status: u16, declared: Option<Declared>, client_errors: ClientErrors) -> Class {
    match (declared, status) {
        (Some(Declared::Final), _) => Class::Done,
        (Some(Declared::NotApplied), _) => Class::Released,
        (None, 400..=499) if NEVER_STORED.contains(&status) => Class::Released,
        (None, 400..=499) => match client_errors {
            ClientErrors::Release => Class::Released,
            ClientErrors::Keep(window) => Class::Rejected(window),
            ClientErrors::Store => Class::Done,
        },
        (None, 500..) => Class::InDoubt,
        (None, _) => Class::Done,
    }
}

/// Of a plain function's `Result`: an error says nothing about what had happened before it.
pub(crate) fn classify_result(is_ok: bool, declared: Option<Declared>) -> Class {
    match (declared, is_ok) {
        (Some(Declared::Final), _) | (None, true) => Class::Done,
        (Some(Declared::NotApplied), _) => Class::Released,
        (None, false) => Class::InDoubt,
    }
}

/// What a run is, for what may be said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Its operation may be run again.
    pub(crate) reruns: bool,
    /// An earlier run of the same operation came before.
    pub(crate) continues: bool,
}

/// What a run may say of its end. Where the operation may be run again, a doubt is left to the next run; and a run that
/// continues an operation knows nothing of those before, so it can not say that nothing happened: `state::next` refuses
/// that.
pub(crate) fn allowed(outcome: Outcome, run: Run) -> Outcome {
    match outcome {
        Outcome::InDoubt(reason) if run.reruns => Outcome::Resumable(reason),
        Outcome::Released(reason) if run.continues => Outcome::Resumable(reason),
        Outcome::Rejected(..) if run.continues => Outcome::Resumable(Reason::Status),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clause_26_a_run_that_continues_leaves_to_the_next_what_it_does_not_complete() {
        let answer = StoredResponse { status: Some(402), headers: Bytes::new(), body: None };
        let first = Run { reruns: true, continues: false };
        let second = Run { reruns: true, continues: true };
        let says = |outcome: Outcome, run| allowed(outcome, run).state();
        let released = Outcome::Released(Reason::Status);
        let rejected = Outcome::Rejected(answer.clone(), Duration::from_secs(30));
        let doubt = Outcome::InDoubt(Reason::Panic);
        for outcome in [released.clone(), rejected.clone(), doubt.clone()] {
            assert_eq!(says(outcome.clone(), second), State::Resumable);
            assert_eq!(says(outcome.clone(), Run { reruns: false, continues: false }), outcome.state(), "held as ever");
        }
        assert_eq!(says(released, first), State::Released);
        assert_eq!(says(rejected, first), State::Rejected);
        assert_eq!(says(doubt, first), State::Resumable);
        assert_eq!(says(Outcome::Done(answer), second), State::Done);
    }

    const KEEP: ClientErrors = ClientErrors::Keep(Duration::from_secs(30));

    #[test]
    fn clause_16_explicit_before_policy_before_status() {
        for status in [200, 201, 303, 402, 422, 500, 503] {
            for policy in [ClientErrors::Release, KEEP, ClientErrors::Store] {
                assert_eq!(classify(status, Some(Declared::Final), policy), Class::Done);
                assert_eq!(classify(status, Some(Declared::NotApplied), policy), Class::Released);
            }
        }
        for status in [101, 200, 202, 302, 304] {
            assert_eq!(classify(status, None, ClientErrors::Release), Class::Done);
        }
        for status in [500, 502, 503, 599, 600, 999] {
            assert_eq!(classify(status, None, ClientErrors::Store), Class::InDoubt, "{status}");
        }
    }

    #[test]
    fn clause_13_client_errors_follow_the_policy() {
        for status in [400, 402, 404, 410, 422] {
            assert_eq!(classify(status, None, ClientErrors::Release), Class::Released);
            assert_eq!(classify(status, None, KEEP), Class::Rejected(Duration::from_secs(30)));
            assert_eq!(classify(status, None, ClientErrors::Store), Class::Done);
        }
    }

    #[test]
    fn scenario_31_what_speaks_of_the_moment_is_never_stored() {
        for status in [401, 403, 408, 409, 425, 429] {
            for policy in [KEEP, ClientErrors::Store] {
                assert_eq!(classify(status, None, policy), Class::Released, "{status}");
            }
        }
    }

    #[test]
    fn clause_16a_an_error_holds_the_key() {
        assert_eq!(classify_result(true, None), Class::Done);
        assert_eq!(classify_result(false, None), Class::InDoubt);
        assert_eq!(classify_result(false, Some(Declared::NotApplied)), Class::Released);
        assert_eq!(classify_result(false, Some(Declared::Final)), Class::Done);
    }
}
