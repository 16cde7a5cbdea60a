#![doc = include_str!("docs/jobs.md")]

use std::time::Duration;

use crate::error::{Error, ErrorKind, Fate};

/// What a queue does with a message whose call was answered by an [`Error`]: see the [table](self#what-the-queue-does).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a message that is neither acknowledged nor given back is delivered again whenever the queue thinks so"]
pub enum Redelivery {
    /// Acknowledge it: the operation is done, but its value is not to be had any more.
    Ack,
    /// Give it back, not to be delivered before `after` is over; never acknowledge it. Not a failure of the message: let it
    /// not count against the number of its tries.
    Retry {
        /// When it is worth it.
        after: Duration,
    },
    /// Put it where a person looks (a dead-letter queue): no delivery changes anything before that.
    Park,
}

/// When something is worth another try that says nothing itself.
const SOON: Duration = Duration::from_secs(1);
/// When a doubt that may settle itself is worth coming back for, as clients are told.
const RECOVERS_IN: Duration = Duration::from_secs(5);

impl Error {
    /// What the queue does with the message of the call that got this error.
    ///
    /// It is about errors of calls: for those of [`claim_many`](crate::Runtime::claim_many), do it with all messages of the
    /// batch.
    pub fn redelivery(&self) -> Redelivery {
        let about = self.about();
        match self.kind() {
            ErrorKind::InProgress { retry_after } | ErrorKind::Unavailable { retry_after } => {
                Redelivery::Retry { after: retry_after }
            }
            ErrorKind::Draining | ErrorKind::Released => Redelivery::Retry { after: SOON },
            ErrorKind::ResultUnavailable | ErrorKind::Expired => Redelivery::Ack,
            // Undone, to be run again, or committed for all we know: the next delivery is told.
            ErrorKind::InDoubt | ErrorKind::TimedOut | ErrorKind::Panicked | ErrorKind::Transaction
                if matches!(about.fate, Some(Fate::Undone | Fate::Unknown | Fate::RunAgain)) =>
            {
                Redelivery::Retry { after: SOON }
            }
            ErrorKind::InDoubt | ErrorKind::TimedOut | ErrorKind::Panicked if about.recovers => {
                Redelivery::Retry { after: RECOVERS_IN }
            }
            ErrorKind::InDoubt | ErrorKind::TimedOut | ErrorKind::Panicked | ErrorKind::InvalidLink => Redelivery::Park,
            // Another caller's key, a key that is none, or a fault of the program: nothing gets better by waiting.
            ErrorKind::MissingKey
            | ErrorKind::InvalidKey
            | ErrorKind::Mismatch
            | ErrorKind::UnknownOperation
            | ErrorKind::TooLarge
            | ErrorKind::Unreadable
            | ErrorKind::Unverified
            | ErrorKind::InvalidEvent
            | ErrorKind::OrderUnreadable
            | ErrorKind::ReplayForbidden
            | ErrorKind::InvalidBatch
            | ErrorKind::Conflict
            | ErrorKind::Transaction
            | ErrorKind::Step
            | ErrorKind::NotServed
            | ErrorKind::Store => Redelivery::Park,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: Duration = Duration::from_secs(3);

    fn plain(kind: ErrorKind) -> Redelivery {
        Error::new(kind).redelivery()
    }

    #[test]
    fn clause_44_only_what_is_done_is_acknowledged() {
        assert_eq!(plain(ErrorKind::ResultUnavailable), Redelivery::Ack);
        assert_eq!(plain(ErrorKind::Expired), Redelivery::Ack);
    }

    #[test]
    fn clause_44_what_may_come_right_by_itself_is_delivered_again_later() {
        for (kind, after) in [
            (ErrorKind::InProgress { retry_after: THREE }, THREE),
            (ErrorKind::Unavailable { retry_after: THREE }, THREE),
            (ErrorKind::Draining, SOON),
            (ErrorKind::Released, SOON),
        ] {
            assert_eq!(plain(kind), Redelivery::Retry { after }, "{kind:?}");
        }
    }

    #[test]
    fn clause_44_what_needs_a_person_is_parked() {
        for kind in [
            ErrorKind::InDoubt,
            ErrorKind::TimedOut,
            ErrorKind::Panicked,
            ErrorKind::InvalidLink,
            ErrorKind::MissingKey,
            ErrorKind::InvalidKey,
            ErrorKind::Mismatch,
            ErrorKind::UnknownOperation,
            ErrorKind::TooLarge,
            ErrorKind::Unreadable,
            ErrorKind::Step,
            ErrorKind::ReplayForbidden,
            ErrorKind::InvalidBatch,
            ErrorKind::Conflict,
            ErrorKind::Transaction,
            ErrorKind::NotServed,
            ErrorKind::Store,
        ] {
            assert_eq!(plain(kind), Redelivery::Park, "{kind:?}");
        }
    }

    #[test]
    fn clause_44_a_doubt_that_settles_itself_is_waited_for() {
        for kind in [ErrorKind::InDoubt, ErrorKind::TimedOut, ErrorKind::Panicked] {
            let recovers = Error::new(kind).with(|about| about.recovers = true);
            assert_eq!(recovers.redelivery(), Redelivery::Retry { after: RECOVERS_IN }, "{kind:?}");
            for fate in [Fate::Undone, Fate::Unknown, Fate::RunAgain] {
                let known = Error::new(kind).with(|about| about.fate = Some(fate));
                assert_eq!(known.redelivery(), Redelivery::Retry { after: SOON }, "{kind:?} {fate:?}");
            }
        }
        assert_eq!(Error::new(ErrorKind::Transaction).undone().redelivery(), Redelivery::Retry { after: SOON });
        let link = Error::new(ErrorKind::InvalidLink).with(|about| about.recovers = true);
        assert_eq!(link.redelivery(), Redelivery::Park, "it would be the same link again");
    }
}
