//! Records in a Postgres database.

mod argument;
mod claim;
mod connect;
mod error;
mod finish;
mod list;
mod order;
mod purge;
mod record;
mod recover;
mod resolve;
mod resume;
mod schema;
mod sql;
mod stack;
mod step;
mod survey;
mod transaction;
mod verbs;

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use sqlx::{PgPool, postgres::PgConnectOptions};

use self::{
    connect::{Connections, Protocol, Work},
    error::setup,
    sql::Statements,
    verbs::Verbs,
};
use super::{
    Begin, Begun, Claim, Claimed, Commit, Committed, Due, EndStep, Filter, Finish, Finished, Found, Link,
    OpenTransaction, Page, Peek, Purge, Purged, PutOff, Record, Recover, Recovering, Renewal, Renewed, Resolve, Resume,
    Resuming, StartStep, Started, Step, StepBegun, StepEnded, Store, StoreError, Strip, Stripped, Survey, Transactions,
};
use crate::key::RecordId;

/// Keeps records in a Postgres database (14 or newer), which any number of processes and machines may share.
///
/// | | |
/// |---|---|
/// | durability | that of a commit: what a verb reported survives a crash, if `fsync` is on and `synchronous_commit` is not off ([`check`](Store::check) looks) |
/// | isolation | READ COMMITTED; what is there is looked at and taken in one statement; replays and refusals write nothing |
/// | clock | the server's, in milliseconds; never this process's own |
/// | connections | 10 of its own by default, opened when first needed (five will do where flushes are quick), and one more to purge; clones share them |
/// | cost | one statement and one round trip per verb, whatever the length of the slice (two for the look for doubts, for a release, for a claim that takes over what is there, and for a completion that finds its run ended or taken over) |
/// | tables | in a schema of their own, `idem` by default; see [`migrate`](Self::migrate) |
///
/// It takes connections from your pool for one thing only: the transactions of bodies with a `Tx<Postgres>`, and of steps. All else goes
/// over its own, so that bodies never keep a completion waiting, however many run. What you do to that pool's sessions, such
/// as making them read-only, is looked at by [`check_transactions`](Store::check_transactions). Whether they say how long a statement may
/// take (`statement_timeout`) is looked at with the first transaction, so let them agree; where they do not say, it is the body's time.
///
/// ```no_run
/// # async fn start(pool: sqlx::PgPool) -> Result<(), idem_runtime::store::StoreError> {
/// let store = idem_runtime::PostgresStore::new(&pool);
/// store.migrate().await?;
/// # Ok(())
/// # }
/// ```
///
/// **Cancel safety.** Each statement of a verb is one that the server runs to its end or not at all, as a transaction of its
/// own. A dropped future leaves no transaction open; whether the statement took effect is then not known. A verb waits at
/// most 5 s for a connection, and for its statement as long as the [time-out](Self::with_statement_timeout) says and 5 s
/// more if the server falls silent, then fails as [`Unavailable`](super::StoreErrorKind::Unavailable). After a restart of
/// the server it connects again by itself; one verb may fail first.
#[derive(Clone)]
pub struct PostgresStore {
    /// The user's, for bodies that run in a transaction.
    pool: PgPool,
    options: Arc<PgConnectOptions>,
    schema: Arc<str>,
    connections: u32,
    timeout: Duration,
    protocol: Protocol,
    verbs: Arc<OnceLock<Verbs>>,
}

impl PostgresStore {
    /// A store in the database that `pool` connects to, with connections of its own made by the same options. Opens
    /// nothing yet.
    #[must_use]
    pub fn new(pool: &PgPool) -> Self {
        Self {
            pool: pool.clone(),
            options: pool.connect_options(),
            schema: "idem".into(),
            connections: 10, // with 4, statements waited for a connection where a flush takes milliseconds, and carried little
            timeout: Duration::from_secs(5),
            protocol: Protocol::Prepared,
            verbs: Arc::default(),
        }
    }

    /// How many connections it opens at most, beside the one for purges; at least 1. Clones made before keep theirs.
    #[must_use]
    pub fn with_connections(self, connections: u32) -> Self {
        Self { connections: connections.max(1), verbs: Arc::default(), ..self }
    }

    /// The schema that the tables are in.
    ///
    /// # Errors
    /// [`Setup`](super::StoreErrorKind::Setup) unless it is 1 to 63 of `a`-`z`, `0`-`9` and `_`, the first no digit.
    pub fn with_schema(self, schema: &str) -> Result<Self, StoreError> {
        if !schema::is_identifier(schema) {
            return Err(setup(format!(
                "`{schema}` cannot be the name of the schema; use up to 63 of a-z, 0-9 and _, beginning with no digit"
            )));
        }
        Ok(Self { schema: schema.into(), verbs: Arc::default(), ..self })
    }

    /// How long a statement may take, waiting for locks included, before the server gives it up; in whole milliseconds,
    /// at least 1. 5 s by default.
    #[must_use]
    pub fn with_statement_timeout(self, timeout: Duration) -> Self {
        Self { timeout, verbs: Arc::default(), ..self }
    }

    /// For a pooler that gives each transaction another server connection, such as PgBouncer in transaction mode, whatever its
    /// version: each verb is one message of text, which sets its own isolation level and
    /// time-out and leaves nothing behind. (The other protocol sets up its sessions, which such a pooler shares with everybody.) It costs the server a parse and a plan each time. Answers stand in the text, in
    /// hexadecimal: a server that logs statements logs them too. The driver's own log of statements is off. In a transaction
    /// of your pool (a body with a `Tx`) they are the arguments of a statement without a name, and in no text.
    #[must_use]
    pub fn with_simple_protocol(self) -> Self {
        Self { protocol: Protocol::Simple, verbs: Arc::default(), ..self }
    }

