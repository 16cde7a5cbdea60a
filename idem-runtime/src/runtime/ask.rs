//! What a runtime asks its store has an end.

use tokio::time::timeout;

use super::Runtime;
use crate::store::{StoreError, StoreErrorKind};

impl Runtime {
    /// A store's answer, within `store_timeout`.
    pub(crate) async fn ask<T>(&self, verb: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        match timeout(self.config().store_timeout, verb).await {
            Ok(answer) => answer,
            Err(elapsed) => Err(StoreError::unavailable(elapsed)),
        }
    }

    /// As [`ask`](Self::ask), for a slice of one.
    pub(crate) async fn ask_one<T>(
        &self,
        verb: impl Future<Output = Result<Vec<T>, StoreError>>,
    ) -> Result<T, StoreError> {
        let mut answers = self.ask_all(1, verb).await?;
        answers.pop().ok_or_else(|| StoreError::new(StoreErrorKind::Corrupt, "the store answered nothing"))
    }

    /// As [`ask`](Self::ask), for a slice of so many.
    pub(crate) async fn ask_all<T>(
        &self,
        asked: usize,
        verb: impl Future<Output = Result<Vec<T>, StoreError>>,
    ) -> Result<Vec<T>, StoreError> {
        let answers = self.ask(verb).await?;
        if answers.len() != asked {
            return Err(StoreError::new(StoreErrorKind::Corrupt, "the store did not answer all that it was asked"));
        }
        Ok(answers)
    }
}
