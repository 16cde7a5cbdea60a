//! What a body's end means for its record. Pure.

use std::time::Duration;

use crate::operation::ClientErrors;

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

#[cfg(test)]
mod tests {
    use super::*;

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
