//! Opening: what is created, and what is refused.

use sqlx::sqlite::{SqliteJournalMode, SqliteLockingMode, SqliteSynchronous};

use super::*;
use crate::{
    conformance::steps::{claim, own},
    store::{Store, StoreError},
};

#[track_caller]
fn refused(opened: Result<SqliteStore, StoreError>, because: &str) {
    let error = opened.expect_err(because);
    assert_eq!(error.kind, StoreErrorKind::Setup, "{error:?}");
    assert!(error.source.to_string().contains(because), "{}", error.source);
}

#[tokio::test]
async fn case_76_a_database_without_a_file_is_refused() {
    for url in [
        "sqlite::memory:",
        "sqlite://:memory:",
        "sqlite://",
        "sqlite:",
        "sqlite://x.db?mode=memory",
        "sqlite://?cache=shared",
    ] {
        refused(SqliteStore::connect(url).await, "MemoryStore::volatile()");
    }
    let wal = || SqliteConnectOptions::new().journal_mode(SqliteJournalMode::Wal);
    refused(SqliteStore::with_options(wal()).await, "MemoryStore::volatile()");
    refused(SqliteStore::with_options(wal().in_memory(true)).await, "MemoryStore::volatile()");
    refused(SqliteStore::with_options(wal().filename("")).await, "MemoryStore::volatile()");
    refused(SqliteStore::with_options(wal().filename("file::memory:")).await, "by its path");
}

/// The driver would make a file of that name, and the service would have records that no other process sees.
#[tokio::test]
async fn the_url_of_another_database_is_refused() {
    for url in ["postgres://app@db/shop", "postgres:shop", "mysql:shop"] {
        refused(SqliteStore::connect(url).await, "is no SQLite URL");
    }
    let error = SqliteStore::connect("sqlite:///no/such/folder/a.db").await.expect_err("no folder");
    let told = format!("{error:?}");
    assert!(
        told.contains("`/no/such/folder/a.db` cannot be created: "),
        "what `main` shows says where and why: {told}"
    );
}

#[tokio::test]
async fn a_live_database_without_a_file_is_noticed() {
    let mut memory = SqliteConnectOptions::new().connect().await.unwrap();
    let found = connect::weaknesses(&mut memory).await.unwrap();
    assert!(found.len() == 1 && found[0].contains("MemoryStore::volatile()"), "{found:?}");
}

#[tokio::test]
async fn options_that_break_a_promise_are_refused() {
    let place = Place::new();
    let good = || place.options().create_if_missing(true);
    for (options, because) in [
        (good().synchronous(SqliteSynchronous::Normal), "SqliteSynchronous::Full"),
        (good().synchronous(SqliteSynchronous::Off), "SqliteSynchronous::Full"),
        (good().journal_mode(SqliteJournalMode::Delete), "SqliteJournalMode::Wal"),
        (good().foreign_keys(false), "foreign_keys"),
        (good().locking_mode(SqliteLockingMode::Exclusive), "SqliteLockingMode::Normal"),
        (good().shared_cache(true), "private cache"),
        (good().immutable(true), "immutable"),
        (good().read_only(true).create_if_missing(false), "read-only"),
    ] {
        refused(SqliteStore::with_options(options).await, because);
    }
    let both = good().synchronous(SqliteSynchronous::Off).foreign_keys(false);
    refused(SqliteStore::with_options(both.clone()).await, "foreign_keys");
    refused(SqliteStore::with_options(both).await, "synchronous");
    refused(SqliteStore::connect(&format!("{}?mode=ro", place.url())).await, "read-only");

    let store = SqliteStore::with_options(good().synchronous(SqliteSynchronous::Extra)).await.unwrap();
    store.migrate().await.unwrap();
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn unset_options_are_not_taken_for_granted() {
    let place = Place::new();
    let unset = SqliteConnectOptions::new().filename(place.file()).create_if_missing(true);
    refused(SqliteStore::with_options(unset).await, "journal_mode");
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_unavailable() {
    let place = Place::new();
    let missing = format!("sqlite://{}", place.folder.path().join("no/such/folder.db").display());
    assert_eq!(SqliteStore::connect(&missing).await.unwrap_err().kind, StoreErrorKind::Unavailable);
    let missing = SqliteStore::with_options(place.options()).await;
    assert_eq!(missing.unwrap_err().kind, StoreErrorKind::Unavailable, "with_options creates nothing unasked");
    assert!(!place.file().exists());
    std::fs::write(place.file(), [b'x'; 4096]).unwrap();
    assert_eq!(SqliteStore::connect(&place.url()).await.unwrap_err().kind, StoreErrorKind::Corrupt);
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_file_is_its_owners_only_and_so_are_its_companions() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new();
    let store = place.migrated().await;
    own(&store, &claim("a")).await;
    let mut files: Vec<_> = std::fs::read_dir(place.folder.path()).unwrap().map(|entry| entry.unwrap()).collect();
    files.sort_by_key(std::fs::DirEntry::file_name);
    let names: Vec<_> = files.iter().map(|file| file.file_name().into_string().unwrap()).collect();
    assert_eq!(names, ["records.db", "records.db-shm", "records.db-wal"]);
    for file in files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
}

#[tokio::test]
async fn connect_keeps_its_promises_and_what_is_there() {
    let place = Place::new();
    own(&place.migrated().await, &claim("a")).await;
    let store = place.store().await;
    assert!(store.find(claim("a").record).await.unwrap().is_some());
    let mut writer = store.writer.acquire().await.unwrap();
    assert_eq!(number(&mut writer, "pragma synchronous").await, 2);
    assert_eq!(number(&mut writer, "pragma foreign_keys").await, 1);
    assert_eq!(number(&mut writer, "pragma busy_timeout").await, 5000);
    let mut reader = store.readers.acquire().await.unwrap();
    let write = sqlx::raw_sql("update idem_meta set fence = 7").execute(&mut *reader).await;
    assert!(write.is_err(), "readers cannot write");
    assert!(format!("{store:?}").contains("records.db"));
}
