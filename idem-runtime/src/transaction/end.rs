//! What a transaction came to: where its COMMIT or the reply was lost, the record says.

use std::time::Duration;

use super::{
    Transaction,
    failed::{ended_by_itself, undone},
};
use crate::{
    error::{Error, Fate},
    state::State,
    store::{Committed, StoreError, StoreErrorKind},
};

/// How a transaction ended.
pub(super) enum End {
    /// The answer counts for this long; nothing is kept of what was undone.
    Stored(Duration),
    /// Somebody else's answer counts; the error is for a record that has none to give.
    Lost(Error),
    Refused(Error),
}

/// Whose answer stands in the record.
enum Whose {
    Ours,
    Theirs,
    Nobodys,
}

impl Transaction {
    /// What became of it. `answers`: by a COMMIT.
    pub(super) async fn came_to(&self, committed: Result<Committed, StoreError>, answers: bool) -> End {
        match committed {
            Ok(Committed::Stored { ttl_left }) => End::Stored(ttl_left),
            Ok(Committed::Lost) => End::Lost(ended_by_itself()),
            // The session may have been gone for long, as after a freeze, and somebody else has run since.
            Ok(Committed::Undone(error)) if error.kind == StoreErrorKind::Unavailable => match self.whose().await {
                Ok(Whose::Theirs) => End::Lost(undone(error)),
                Ok(Whose::Ours | Whose::Nobodys) | Err(_) => End::Refused(undone(error)),
            },
            Ok(Committed::Undone(error)) => End::Refused(undone(error)),
            Err(lost) if answers => self.look_again(lost).await,
            Err(_) => End::Stored(Duration::ZERO), // a ROLLBACK: the end of the session says the same
        }
    }

    /// The reply to a COMMIT was lost: whether the record is this attempt's says whether it happened. If it is not, a
    /// retry finds out for itself, even where that COMMIT is still under way.
    async fn look_again(&self, lost: StoreError) -> End {
        let (op, record) = (self.call.operation.op, self.call.record.short());
        tracing::warn!(target: "idem::engine", op, record, error = &lost as &dyn std::error::Error, "the reply to a COMMIT was lost; reading the record again");
        match self.whose().await {
            Ok(Whose::Ours) => End::Stored(Duration::ZERO),
            Ok(Whose::Theirs) => End::Lost(Error::from_store(lost)),
            Ok(Whose::Nobodys) => End::Refused(Error::from_store(lost)),
            Err(error) => {
                tracing::error!(target: "idem::engine", op, record, error = &error as &dyn std::error::Error, "whether a COMMIT counted cannot be read; the next retry decides");
                End::Refused(Error::from_store(error).with(|about| about.fate = Some(Fate::Unknown)))
            }
        }
    }

    async fn whose(&self) -> Result<Whose, StoreError> {
        let found = self.runtime.ask(self.runtime.store().find(self.call.record)).await?;
        let answered = found.filter(|record| matches!(record.state, State::Done | State::Rejected));
        Ok(match answered {
            Some(record) if record.attempt == self.attempt => Whose::Ours,
            Some(record) if record.fence >= self.owned.fence => Whose::Theirs,
            _ => Whose::Nobodys, // or of long ago, as we found it
        })
    }
}
