//! What waits for the connection that writes shares its transaction.

use futures_util::{FutureExt, future::BoxFuture};

use super::*;
use crate::{
    conformance::steps::{claim, found, own, reply},
    store::{Claim, Claimed, Finish, Finished, Outcome, Store, StoreError, StoreErrorKind, sqlite::error::failed},
};

/// With a table of the program's own beside the records.
async fn with_other() -> (Place, SqliteStore) {
    let place = Place::new();
    let store = place.migrated().await;
    place.execute("create table other (n integer primary key)").await;
    (place, store)
}

async fn insert(store: &SqliteStore, n: i64) -> Result<(), StoreError> {
    let into = |n: i64| sqlx::query("insert into other values (?1)").bind(n);
    store.write(n, move |n, tx| Box::pin(into(*n).execute(tx).map(|done| done.map(drop).map_err(failed)))).await
}

/// So many commits are in the WAL, if nothing has been moved out of it: the frame that ends one has a number where others have none.
fn commits(place: &Place) -> usize {
    const HEADER: usize = 32;
    const FRAME: usize = 24 + 4096;
    let wal = std::fs::read(place.folder.path().join("records.db-wal")).unwrap();
    wal[HEADER..].chunks_exact(FRAME).filter(|frame| frame[4..8] != [0; 4]).count()
}

#[tokio::test]
async fn what_waits_for_the_writer_shares_a_commit() {
    let (place, store) = with_other().await;
    let owner = claim("a");
    own(&store, &owner).await;
    let end = [Finish { record: owner.record, attempt: owner.attempt, outcome: Outcome::Done(reply("x")) }];
    let claims: Vec<Claim> = (0..150).map(|key| claim(&key.to_string())).collect(); // more than one statement carries
    let before = commits(&place);
    let writer = store.writer.acquire().await.unwrap();
    let (claimed, finished, inserted, ()) =
        tokio::join!(store.claim(&claims), store.finish(&end), insert(&store, 1), async {
            tokio::time::sleep(Duration::from_millis(100)).await; // a claim looks first
            drop(writer);
        });
    assert!(claimed.unwrap().iter().all(|claimed| matches!(claimed, Claimed::Owner(_))));
    found!(finished.unwrap().as_slice(), [Finished::Stored { .. }]);
    inserted.unwrap();
    assert_eq!(commits(&place) - before, 1);
    assert_eq!(place.number("select count(distinct fence) from idem_key").await, 151);
    assert_eq!(place.number("select fence from idem_meta").await, 151);
}

#[tokio::test]
async fn whoever_fails_in_a_shared_transaction_fails_alone() {
    let (place, store) = with_other().await;
    let writer = store.writer.acquire().await.unwrap();
    let (one, again, two, ()) =
        tokio::join!(insert(&store, 1), insert(&store, 1), insert(&store, 2), async { drop(writer) });
    assert_eq!(again.unwrap_err().kind, StoreErrorKind::Corrupt);
    one.unwrap();
    two.unwrap();
    assert_eq!(place.number("select sum(n) from other").await, 3);
}

#[tokio::test]
async fn whoever_panics_in_a_shared_transaction_panics_alone() {
    let (place, store) = with_other().await;
    let writer = store.writer.acquire().await.unwrap();
    let panics = store.write((), |(), _| -> BoxFuture<'_, Result<(), StoreError>> { panic!("as a test of it wants") });
    let (one, panicked, two, ()) = tokio::join!(insert(&store, 1), panics, insert(&store, 2), async { drop(writer) });
    assert_eq!(panicked.unwrap_err().kind, StoreErrorKind::Unavailable);
    one.unwrap();
    two.unwrap();
    assert_eq!(place.number("select sum(n) from other").await, 3);
}

/// As a full disk does.
#[tokio::test]
async fn where_sqlite_has_ended_the_transaction_all_are_told_and_the_next_goes_on() {
    let (place, store) = with_other().await;
    let writer = store.writer.acquire().await.unwrap();
    let ends = store.write((), |(), tx| {
        Box::pin(async move {
            sqlx::raw_sql("rollback").execute(tx).await.map_err(failed)?;
            Err::<(), _>(StoreError::unavailable("the disk is full"))
        })
    });
    let (one, ended, two, ()) = tokio::join!(insert(&store, 1), ends, insert(&store, 2), async { drop(writer) });
    for told in [one, ended] {
        assert!(told.unwrap_err().to_string().contains("unavailable"));
    }
    two.unwrap(); // it came after that, so it is another transaction's
    insert(&store, 3).await.unwrap();
    assert_eq!(place.number("select sum(n) from other").await, 5);
}

#[tokio::test]
async fn what_a_runtime_left_behind_keeps_nobody() {
    let (place, store) = with_other().await;
    let writer = store.writer.acquire().await.unwrap();
    let other = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    for n in 0..20 {
        let store = store.clone();
        other.spawn(async move { insert(&store, n).await });
    }
    tokio::time::sleep(Duration::from_millis(100)).await; // they wait
    other.shutdown_background();
    tokio::time::sleep(Duration::from_millis(100)).await; // and nobody for them
    drop(writer);
    tokio::time::timeout(Duration::from_secs(5), insert(&store, 20)).await.expect("its turn comes").unwrap();
    assert_eq!(place.number("select sum(n) from other").await, 20, "nobody is there to be told of the others");
}

#[tokio::test]
async fn what_waited_for_the_writer_in_vain_is_not_done_later() {
    let (place, store) = with_other().await;
    let writer = store.writer.acquire().await.unwrap();
    tokio::time::pause(); // the wait for the connection is all that there is to wait for
    assert_eq!(insert(&store, 1).await.unwrap_err().kind, StoreErrorKind::Unavailable);
    tokio::time::resume();
    drop(writer);
    insert(&store, 2).await.unwrap();
    assert_eq!(place.number("select sum(n) from other").await, 2);
}
