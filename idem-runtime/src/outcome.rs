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
    /// What its steps have come to, where its effects are steps.
    pub(crate) steps: Option<Journaled>,
    pub(crate) body: Body,
}

/// How it is with a body when its end is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// It runs no more.
    Ended,
    /// It runs no more, and has said itself that surely nothing happened.
    SaysNothingHappened,
    /// It may still begin something.
    StillRuns,
}

/// The steps of an operation, of this run and those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts, each named where it is read")]
pub(crate) struct Journaled {
    /// One may have taken effect.
    pub(crate) begun: bool,
    /// One has, or a provider's id is recorded, which is evidence of an effect.
    pub(crate) done: bool,
    /// Another run could not go on.
    pub(crate) doubt: Option<Reason>,
    /// An earlier run has recorded one that this one did not come to.
    pub(crate) left_out: bool,
}

/// What a run may say of its end. Where the operation may be run again, a doubt is left to the next run; and a run that
/// continues an operation knows nothing of those before, so it can not say that nothing happened: `state::next` refuses
/// that.
pub(crate) fn allowed(outcome: Outcome, run: Run) -> Outcome {
    if let Some(steps) = run.steps {
        return allowed_after(steps, outcome, run);
    }
    match outcome {
        Outcome::InDoubt(reason) if run.reruns => Outcome::Resumable(reason),
        Outcome::Released(reason) if run.continues => Outcome::Resumable(reason),
        Outcome::Rejected(..) if run.continues => Outcome::Resumable(Reason::Status),
        outcome => outcome,
    }
}

/// Where all effects are steps, they say what may have happened.
fn allowed_after(steps: Journaled, outcome: Outcome, run: Run) -> Outcome {
    let untouched = !steps.begun && !run.continues && run.body != Body::StillRuns;
    let void = run.body == Body::SaysNothingHappened && !steps.done && !run.continues;
    let reason = outcome.reason().unwrap_or(Reason::Status);
    match outcome {
        // It was renamed or removed by a deploy: what took its place, if anything did, has happened beside it.
        Outcome::Done(_) if steps.left_out => Outcome::InDoubt(Reason::CodeChanged),
        Outcome::Done(answer) => Outcome::Done(answer),
        outcome @ (Outcome::Released(_) | Outcome::Rejected(..)) if untouched || void => outcome,
        _ if untouched => Outcome::Released(reason),
        _ => match steps.doubt {
            Some(doubt) => Outcome::InDoubt(doubt),
            None => Outcome::Resumable(reason),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clause_26_a_run_that_continues_leaves_to_the_next_what_it_does_not_complete() {
        let answer = StoredResponse { status: Some(402), headers: Bytes::new(), body: None };
        let first = Run { reruns: true, continues: false, steps: None, body: Body::Ended };
        let second = Run { continues: true, ..first };
        let says = |outcome: Outcome, run| allowed(outcome, run).state();
        let released = Outcome::Released(Reason::Status);
        let rejected = Outcome::Rejected(answer.clone(), Duration::from_secs(30));
        let doubt = Outcome::InDoubt(Reason::Panic);
        for outcome in [released.clone(), rejected.clone(), doubt.clone()] {
            assert_eq!(says(outcome.clone(), second), State::Resumable);
            assert_eq!(says(outcome.clone(), Run { reruns: false, ..first }), outcome.state(), "held as ever");
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

    const UNTOUCHED: Journaled = Journaled { begun: false, done: false, doubt: None, left_out: false };

    fn after(outcome: Outcome, steps: Journaled, run: impl Fn(Run) -> Run) -> (State, Option<Reason>) {
        let run = run(Run { reruns: true, continues: false, steps: Some(steps), body: Body::Ended });
        let outcome = allowed(outcome, run);
        (outcome.state(), outcome.reason())
    }

    #[test]
    fn clause_25_before_the_first_step_nothing_has_happened() {
        for outcome in [Outcome::InDoubt(Reason::Panic), Outcome::Released(Reason::Panic)] {
            let says = |run: fn(Run) -> Run| after(outcome.clone(), UNTOUCHED, run);
            assert_eq!(says(|run| run), (State::Released, Some(Reason::Panic)));
            assert_eq!(says(|run| Run { continues: true, ..run }).0, State::Resumable, "an earlier run may be there");
        }
        // A body that still runs may begin one after this was looked at.
        let still = after(Outcome::InDoubt(Reason::Shutdown), UNTOUCHED, |run| Run { body: Body::StillRuns, ..run });
        assert_eq!(still, (State::Resumable, Some(Reason::Shutdown)));
    }

    #[test]
    fn clause_25_after_a_step_an_end_that_is_not_final_is_continued() {
        let begun = Journaled { begun: true, ..UNTOUCHED };
        let done = Journaled { done: true, ..begun };
        let nothing = |run| Run { body: Body::SaysNothingHappened, ..run };
        for outcome in [Outcome::InDoubt(Reason::Status), Outcome::Released(Reason::Status)] {
            assert_eq!(after(outcome, begun, |run| run), (State::Resumable, Some(Reason::Status)));
        }
        let released = || Outcome::Released(Reason::Status);
        assert_eq!(after(released(), begun, nothing).0, State::Released, "the body knows");
        assert_eq!(after(released(), done, nothing).0, State::Resumable, "and so does the store");
        assert_eq!(after(released(), begun, |run| nothing(Run { continues: true, ..run })).0, State::Resumable);
    }

    #[test]
    fn clause_26_what_no_run_can_continue_is_in_doubt() {
        let answer = || StoredResponse { status: Some(201), headers: Bytes::new(), body: None };
        let unknown = Journaled { begun: true, doubt: Some(Reason::StepUnknown), ..UNTOUCHED };
        assert_eq!(
            after(Outcome::InDoubt(Reason::Status), unknown, |run| run),
            (State::InDoubt, Some(Reason::StepUnknown))
        );
        assert_eq!(after(Outcome::Done(answer()), unknown, |run| run).0, State::Done, "the body goes on without it");
        let left_out = Journaled { begun: true, left_out: true, ..UNTOUCHED };
        assert_eq!(after(Outcome::Done(answer()), left_out, |run| run), (State::InDoubt, Some(Reason::CodeChanged)));
    }
}
