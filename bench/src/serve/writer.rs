//! One writer of an SQLite file, with group commit: what waits while a transaction is on its way goes into the next one.

use futures_util::future::BoxFuture;
use sqlx::{Connection, SqliteConnection, SqlitePool, sqlite::SqliteConnectOptions};
use tokio::sync::{mpsc, oneshot};

/// So many jobs at most are one transaction, and so many wait.
const BATCH: usize = 256;

/// Works in the transaction; what it gives is called with whether that was committed.
type Job = Box<dyn for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Tell> + Send>;
type Tell = Box<dyn FnOnce(bool) + Send>;

#[derive(Clone)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
}

impl Writer {
    pub(super) async fn open(options: SqliteConnectOptions) -> sqlx::Result<Self> {
        let mut connection = SqliteConnection::connect_with(&options).await?;
        let (jobs, mut waiting) = mpsc::channel(BATCH);
        // Ends with the last `Writer`, or the process.
        tokio::spawn(async move {
            let mut batch = Vec::with_capacity(BATCH);
            while waiting.recv_many(&mut batch, BATCH).await > 0 {
                commit(&mut connection, &mut batch).await;
            }
        });
        Ok(Self { jobs })
    }

    /// Runs `work` in a transaction that others may share, and returns when that is durable. One that fails fails only itself:
    /// a statement that SQLite refuses has changed nothing.
    pub(super) async fn run<T, F>(&self, work: F) -> sqlx::Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, sqlx::Result<T>> + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            Box::pin(async move {
                let done = work(connection).await;
                let tell: Tell = Box::new(move |committed| {
                    let _ = tell.send(if committed { done } else { Err(sqlx::Error::WorkerCrashed) }); // it may be gone
                });
                tell
            })
        });
        self.jobs.send(job).await.map_err(|_| sqlx::Error::PoolClosed)?;
        told.await.map_err(|_| sqlx::Error::PoolClosed)?
    }
}

async fn commit(connection: &mut SqliteConnection, batch: &mut Vec<Job>) {
    let mut tells = Vec::with_capacity(batch.len());
    let committed = async {
        let mut transaction = connection.begin_with("begin immediate").await?;
        for job in batch.drain(..) {
            tells.push(job(&mut transaction).await);
        }
        transaction.commit().await
    };
    let committed = match committed.await {
        Ok(()) => true,
        Err(error) => {
            eprintln!("the writer failed: {error}");
            false
        }
    };
    batch.clear(); // of a transaction that did not begin: nobody answers them, so they fail
    tells.into_iter().for_each(|tell| tell(committed));
}

/// As idem opens its own: durable, and patient with another writer.
pub(super) fn options(file: &str) -> sqlx::Result<SqliteConnectOptions> {
    use sqlx::sqlite::{SqliteJournalMode, SqliteSynchronous};
    let options: SqliteConnectOptions = file.parse()?;
    Ok(options
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(std::time::Duration::from_secs(5)))
}

/// Readers beside the writer.
pub(super) async fn readers(file: &str) -> sqlx::Result<SqlitePool> {
    let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(4).test_before_acquire(false);
    pool.connect_with(options(file)?.read_only(true)).await
}
