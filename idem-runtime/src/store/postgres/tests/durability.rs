//! Servers that lose what they confirmed, cannot write or restart, and states that no verb of ours writes.

use super::{server::Server, *};
use crate::{
    conformance::steps::{claim, find, finish, found, own, reply, resolve, retry},
    state::Reason,
    store::{Claimed, Finished, Found, Outcome, Resolution, Store, StoreErrorKind},
};

#[tokio::test]
async fn scenario_104_a_state_of_a_newer_version_is_never_absent() {
    let place = Place::new();
    let store = place.migrated().await;
    let claim = claim("a");
    own(&store, &claim).await;
    place.execute("update idem_key set state = 42, reason = 77").await;
    place.pass(Duration::from_secs(365 * 24 * 3600)).await;
    found!(retry(&store, "a").await, Claimed::Found(Found::Unknown));
    let peeked = store.peek(&[claim.peek()]).await.unwrap();
    found!(peeked.as_slice(), [Some(Found::Unknown)]);
    assert_eq!(finish(&store, &claim, Outcome::Done(reply("x"))).await, Finished::Lost);
    let record = find(&store, "a").await;
    assert_eq!((record.state.code(), record.reason), (42, Some(Reason::Unknown(77))));
    assert!(!resolve(&store, "a", record.fence, Resolution::Release).await);
    assert_eq!(place.number("select state::int8 from idem_key").await, 42);
}

#[tokio::test]
async fn a_digest_of_another_length_is_corrupt() {
    let place = Place::new();
    let store = place.migrated().await;
    own(&store, &claim("a")).await;
    place.execute("update idem_key set fp = 'short'").await;
    for store in [store.clone(), store.with_simple_protocol()] {
        let error = store.claim(&[claim("a")]).await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Corrupt, "{}", error.source);
    }
}

#[tokio::test]
async fn the_audit_trail_says_who_and_why() {
    let place = Place::new();
    let store = place.migrated().await;
    let claim = claim("a");
    own(&store, &claim).await;
    finish(&store, &claim, Outcome::InDoubt(Reason::Panic)).await;
    let seen = find(&store, "a").await.fence;
    assert!(resolve(&store, "a", seen, Resolution::Release).await);
    assert!(!resolve(&store, "a", seen, Resolution::Release).await);
    const ENTRIES: &str = "select count(*) from idem_audit a join idem_key k using (kid) where a.fence < k.fence
        and (from_state, to_state, who, why) = (5, 4, 'ops', 'asked the provider')";
    assert_eq!(place.number(ENTRIES).await, 1);
    assert_eq!(place.number("select count(*) from idem_audit").await, 1);
}

#[tokio::test]
async fn check_refuses_what_is_not_durable_and_is_content_with_the_rest() {
    let server = Server::start(&[]);
    let place = Place::on(&server.url);
    place.migrated().await;
    for simple in [false, true] {
        let store = |settings: &[(&str, &str)]| {
            let store = place.store_with(place.options.clone().options(settings.iter().copied()));
            if simple { store.with_simple_protocol() } else { store }
        };
        assert_eq!(store(&[]).check().await.unwrap(), Vec::<String>::new());
        assert_eq!(store(&[("synchronous_commit", "local")]).check().await.unwrap(), Vec::<String>::new());
        let faults =
            store(&[("synchronous_commit", "off"), ("default_transaction_read_only", "on")]).check().await.unwrap();
        assert!(
            faults.len() == 2 && faults[0].contains("synchronous_commit") && faults[1].contains("read_only"),
            "{faults:?}"
        );
    }
    let read_only = place.store_with(place.options.clone().options([("default_transaction_read_only", "on")]));
    assert_eq!(read_only.claim(&[claim("a")]).await.unwrap_err().kind, StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn check_refuses_a_standby_and_a_server_without_fsync() {
    let server = Server::standby(&["fsync=off"]);
    let faults = Place::on(&server.url).store().check().await.unwrap();
    let found = ["fsync", "standby", "store.migrate()"].map(|word| faults.iter().any(|fault| fault.contains(word)));
    assert_eq!((found, faults.len()), ([true; 3], 3), "{faults:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_of_the_server_costs_one_failure_and_nothing_stored() {
    let server = Server::start(&[]);
    let place = Place::on(&server.url);
    let prepared = place.migrated().await;
    let stores = [prepared.clone(), prepared.with_simple_protocol()];
    let claims = stores.each_ref().map(|store| claim(&format!("{:?}", store.protocol)));
    for (store, claim) in stores.iter().zip(&claims) {
        // All four connections are open.
        futures_util::future::join_all((0..12).map(|_| store.find(claim.record))).await;
        own(store, claim).await;
    }
    tokio::task::block_in_place(|| server.restart());
    for (store, claim) in stores.iter().zip(&claims) {
        let mut failures = 0;
        for _ in 0..12 {
            if let Err(error) = store.find(claim.record).await {
                assert_eq!(error.kind, StoreErrorKind::Unavailable, "{}", error.source);
                failures += 1;
            }
        }
        assert!(failures <= 1, "{failures}");
        found!(finish(store, claim, Outcome::Done(reply("x"))).await, Finished::Stored { .. });
    }
}
