//! Where the verbs work: a reader without the write lock, or the one connection that writes.

use futures_util::future::BoxFuture;
use sqlx::{Connection, SqliteConnection};

use super::{
    SqliteStore,
    error::failed,
    sql,
    verbs::{self, Looked},
};
use crate::store::{Attempt, Claimed, Peek, StoreError, row::Millis};

impl SqliteStore {
    /// Looks at each record without the write lock; `None` where a claim may take it.
    pub(super) async fn look(
        &self,
        asks: impl Iterator<Item = (Peek, Option<Attempt>)> + Send,
    ) -> Result<Vec<Option<Claimed>>, StoreError> {
        let mut reader = self.readers.acquire().await.map_err(failed)?;
        let mut found = Vec::with_capacity(asks.size_hint().0);
        for (peek, asker) in asks {
            found.push(match verbs::look(&mut reader, &peek, asker, None).await? {
                Looked::Free(_) => None,
                Looked::Taken(claimed) => Some(claimed),
            });
        }
        Ok(found)
    }

    /// Runs `work` in a transaction that holds the write lock from its start, at one instant of SQLite's clock.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection, Millis) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
    {
        self.with_writer(|connection| {
            Box::pin(async move {
                let mut transaction = connection.begin_with(sql::BEGIN).await.map_err(failed)?;
                let now = sqlx::query_scalar(sql::NOW).fetch_one(&mut *transaction).await.map_err(failed)?;
                let done = work(&mut transaction, Millis(now)).await?;
                transaction.commit().await.map_err(failed)?;
                Ok(done)
            })
        })
        .await
    }

    /// Runs `work` on the connection that writes, on a task of its own: a caller that goes away does not stop it half
    /// way. Its length is bounded by the time-outs for the connection and for the write lock.
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
