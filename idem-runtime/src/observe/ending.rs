//! What a call came to: each has exactly one [`Ending`].

use crate::{error::ErrorKind, lease::Settled, state::Reason, store::Outcome};

/// The label `outcome` of `idem_requests_total`, and the field `outcome` of a call's span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Executed,
    RejectedKept,
    Released,
    Held,
    Resumable,
    TimedOut,
    Panicked,
    Unrecorded,
    Fenced,
    TransactionFailed,
    Replayed,
    Stale,
    Accepted,
    InProgress,
    InDoubt,
    Mismatch,
    ResultExpired,
    ResultUnavailable,
    ReplayForbidden,
    MissingKey,
    InvalidKey,
    Rejected,
    StoreUnavailable,
    StoreUnreadable,
    Draining,
    NotServed,
    Unprotected,
    Bypassed,
    Left,
}

impl Ending {
    /// In the order of their declaration: an ending's place here is its number.
    pub(crate) const ALL: [Self; 29] = [
        Self::Executed,
        Self::RejectedKept,
        Self::Released,
        Self::Held,
        Self::Resumable,
        Self::TimedOut,
        Self::Panicked,
        Self::Unrecorded,
        Self::Fenced,
        Self::TransactionFailed,
        Self::Replayed,
        Self::Stale,
        Self::Accepted,
        Self::InProgress,
        Self::InDoubt,
        Self::Mismatch,
        Self::ResultExpired,
        Self::ResultUnavailable,
        Self::ReplayForbidden,
        Self::MissingKey,
        Self::InvalidKey,
        Self::Rejected,
        Self::StoreUnavailable,
        Self::StoreUnreadable,
        Self::Draining,
        Self::NotServed,
        Self::Unprotected,
        Self::Bypassed,
        Self::Left,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::RejectedKept => "rejected_kept",
            Self::Released => "released",
            Self::Held => "held",
            Self::Resumable => "resumable",
            Self::TimedOut => "timed_out",
            Self::Panicked => "panicked",
            Self::Unrecorded => "unrecorded",
            Self::Fenced => "fenced",
            Self::TransactionFailed => "transaction_failed",
            Self::Replayed => "replayed",
            Self::Stale => "stale",
            Self::Accepted => "accepted",
            Self::InProgress => "in_progress",
            Self::InDoubt => "in_doubt",
            Self::Mismatch => "mismatch",
            Self::ResultExpired => "result_expired",
            Self::ResultUnavailable => "result_unavailable",
            Self::ReplayForbidden => "replay_forbidden",
            Self::MissingKey => "missing_key",
            Self::InvalidKey => "invalid_key",
            Self::Rejected => "rejected",
            Self::StoreUnavailable => "store_unavailable",
            Self::StoreUnreadable => "store_unreadable",
            Self::Draining => "draining",
            Self::NotServed => "not_served",
            Self::Unprotected => "unprotected",
            Self::Bypassed => "bypassed",
            Self::Left => "left",
        }
    }

    /// Of a call whose body ran.
    pub(crate) fn of_run(outcome: &Outcome, settled: Settled) -> Self {
        match (settled, outcome) {
            (Settled::Lost, _) => Self::Fenced,
            (Settled::Unrecorded, _) => Self::Unrecorded,
            (Settled::Withheld, _) => Self::Held,
            (Settled::Stored, Outcome::Done(_)) => Self::Executed,
            (Settled::Stored, Outcome::Rejected(..)) => Self::RejectedKept,
            (Settled::Stored, Outcome::Released(reason) | Outcome::InDoubt(reason) | Outcome::Resumable(reason)) => {
                Self::without_answer(outcome, *reason)
            }
        }
    }

    /// Of a call whose lease was dropped, with what that leaves behind. `None`: nothing ran.
    pub(crate) fn of_drop(left: &Outcome) -> Option<Self> {
        match left {
            Outcome::InDoubt(reason) | Outcome::Resumable(reason) | Outcome::Released(reason) => {
                Some(Self::without_answer(left, *reason))
            }
            Outcome::Done(_) | Outcome::Rejected(..) => None,
        }
    }

    /// Of a transaction that was dropped while its body ran.
    pub(crate) fn of_undone(reason: Reason) -> Self {
        Self::without_answer(&Outcome::Released(reason), reason)
    }

    fn without_answer(outcome: &Outcome, reason: Reason) -> Self {
        match (outcome, reason) {
            (Outcome::Resumable(_), _) => Self::Resumable, // whatever broke it off: its retry settles it
            (_, Reason::Panic) => Self::Panicked,
            (_, Reason::Timeout) => Self::TimedOut,
            (Outcome::Released(_), Reason::Shutdown) => Self::Draining, // granted too late to be run
            (Outcome::Released(_), _) => Self::Released,
            _ => Self::Held,
        }
    }

    /// Of a call that was refused.
    pub(crate) fn of_refusal(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::MissingKey => Self::MissingKey,
            ErrorKind::InvalidKey => Self::InvalidKey,
            ErrorKind::Mismatch => Self::Mismatch,
            ErrorKind::InProgress { .. } => Self::InProgress,
            ErrorKind::InDoubt => Self::InDoubt,
            ErrorKind::Expired => Self::ResultExpired,
            ErrorKind::ResultUnavailable => Self::ResultUnavailable,
            ErrorKind::Unavailable { .. } => Self::StoreUnavailable,
            ErrorKind::Draining => Self::Draining,
            ErrorKind::TimedOut => Self::TimedOut,
            ErrorKind::Panicked => Self::Panicked,
            ErrorKind::TooLarge
            | ErrorKind::Unreadable
            | ErrorKind::Unverified
            | ErrorKind::InvalidEvent
            | ErrorKind::OrderUnreadable => Self::Rejected,
            ErrorKind::ReplayForbidden => Self::ReplayForbidden,
            ErrorKind::NotServed => Self::NotServed,
            ErrorKind::Transaction => Self::TransactionFailed,
            ErrorKind::Step => Self::Resumable,
            ErrorKind::Store => Self::StoreUnreadable,
            // A body's, a consumer's, an operator's, and those of who fetches a result: no refusals of a call.
            ErrorKind::InvalidLink
            | ErrorKind::InvalidBatch
            | ErrorKind::Conflict
            | ErrorKind::Released
            | ErrorKind::UnknownOperation => Self::Held,
        }
    }

    /// The call had a key, so it could have been answered from storage.
    pub(crate) fn had_a_key(self) -> bool {
        let without =
            [Self::MissingKey, Self::InvalidKey, Self::Rejected, Self::NotServed, Self::Unprotected, Self::Bypassed];
        !without.contains(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Alarms count what is held, panicked or timed out: nobody need do anything about what its retry settles.
    #[test]
    fn clause_26_what_is_run_again_is_resumable_whatever_broke_it_off() {
        let stored = |outcome: &Outcome| Ending::of_run(outcome, Settled::Stored);
        for reason in [Reason::Status, Reason::Panic, Reason::Timeout, Reason::Shutdown] {
            assert_eq!(stored(&Outcome::Resumable(reason)), Ending::Resumable);
            assert_eq!(Ending::of_drop(&Outcome::Resumable(reason)), Some(Ending::Resumable));
        }
        assert_eq!(stored(&Outcome::InDoubt(Reason::Panic)), Ending::Panicked);
        assert_eq!(stored(&Outcome::InDoubt(Reason::Timeout)), Ending::TimedOut);
        assert_eq!(stored(&Outcome::Released(Reason::Panic)), Ending::Panicked, "a transaction's");
    }
}