    /// Creates the schema and the tables or brings them up to date. Does nothing where there is nothing to do, and may be
    /// called by many processes at once. It keeps its own note of what ran, so it does not meet your own migrations.
    ///
    /// Its role needs the right to create the schema, or a schema that is there and its own.
    ///
    /// **Cancel safety.** One transaction on a connection of its own, which is closed if the future is dropped.
    ///
    /// # Errors
    /// [`Setup`](super::StoreErrorKind::Setup) if the tables are those of a newer version, or if a right is missing.
    /// Nothing is changed if it fails.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        schema::migrate(&self.options, &self.schema).await
    }

    /// Made when first needed, as are the connections.
    fn verbs(&self) -> &Verbs {
        self.verbs.get_or_init(|| Verbs {
            connections: Connections::new(
                (*self.options).clone(),
                self.connections,
                self.protocol,
                self.timeout,
                Work::Verbs,
            ),
            purging: Connections::new((*self.options).clone(), 1, self.protocol, self.timeout, Work::Purges),
            statements: Statements::new(&self.schema),
            limited: transaction::Limited::default(),
        })
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("host", &self.options.get_host())
            .field("database", &self.options.get_database())
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl Store for PostgresStore {
    async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>, StoreError> {
        self.verbs().claim(claims).await
    }

    async fn peek(&self, peeks: &[Peek]) -> Result<Vec<Option<Found>>, StoreError> {
        if peeks.is_empty() { Ok(Vec::new()) } else { self.verbs().peek(peeks).await }
    }

    async fn finish(&self, finishes: &[Finish]) -> Result<Vec<Finished>, StoreError> {
        if finishes.is_empty() { Ok(Vec::new()) } else { self.verbs().finish(finishes).await }
    }

    async fn renew(&self, renewals: &[Renewal], lease: Duration) -> Result<Vec<Renewed>, StoreError> {
        if renewals.is_empty() { Ok(Vec::new()) } else { self.verbs().renew(renewals, lease).await }
    }

    async fn link(&self, links: &[Link]) -> Result<(), StoreError> {
        if links.is_empty() { Ok(()) } else { self.verbs().link(links).await }
    }

    async fn find(&self, record: RecordId) -> Result<Option<Record>, StoreError> {
        self.verbs().find(record).await
    }

    async fn list(&self, filter: &Filter, page: Page) -> Result<Vec<Record>, StoreError> {
        self.verbs().list(filter, page).await
    }

    async fn linked(&self, provider: &str, id: &str) -> Result<Vec<Record>, StoreError> {
        self.verbs().linked(provider, id).await
    }

    async fn resolve(&self, resolve: &Resolve) -> Result<bool, StoreError> {
        self.verbs().resolve(resolve).await
    }

    async fn recover(&self, recover: &Recover) -> Result<Vec<Recovering>, StoreError> {
        self.verbs().recover(recover).await
    }

    async fn put_off(&self, put_off: &PutOff) -> Result<bool, StoreError> {
        self.verbs().put_off(put_off).await
    }

    async fn interrupted(&self, resume: &Resume) -> Result<Vec<Resuming>, StoreError> {
        self.verbs().interrupted(resume).await
    }

    async fn survey(&self) -> Result<Survey, StoreError> {
        survey::survey(self.verbs()).await
    }

    async fn due(&self) -> Result<Due, StoreError> {
        self.verbs().due().await
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        self.verbs().purge(purge).await
    }

    async fn strip(&self, strip: &Strip) -> Result<Stripped, StoreError> {
        self.verbs().strip(strip).await
    }

    fn transactions(&self) -> Option<Transactions> {
        Some(Transactions { database: "postgres", exclusive: false })
    }

    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        transaction::begin(self.verbs(), self.pool.clone(), begin.clone()).await
    }

    async fn commit(&self, transaction: OpenTransaction, commit: &Commit) -> Result<Committed, StoreError> {
        transaction::commit(self.verbs(), transaction, commit.clone()).await
    }

    fn keeps_steps(&self) -> bool {
        true
    }

    async fn start_steps(&self, starts: &[StartStep]) -> Result<Vec<Started>, StoreError> {
        if starts.is_empty() { Ok(Vec::new()) } else { self.verbs().start_steps(starts).await }
    }

    async fn end_steps(&self, ends: &[EndStep]) -> Result<Vec<StepEnded>, StoreError> {
        if ends.is_empty() { Ok(Vec::new()) } else { self.verbs().end_steps(ends).await }
    }

    async fn steps(&self, record: RecordId) -> Result<Vec<Step>, StoreError> {
        self.verbs().steps(record).await
    }

    async fn begin_step(&self, start: &StartStep, limit: Duration) -> Result<StepBegun, StoreError> {
        transaction::begin_step(self.verbs(), self.pool.clone(), start, limit).await
    }

    async fn commit_step(&self, transaction: OpenTransaction, end: &EndStep) -> Result<Committed, StoreError> {
        transaction::commit_step(self.verbs(), transaction, end).await
    }

    async fn check(&self) -> Result<Vec<String>, StoreError> {
        schema::check(self.verbs()).await
    }

    async fn check_transactions(&self) -> Result<Vec<String>, StoreError> {
        transaction::check(self.verbs(), self.pool.clone()).await
    }
}

#[cfg(test)]
mod tests;
