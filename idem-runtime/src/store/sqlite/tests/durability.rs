//! Full disks, foreign states, and the columns that no verb shows.

use super::*;
use crate::{
    conformance::steps::{LEASE, claim, find, finish, found, own, record, reply, resolve, retry, run},
    state::Reason,
    store::{Claimed, Finished, Found, Outcome, Renewal, Renewed, Resolution, Store},
};

#[tokio::test]
async fn a_full_disk_is_unavailable_and_claims_nothing() {
    let place = Place::new();
    let roomy = place.migrated().await;
    let pages = place.number("pragma page_count").await;
    let full = SqliteStore::with_options(place.options().pragma("max_page_count", pages.to_string())).await.unwrap();
    let first = claim("first");
    own(&full, &first).await;
    let mut owned = 1;
    let (name, error) = loop {
        let name = format!("k-{owned}");
        match full.claim(&[claim(&name)]).await {
            Ok(_) => owned += 1,
            Err(error) => break (name, error),
        }
        assert!(owned < 1_000, "the disk never fills up");
    };
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    assert!(error.source.to_string().contains("full"), "{}", error.source);
    assert!(roomy.find(record(&name)).await.unwrap().is_none());
    assert_eq!(place.number("select fence from idem_meta").await, owned, "its fence was taken back");

    // SQLite has ended the transaction by itself; the store must not be confused by that.
    let renewal = Renewal { record: first.record, attempt: first.attempt };
    assert_eq!(full.renew(&[renewal], LEASE).await.unwrap(), [Renewed::Held]);
    found!(finish(&full, &first, Outcome::Done(reply("x"))).await, Finished::Stored { .. });
    found!(retry(&full, "first").await, Claimed::Found(Found::Replay(_)));
    own(&roomy, &claim(&name)).await;
}

#[tokio::test]
async fn scenario_104_a_state_of_a_newer_version_is_never_absent() {
    let place = Place::new();
    let store = place.migrated().await;
    let claim = claim("a");
    own(&store, &claim).await;
    place.execute("update idem_key set state = 42, reason = 77").await;
    Shifted(place.file()).pass(Duration::from_secs(365 * 24 * 3600)).await;
    found!(retry(&store, "a").await, Claimed::Found(Found::Unknown));
    let peeked = store.peek(&[claim.peek()]).await.unwrap();
    found!(peeked.as_slice(), [Some(Found::Unknown)]);
    assert_eq!(finish(&store, &claim, Outcome::Done(reply("x"))).await, Finished::Lost);
    let record = find(&store, "a").await;
    assert_eq!((record.state.code(), record.reason), (42, Some(Reason::Unknown(77))));
    assert!(!resolve(&store, "a", record.fence, Resolution::Release).await);
    assert_eq!(place.number("select state from idem_key").await, 42);
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_corrupt_and_left_alone() {
    let place = Place::new();
    let store = place.migrated().await;
    own(&store, &claim("a")).await;
    for spoil in [
        "update idem_key set attempt = x'00'",
        "update idem_key set attempt = zeroblob(16), fp = x'00'",
        "update idem_key set fp = zeroblob(32), attempts = -1",
    ] {
        place.execute(spoil).await;
        assert_eq!(store.claim(&[claim("a")]).await.unwrap_err().kind, StoreErrorKind::Corrupt, "{spoil}");
        assert_eq!(store.find(record("a")).await.unwrap_err().kind, StoreErrorKind::Corrupt, "{spoil}");
    }
    own(&store, &claim("b")).await;
}

#[tokio::test]
async fn what_an_operator_did_is_written_down() {
    let place = Place::new();
    let store = place.migrated().await;
    let zombie = run(&store, "a", Outcome::InDoubt(Reason::Panic)).await;
    let seen = find(&store, "a").await.fence;
    assert!(resolve(&store, "a", seen, Resolution::Void).await);
    assert!(!resolve(&store, "a", seen, Resolution::Void).await);
    type Entry = (Vec<u8>, i64, i64, i64, String, String);
    let entries: Vec<Entry> = sqlx::query_as("select kid, fence, from_state, to_state, who, why from idem_audit")
        .fetch_all(&mut place.raw().await)
        .await
        .unwrap();
    let kid = zombie.record.as_bytes().to_vec();
    assert_eq!(entries, [(kid, seen.0, 5, 2, String::from("ops"), String::from("asked the provider"))]);
}
