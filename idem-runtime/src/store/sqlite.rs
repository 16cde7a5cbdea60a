//! Records in an SQLite file.

mod connect;
mod error;
mod filesystem;
mod list;
mod purge;
mod queue;
mod record;
mod recover;
mod repeated;
mod resume;
mod schema;
mod sql;
mod step;
mod transaction;
mod verbs;
mod work;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};

use self::{error::failed, queue::Queue, work::on_its_own_task};
use super::{
    Begin, Begun, Claim, Claimed, Commit, Committed, Due, EndStep, Filter, Finish, Finished, Found, Link,
    OpenTransaction, Page, Peek, Purge, Purged, PutOff, Record, Recover, Recovering, Renewal, Renewed, Resolve, Resume,
    Resuming, StartStep, Started, Step, StepBegun, StepEnded, Store, StoreError, Strip, Stripped, Survey, Transactions,
};
use crate::key::RecordId;

/// Keeps records in one SQLite file, which several processes of one machine may share.
///
/// | | |
/// |---|---|
/// | durability | WAL with `synchronous=FULL`: what a verb reported survives a crash of process and machine |
/// | isolation | one writer at a time over all processes (`BEGIN IMMEDIATE`); replays and refusals take no lock |
/// | clock | SQLite's, which is the machine's wall clock, in milliseconds; never this process's own |
/// | connections | one that writes, four that read; clones share them |
/// | transactions | a `Tx<Sqlite>` body, and a step that is a transaction, holds the one write lock of the file: all other claims, renewals and completions, in every process, wait for its end (up to 5 s) |
/// | tables | their names begin with `idem_`; see [`migrate`](Self::migrate) |
///
/// **Cancel safety.** A verb that writes runs on its own task and to its end, even if its future is dropped: no half
/// transaction is ever left behind. It waits for its turn at the writing connection at most 5 s, and for another process's write
/// lock at most the busy time-out (5 s by default), then fails as [`Unavailable`](super::StoreErrorKind::Unavailable).
/// What waits together is one transaction; where one of these fails, the others are done again without it.
#[derive(Clone)]
pub struct SqliteStore {
    file: Arc<Path>,
    writer: SqlitePool,
    readers: SqlitePool,
    queue: Arc<Queue>,
}

