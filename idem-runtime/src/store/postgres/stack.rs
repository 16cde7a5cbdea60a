//! The store's own connections. A pool of the driver's asks each one whether it is well when it is given back, which is a
//! round trip per statement; here one that was used to its end goes back as it is, and any other is closed.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use sqlx::{ConnectOptions, PgConnection, postgres::PgConnectOptions};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{sleep, timeout},
};

use super::connect::{PATIENCE, Set};

/// What lies idle for longer may have been forgotten by whatever stands between, and is closed when another one is used.
const IDLE: Duration = Duration::from_secs(10 * 60);

/// Servers' caches grow with a session's age.
const LIFE: Duration = Duration::from_secs(30 * 60);

/// Between two tries to connect to a server that is starting up.
const AGAIN: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// So many connections at most, opened when first needed.
pub(super) struct Stack {
    options: PgConnectOptions,
    set: Set,
    permits: Semaphore,
    /// The one that was used last is used next.
    idle: Mutex<Vec<Idle>>,
    broken: Broken,
}

struct Idle {
    connection: PgConnection,
    opened: Instant,
    since: Instant,
}

/// When a connection was last found broken. All that are older are suspects: after a restart of the server one verb
/// fails, not one per connection.
#[derive(Debug, Default)]
struct Broken(Mutex<Option<Instant>>);

impl Broken {
    fn now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn after(&self, opened: Instant) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|since| since >= opened)
    }
}

/// A connection in use. Dropped, it is closed, without a word to a server that may not listen: whoever was dropped in the
/// middle of a statement does not know what comes next on it.
pub(super) struct Lent<'a> {
    home: &'a Stack,
    connection: PgConnection,
    opened: Instant,
    _permit: SemaphorePermit<'a>,
}

impl Stack {
    pub(super) fn new(options: PgConnectOptions, connections: u32, set: Set) -> Self {
        let permits = Semaphore::new(usize::try_from(connections).unwrap_or(1));
        Self { options, set, permits, idle: Mutex::default(), broken: Broken::default() }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that is idle, or a new one.
    ///
    /// # Errors
    /// None in time, or that of connecting.
    pub(super) async fn lend(&self) -> Result<Lent<'_>, sqlx::Error> {
        let lend = async {
            let permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
            let (connection, opened) = match self.take() {
                Some(idle) => (idle.connection, idle.opened),
                None => (self.connect().await?, Instant::now()),
            };
            Ok(Lent { home: self, connection, opened, _permit: permit })
        };
        timeout(PATIENCE, lend).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// The youngest that can be used. The others are closed.
    fn take(&self) -> Option<Idle> {
        let mut idle = self.idle();
        while let Some(last) = idle.pop() {
            if last.opened.elapsed() < LIFE && last.since.elapsed() < IDLE && !self.broken.after(last.opened) {
                return Some(last);
            }
        }
        None
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let mut pause = AGAIN.0;
        loop {
            match self.options.connect().await {
                Ok(mut connection) => {
                    (self.set)(&mut connection).await?;
                    return Ok(connection);
                }
                Err(error) if is_starting_up(&error) => {
                    sleep(pause).await;
                    pause = (pause * 2).min(AGAIN.1);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// As the driver's pool has it.
fn is_starting_up(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        sqlx::Error::Database(error) => error.is_transient_in_connect_phase(),
        _ => false,
    }
}

impl Lent<'_> {
    /// Its statement has come to its end.
    pub(super) fn give_back(self) {
        let Self { home, connection, opened, _permit } = self;
        let since = Instant::now();
        let mut idle = home.idle();
        idle.push(Idle { connection, opened, since });
        if idle.first().is_some_and(|oldest| since.duration_since(oldest.since) >= IDLE) {
            drop(idle.remove(0));
        }
    } // the permit after the connection, so that whoever waits for it finds one

    /// It is broken, and with it may be all that are older: they are not used any more.
    pub(super) fn close_with_all_older(self) {
        self.home.broken.now();
    }
}

impl Deref for Lent<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack")
            .field("free", &self.permits.available_permits())
            .field("idle", &self.idle().len())
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}
