//! Connections of the store's own, and the one way a statement takes to the server and back.

use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::{
    AssertSqlSafe, ConnectOptions, PgConnection,
    postgres::{PgConnectOptions, PgRow},
};

use super::{
    argument::{self, Arg},
    error::{self, failed},
    sql::Statement,
    stack::Stack,
};
use crate::store::StoreError;

/// How long a verb waits for a connection, and how much longer than its own time-out for a statement whose server does
/// not even say that the time is over.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// How often a statement is sent that the server undid for another's sake.
const TRIES: u32 = 3;

/// How a statement travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Prepared once per connection; the session is set up once.
    Prepared,
    /// One message of text, which sets up what it needs for itself and leaves nothing behind.
    Simple,
}

/// What connections are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Verbs that find their records by primary key, and the look at the newest.
    Verbs,
    /// Looks for what is over, in the order of an index.
    Purges,
}

/// The connections.
#[derive(Debug)]
pub(super) struct Connections {
    stack: Stack,
    protocol: Protocol,
    timeout: Duration,
}

/// What a new connection is told first.
pub(super) type Set = Box<dyn Fn(&mut PgConnection) -> BoxFuture<'_, Result<(), sqlx::Error>> + Send + Sync>;

impl Connections {
    /// Opens nothing yet.
    pub(super) fn new(
        options: PgConnectOptions,
        connections: u32,
        protocol: Protocol,
        timeout: Duration,
        work: Work,
    ) -> Self {
        let (set, options): (Set, _) = match protocol {
            Protocol::Prepared => (Box::new(move |connection| set_up(connection, timeout, work)), options),
            // A pooler need not know this start-up parameter, and no float is sent or read. The driver logs slow
            // statements; these have answers in their text.
            Protocol::Simple => {
                (Box::new(|_| Box::pin(async { Ok(()) })), options.extra_float_digits(None).disable_statement_logging())
            }
        };
        Self { stack: Stack::new(options, connections, set), protocol, timeout }
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    #[cfg(test)]
    pub(super) async fn lend(&self) -> super::stack::Lent<'_> {
        self.stack.lend().await.unwrap()
    }

    /// Runs one statement, which is a transaction of its own, and reads all of its rows. It may be sent again only where
    /// the server said that it undid it.
    pub(super) async fn rows(&self, statement: &Statement, args: &[Arg<'_>]) -> Result<Vec<PgRow>, StoreError> {
        let mut tries = 1;
        loop {
            match self.once(statement, args).await {
                Err(error) if error::is_undone(&error) && tries < TRIES => {
                    tokio::time::sleep(Duration::from_millis(fastrand::u64(1..10) * u64::from(tries))).await;
                    tries += 1;
                }
                rows => return rows.map_err(failed),
            }
        }
    }

    /// What a server that falls silent is waited for. Afterwards the connection is in an unknown state.
    pub(super) async fn within_patience<T>(
        &self,
        asked: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let silent = |_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()));
        tokio::time::timeout(self.timeout + PATIENCE, asked).await.unwrap_or_else(silent)
    }

    async fn once(&self, statement: &Statement, args: &[Arg<'_>]) -> Result<Vec<PgRow>, sqlx::Error> {
        let mut connection = self.stack.lend().await?;
        let rows: BoxFuture<'_, _> = match self.protocol {
            Protocol::Prepared => Box::pin(argument::bound(statement, args).fetch_all(&mut *connection)),
            Protocol::Simple => {
                let message = format!("{}{}", for_this_message(self.timeout), argument::rendered(statement, args));
                sqlx::raw_sql(AssertSqlSafe(message)).fetch_all(&mut *connection)
            }
        };
        let rows = self.within_patience(rows).await;
        match &rows {
            Err(error) if error::breaks_connections(error) => connection.close_with_all_older(),
            _ => connection.give_back(),
        }
        rows
    }
}

/// What a prepared statement needs of its session. READ COMMITTED, because the claim decides again on rows that are newer
/// than its snapshot. The planner: a plan is made once, while the tables may be small, and must be good when they are
/// not, so it may use nothing whose cost grows with the table; every access is by primary key, to
/// the newest by a block range index, or in the order of an index and limited.
fn set_up(connection: &mut PgConnection, timeout: Duration, work: Work) -> BoxFuture<'_, Result<(), sqlx::Error>> {
    let timeout = millis(timeout);
    // A bitmap has no order, so it would be made of all that is over to find the first of it.
    let bitmaps = if work == Work::Purges { "off" } else { "on" };
    let settings = format!(
        "set default_transaction_isolation = 'read committed'; set statement_timeout = {timeout}; \
         set lock_timeout = {timeout}; set idle_in_transaction_session_timeout = {timeout}; \
         set plan_cache_mode = force_generic_plan; set jit = off; \
         set enable_seqscan = off; set enable_bitmapscan = {bitmaps}; set enable_hashjoin = off; set enable_mergejoin = off"
    );
    Box::pin(async move { sqlx::raw_sql(AssertSqlSafe(settings)).execute(connection).await.map(drop) })
}

/// What goes before a statement in its message. Statements of one message are one transaction by themselves; a `begin`
/// of our own would stay open where the statement fails, and a pooler would then keep the server for us. Rows are found, and so locked,
/// in the order of the slice, as with prepared statements.
fn for_this_message(timeout: Duration) -> String {
    let timeout = millis(timeout);
    format!(
        "set transaction isolation level read committed; set local statement_timeout = {timeout}; \
         set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off; "
    )
}

/// At least 1: to Postgres, 0 is no limit at all.
pub(super) fn millis(timeout: Duration) -> i32 {
    i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX).max(1)
}