impl SqliteStore {
    /// Opens the file that a URL such as `sqlite://payments.db` names, and creates it if it is missing, readable by
    /// this user only. It is set to WAL mode with `synchronous=FULL` and `foreign_keys=on`, and waits up to 5 s for
    /// another process's write lock. Call [`migrate`](Self::migrate) next.
    ///
    /// # Errors
    /// [`Setup`](super::StoreErrorKind::Setup) for what would break a promise: an in-memory or temporary database, a
    /// file on a network file system, a read-only, shared-cache or immutable one. The source says what to do.
    /// [`Unavailable`](super::StoreErrorKind::Unavailable) if the file cannot be opened.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let options = connect::options(url)?;
        connect::refuse(&options)?;
        connect::create(options.get_filename())?;
        Self::with_options(options).await
    }

    /// Opens the file with options of your own. Nothing in them is changed for the connection that writes; the others
    /// are opened read-only. The file is created only if they say so, and then with the mode that your umask gives.
    ///
    /// # Errors
    /// As [`connect`](Self::connect). Also [`Setup`](super::StoreErrorKind::Setup) if `journal_mode` is not WAL,
    /// `synchronous` is below FULL, `foreign_keys` is off or `locking_mode` is exclusive.
    pub async fn with_options(options: SqliteConnectOptions) -> Result<Self, StoreError> {
        connect::refuse(&options)?;
        let file = PathBuf::from(options.get_filename()).into();
        let (writer, readers) = connect::open(options).await?;
        Ok(Self { file, writer, readers, queue: Arc::default() })
    }

    /// Creates the tables or brings them up to date. Does nothing where there is nothing to do, and may be called by
    /// many processes at once. It keeps its own note of what ran, so it does not meet your own migrations.
    ///
    /// # Errors
    /// [`Setup`](super::StoreErrorKind::Setup) if the tables are those of a newer version. Nothing is changed if it
    /// fails.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        self.write((), |(), tx| Box::pin(schema::migrate(tx))).await
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("file", &self.file).finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl Store for SqliteStore {
    async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>, StoreError> {
        let asks: Vec<_> = claims.iter().map(|claim| (claim.peek(), Some(claim.attempt))).collect();
        let found = self.look(&asks).await?;
        let free: Vec<Claim> =
            claims.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(claim, _)| claim.clone()).collect();
        if free.is_empty() {
            return Ok(found.into_iter().flatten().collect());
        }
        // What looked free is decided again, under the lock.
        let claimed = self.write(free, |free, tx| Box::pin(verbs::claim(tx, free, false))).await?;
        let mut claimed = claimed.into_iter();
        Ok(found.into_iter().filter_map(|found| found.or_else(|| claimed.next())).collect())
    }

    async fn peek(&self, peeks: &[Peek]) -> Result<Vec<Option<Found>>, StoreError> {
        let asks: Vec<_> = peeks.iter().map(|peek| (*peek, None)).collect();
        Ok(self.look(&asks).await?.into_iter().map(|claimed| claimed.and_then(Claimed::found)).collect())
    }

    async fn finish(&self, finishes: &[Finish]) -> Result<Vec<Finished>, StoreError> {
        self.write(finishes.to_vec(), |finishes, tx| Box::pin(verbs::finish(tx, finishes))).await
    }

    async fn renew(&self, renewals: &[Renewal], lease: Duration) -> Result<Vec<Renewed>, StoreError> {
        self.write((renewals.to_vec(), lease), |(renewals, lease), tx| Box::pin(verbs::renew(tx, renewals, *lease)))
            .await
    }

    async fn link(&self, links: &[Link]) -> Result<(), StoreError> {
        self.write(links.to_vec(), |links, tx| Box::pin(verbs::link(tx, links))).await
    }

    async fn find(&self, record: RecordId) -> Result<Option<Record>, StoreError> {
        let mut reader = self.readers.acquire().await.map_err(failed)?;
        let Some(found) = verbs::row(&mut reader, record).await? else { return Ok(None) };
        list::shown(&mut reader, record, found).await.map(Some)
    }

    async fn list(&self, filter: &Filter, page: Page) -> Result<Vec<Record>, StoreError> {
        let mut reader = self.readers.acquire().await.map_err(failed)?;
        list::list(&mut reader, filter, page).await
    }

    async fn linked(&self, provider: &str, id: &str) -> Result<Vec<Record>, StoreError> {
        let mut reader = self.readers.acquire().await.map_err(failed)?;
        list::linked(&mut reader, provider, id).await
    }

    async fn resolve(&self, resolve: &Resolve) -> Result<bool, StoreError> {
        self.write(resolve.clone(), |resolve, tx| Box::pin(verbs::resolve(tx, resolve))).await
    }

    async fn recover(&self, recover: &Recover) -> Result<Vec<Recovering>, StoreError> {
        let due = {
            let mut reader = self.readers.acquire().await.map_err(failed)?;
            recover::due(&mut reader, recover).await?
        };
        if due.is_empty() {
            return Ok(Vec::new());
        }
        self.write(recover.clone(), |recover, tx| Box::pin(recover::recover(tx, recover))).await
    }

    async fn put_off(&self, put_off: &PutOff) -> Result<bool, StoreError> {
        self.write(*put_off, |put_off, tx| Box::pin(recover::put_off(tx, put_off))).await
    }

    async fn interrupted(&self, resume: &Resume) -> Result<Vec<Resuming>, StoreError> {
        let due = {
            let mut reader = self.readers.acquire().await.map_err(failed)?;
            resume::due(&mut reader, resume).await?
        };
        if due.is_empty() {
            return Ok(Vec::new());
        }
        self.write(resume.clone(), |resume, tx| Box::pin(resume::interrupted(tx, resume))).await
    }

    async fn survey(&self) -> Result<Survey, StoreError> {
        let mut reader = self.readers.acquire().await.map_err(failed)?;
        Ok(Survey { doubts: verbs::doubts(&mut reader).await?, behind: false })
    }

    async fn due(&self) -> Result<Due, StoreError> {
        let mut reader = self.readers.acquire().await.map_err(failed)?;
        purge::due(&mut reader).await
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        self.write(*purge, |purge, tx| Box::pin(purge::purge(tx, purge))).await
    }

    async fn strip(&self, strip: &Strip) -> Result<Stripped, StoreError> {
        self.write(*strip, |strip, tx| Box::pin(purge::strip(tx, strip))).await
    }

    fn transactions(&self) -> Option<Transactions> {
        Some(Transactions { database: "sqlite", exclusive: true })
    }

    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        // As for a claim: what is surely not to be taken does not wait for the writer, which a body may hold.
        if let Some(claim) = &begin.claim {
            let looked = self.look(&[(claim.peek(), Some(claim.attempt))]).await?.pop().flatten();
            if let Some(found) = looked.and_then(Claimed::found) {
                return Ok(Begun::Found(found));
            }
        }
        // Waited for here: whoever is not waited for any more leaves the queue.
        let writer = self.writer.acquire().await.map_err(failed)?;
        on_its_own_task(transaction::begin(writer, begin.clone())).await
    }

    async fn commit(&self, transaction: OpenTransaction, commit: &Commit) -> Result<Committed, StoreError> {
        on_its_own_task(transaction::commit(transaction, commit.clone())).await
    }

    fn keeps_steps(&self) -> bool {
        true
    }

    async fn start_steps(&self, starts: &[StartStep]) -> Result<Vec<Started>, StoreError> {
        self.write(starts.to_vec(), |starts, tx| Box::pin(step::start(tx, starts))).await
    }

    async fn end_steps(&self, ends: &[EndStep]) -> Result<Vec<StepEnded>, StoreError> {
        self.write(ends.to_vec(), |ends, tx| Box::pin(step::end(tx, ends))).await
    }

    async fn steps(&self, record: RecordId) -> Result<Vec<Step>, StoreError> {
        let mut reader = self.readers.acquire().await.map_err(failed)?;
        step::steps(&mut reader, record).await
    }

    async fn begin_step(&self, start: &StartStep, _: Duration) -> Result<StepBegun, StoreError> {
        let writer = self.writer.acquire().await.map_err(failed)?; // waited for here, as by `begin`
        on_its_own_task(transaction::begin_step(writer, start.clone())).await
    }

    async fn commit_step(&self, transaction: OpenTransaction, end: &EndStep) -> Result<Committed, StoreError> {
        on_its_own_task(transaction::commit_step(transaction, end.clone())).await
    }

    async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.with_writer(|connection| Box::pin(schema::check(connection))).await
    }
}

#[cfg(test)]
mod tests;
