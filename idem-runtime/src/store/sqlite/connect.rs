//! Opening the file, and refusing what would break a promise.

use std::{
    fs::OpenOptions,
    io::ErrorKind,
    path::Path,
    str::FromStr,
    time::{Duration, Instant},
};

use sqlx::{
    ConnectOptions, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::{
    error::{self, failed, setup},
    filesystem,
};
use crate::store::StoreError;

/// How long a statement waits for another process's write lock, and a verb for a connection.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

const READERS: u32 = 4;

const NOT_IN_MEMORY: &str = "an in-memory or temporary SQLite database is lost with its connection, and each \
     connection has one of its own; name a file, or use `MemoryStore::volatile()` where nothing need be kept";

/// The options that [`SqliteStore::connect`](super::SqliteStore::connect) promises.
pub(super) fn options(url: &str) -> Result<SqliteConnectOptions, StoreError> {
    if let Some(scheme) = another_scheme(url) {
        return Err(setup(format!(
            "`{scheme}:` is no SQLite URL; write `sqlite://FILE`, or use the store of that database"
        )));
    }
    Ok(SqliteConnectOptions::from_str(url)
        .map_err(failed)?
        .create_if_missing(false) // `create` does, with a mode that keeps others out
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(PATIENCE)
        .pragma("fullfsync", "on")) // on macOS a plain fsync leaves the data in the disk's cache; elsewhere no effect
}

/// The driver would take such a URL for the name of a file. (One letter is a drive; `file:` is refused in its own words.)
fn another_scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once(':')?;
    let is_scheme = scheme.len() > 1 && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    (is_scheme && !["sqlite", "file"].contains(&scheme)).then_some(scheme)
}

/// Creates the file if it is missing, readable by its owner only: it holds answers. An empty file is a valid, empty
/// database, and SQLite gives its `-wal` and `-shm` files the same mode.
pub(super) fn create(file: &Path) -> Result<(), StoreError> {
    let mut open = OpenOptions::new();
    open.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut open, 0o600);
    match open.open(file) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(StoreError::unavailable(CannotCreate { file: file.into(), source: error })),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{}` cannot be created", file.display())]
struct CannotCreate {
    file: Box<Path>,
    source: std::io::Error,
}

/// What can be told without touching the disk.
pub(super) fn refuse(options: &SqliteConnectOptions) -> Result<(), StoreError> {
    let file = options.get_filename();
    let text = file.to_string_lossy();
    if text.is_empty() || text == ":memory:" {
        return Err(setup(NOT_IN_MEMORY));
    }
    // The options have no getters, but they print as a URL, which no odd file name can then break.
    let url = options.clone().filename("file.db").to_url_lossy();
    for (name, value) in url.query_pairs() {
        match (&*name, &*value) {
            ("mode", "memory") => return Err(setup(NOT_IN_MEMORY)),
            ("mode", "ro") => return Err(setup("the database is opened read-only; open it for reading and writing")),
            ("cache", "shared") => {
                return Err(setup("a shared cache replaces SQLite's file locks by its own; use a private cache"));
            }
            ("immutable", "true") => {
                return Err(setup("an immutable database is never locked; open it without `immutable`"));
            }
            _ => {}
        }
    }
    if text.starts_with("file:") {
        return Err(setup("the file is named by a `file:` URI, which may carry options; name it by its path"));
    }
    if let Some(name) = filesystem::network(file) {
        return Err(setup(format!(
            "`{text}` lies on a network file system ({name}), where SQLite's locks do not hold; move it to a local disk"
        )));
    }
    Ok(())
}

/// The writer and the readers. The writer first: it is what turns a new file into one that readers can open.
pub(super) async fn open(options: SqliteConnectOptions) -> Result<(SqlitePool, SqlitePool), StoreError> {
    let writer = open_writer(&options).await?;
    let mut connection = writer.acquire().await.map_err(failed)?;
    let weaknesses = weaknesses(&mut connection).await?;
    drop(connection);
    if !weaknesses.is_empty() {
        writer.close().await;
        return Err(setup(weaknesses.join("; ")));
    }
    let readers = pool(READERS).connect_with(options.read_only(true).create_if_missing(false)).await.map_err(failed)?;
    Ok((writer, readers))
}

/// Tries for a while: when several processes turn a new file into WAL mode at once, SQLite does not always wait for
/// the lock but answers that it is busy.
async fn open_writer(options: &SqliteConnectOptions) -> Result<SqlitePool, StoreError> {
    let start = Instant::now();
    loop {
        match pool(1).connect_with(options.clone()).await {
            Err(error) if error::primary_code(&error) == Some(error::BUSY) && start.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(fastrand::u64(5..50))).await;
            }
            opened => return opened.map_err(failed),
        }
    }
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(PATIENCE)
        // The driver looks at a connection when it comes back, and each look is a hand-over to its thread.
        .test_before_acquire(false)
        // A file does not hang up. And the last connection to close would remove the WAL, and the next create it again.
        .idle_timeout(None)
        .max_lifetime(None)
}

/// What would break a promise on this live connection: one sentence per fault.
pub(super) async fn weaknesses(connection: &mut SqliteConnection) -> Result<Vec<String>, StoreError> {
    const FILE: &str = "select file from pragma_database_list where name = 'main'";
    const FULL: i64 = 2;

    let file: Option<String> = sqlx::query_scalar(FILE).fetch_one(&mut *connection).await.map_err(failed)?;
    if file.is_none_or(|file| file.is_empty()) {
        return Ok(vec![String::from(NOT_IN_MEMORY)]);
    }
    let mut found = Vec::new();
    let journal: String =
        sqlx::query_scalar("pragma journal_mode").fetch_one(&mut *connection).await.map_err(failed)?;
    if journal != "wal" {
        found.push(format!(
            "journal_mode is `{journal}`, so readers and the writer shut each other out; set \
             `.journal_mode(SqliteJournalMode::Wal)`"
        ));
    }
    let synchronous: i64 =
        sqlx::query_scalar("pragma synchronous").fetch_one(&mut *connection).await.map_err(failed)?;
    if synchronous < FULL {
        found.push(format!(
            "synchronous is {synchronous}, so a power cut can undo an answer that was given; set \
             `.synchronous(SqliteSynchronous::Full)`"
        ));
    }
    let foreign_keys: bool =
        sqlx::query_scalar("pragma foreign_keys").fetch_one(&mut *connection).await.map_err(failed)?;
    if !foreign_keys {
        found.push(String::from(
            "foreign_keys is off, so a body could commit its transaction without its outcome; set \
             `.foreign_keys(true)`",
        ));
    }
    let locking: String =
        sqlx::query_scalar("pragma locking_mode").fetch_one(&mut *connection).await.map_err(failed)?;
    if locking != "normal" {
        found.push(format!(
            "locking_mode is `{locking}`, so nobody else can read the file; set \
             `.locking_mode(SqliteLockingMode::Normal)`"
        ));
    }
    Ok(found)
}
