//! Where the verbs work: a reader without the write lock, or the one connection that writes.

use futures_util::future::BoxFuture;
use sqlx::SqliteConnection;

use super::{SqliteStore, error::failed, verbs};
use crate::store::{Attempt, Claimed, Peek, StoreError};

impl SqliteStore {
    /// Looks at each record without the write lock; `None` where a claim may take it.
    pub(super) async fn look(&self, asks: &[(Peek, Option<Attempt>)]) -> Result<Vec<Option<Claimed>>, StoreError> {
        let mut reader = self.readers.acquire().await.map_err(failed)?;
        let seen = verbs::look(&mut reader, asks.iter().map(|(peek, _)| peek.record)).await?;
        Ok(asks.iter().map(|(peek, asker)| seen.look(peek, *asker)).collect())
    }

    /// Runs `work` with `about` in a transaction that holds the write lock from its start. Others share it: see [`queue`](super::queue).
    pub(super) async fn write<A, T, F>(&self, about: A, work: F) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'c> Fn(&'c A, &'c mut SqliteConnection) -> BoxFuture<'c, Result<T, StoreError>> + Send + Sync + 'static,
    {
        let (place, told) = self.queue.ask(about, work);
        tokio::spawn(place.take(self.writer.clone()));
        told.await.map_err(StoreError::unavailable)? // a runtime has ended, this or that of whoever did it
    }

    /// Runs `work` on the connection that writes, on a task of its own, as [`write`](Self::write) does: a caller that goes
    /// away does not stop it half way. Its length is bounded by the time-outs for the connection and for the write lock.
    pub(super) async fn with_writer<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
    {
        let writer = self.writer.clone();
        on_its_own_task(async move {
            let mut connection = writer.acquire().await.map_err(failed)?;
            let result = work(&mut connection).await;
            if result.is_err() {
                // A full disk or an I/O error makes SQLite end a transaction by itself, of which the driver does not
                // learn: to be sure, the next verb gets a new connection.
                let _ = connection.close().await;
            }
            result
        })
        .await
    }
}

/// To its end, on a task of its own: what holds the write lock must go on also while its caller is alive and polled by nobody.
pub(super) async fn on_its_own_task<T: Send + 'static>(
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::spawn(work).await {
        Ok(result) => result,
        Err(error) => Err(StoreError::unavailable(error)), // it panicked, or the runtime shuts down
    }
}
