//! Several tasks and processes on one file, and callers that go away.

use std::{
    collections::HashMap,
    future::Future,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Waker},
};

use super::*;
use crate::{
    conformance::steps::{LEASE, claim, find, finish, found, own, payload, record, reply, retry, run},
    state::{Reason, State},
    store::{Attempt, Claim, Claimed, Finish, Finished, Found, Outcome, Renewal, Renewed, Store, StoredResponse},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scenario_100_eight_tasks_over_two_stores_race_for_200_keys() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let place = Place::new();
    let stores = [place.migrated().await, place.store().await];
    place.execute("create table other (n integer); insert into other values (0)").await;
    let mut raw = place.raw().await;
    let neighbour = tokio::spawn(async move {
        while !STOP.load(Ordering::Relaxed) {
            sqlx::raw_sql("update other set n = n + 1").execute(&mut raw).await.unwrap();
        }
    });
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let store = stores[task % 2].clone();
            tokio::spawn(async move {
                let mut keys: Vec<usize> = (0..200).collect();
                fastrand::shuffle(&mut keys);
                let mut owned = Vec::new();
                for key in keys {
                    let claim = claim(&key.to_string());
                    let claimed = store.claim(std::slice::from_ref(&claim)).await.unwrap();
                    match &claimed[..] {
                        [Claimed::Owner(_)] => {
                            owned.push(key);
                            found!(finish(&store, &claim, Outcome::Done(reply("x"))).await, Finished::Stored { .. });
                        }
                        [Claimed::Found(Found::InFlight { .. }) | Claimed::Found(Found::Replay(_))] => {}
                        other => panic!("{other:?}"),
                    }
                }
                owned
            })
        })
        .collect();
    let mut owners = HashMap::new();
    for task in tasks {
        for key in task.await.unwrap() {
            *owners.entry(key).or_insert(0) += 1;
        }
    }
    STOP.store(true, Ordering::Relaxed);
    neighbour.await.unwrap();
    assert_eq!(owners.len(), 200);
    assert!(owners.values().all(|&n| n == 1), "{owners:?}");
    assert_eq!(place.number("select count(distinct fence) from idem_key").await, 200);
    assert_eq!(place.number("select fence from idem_meta").await, 200, "no refusal drew a fence");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scenario_94_two_batches_share_their_keys_between_them() {
    let place = Place::new();
    let stores = [place.migrated().await, place.store().await];
    for round in 0..20 {
        let batches = stores.clone().map(|store| {
            let mut claims: Vec<Claim> = (0..40).map(|key| claim(&format!("{round}-{key}"))).collect();
            fastrand::shuffle(&mut claims);
            tokio::spawn(async move { store.claim(&claims).await.unwrap() })
        });
        let mut owners = 0;
        for batch in batches {
            let claimed = batch.await.unwrap();
            assert_eq!(claimed.len(), 40);
            owners += claimed.iter().filter(|claimed| matches!(claimed, Claimed::Owner(_))).count();
        }
        assert_eq!(owners, 40);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_03_a_dropped_claim_leaves_no_open_transaction() {
    let place = Place::new();
    let store = place.migrated().await;
    let mut other = place.raw().await;
    for micros in (0..2_000).step_by(20) {
        let (name, dropped) = (micros.to_string(), store.clone());
        let task = tokio::spawn(async move { dropped.claim(&[claim(&name)]).await });
        std::thread::sleep(Duration::from_micros(micros));
        task.abort();
        own(&store, &claim(&format!("fresh-{micros}"))).await;
        let transaction = other.begin_with("begin immediate").await.expect("nobody holds the write lock");
        transaction.rollback().await.unwrap();
    }
    assert_eq!(place.number("select count(*) from idem_key where state <> 1").await, 0);
}

/// Polls once, then drops.
fn start_and_drop<T>(future: impl Future<Output = T>) {
    assert!(pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[tokio::test]
async fn case_03_a_write_runs_to_its_end_without_its_caller() {
    let place = Place::new();
    let store = place.migrated().await;
    let first = claim("a");
    own(&store, &first).await;
    let end = Finish { record: first.record, attempt: first.attempt, outcome: Outcome::Done(reply("x")) };
    start_and_drop(store.finish(&[end]));
    own(&store, &claim("b")).await; // waits its turn on the one writer
    assert_eq!(find(&store, "a").await.state, State::Done);
}

#[tokio::test]
async fn a_slice_of_any_length_ends_each_with_its_own() {
    let place = Place::new();
    let store = place.migrated().await;
    let answer = |n: usize| StoredResponse { body: Some(n.to_string().into()), ..reply("") };
    for length in [1, 2, 63, 64, 65, 150] {
        let claims: Vec<Claim> = (0..length).map(|n| claim(&format!("{length}-{n}"))).collect();
        assert_eq!(store.claim(&claims).await.unwrap().len(), length);
        let strange = |n: usize| n % 3 == 1;
        let attempt = |(n, claim): (usize, &Claim)| if strange(n) { Attempt::random() } else { claim.attempt };
        let held: Vec<Renewal> =
            (claims.iter().enumerate()).map(|it| Renewal { record: it.1.record, attempt: attempt(it) }).collect();
        let renewed = store.renew(&held, LEASE).await.unwrap();
        let outcome = |n| match n % 3 {
            0 => Outcome::Done(answer(n)),
            _ => Outcome::Released(Reason::Status), // no answer between those that have one
        };
        let ends: Vec<Finish> = (held.iter().enumerate())
            .map(|(n, held)| Finish { record: held.record, attempt: held.attempt, outcome: outcome(n) })
            .collect();
        let finished = store.finish(&ends).await.unwrap();
        let found = store.peek(&claims.iter().map(Claim::peek).collect::<Vec<_>>()).await.unwrap();
        for n in 0..length {
            assert_eq!(renewed[n] == Renewed::Lost, strange(n), "{n} of {length}");
            assert_eq!(finished[n] == Finished::Lost, strange(n), "{n} of {length}");
            match (n % 3, &found[n]) {
                (0, Some(Found::Replay(replay))) => assert_eq!(replay.response, answer(n)),
                (1, Some(Found::InFlight { .. })) | (2, None) => {}
                other => panic!("{other:?} of {length}"),
            }
        }
    }
}

#[tokio::test]
async fn two_attempts_at_one_record_in_a_slice_have_one_owner() {
    let place = Place::new();
    let store = place.migrated().await;
    let claims = [claim("a"), claim("a")];
    found!(store.claim(&claims).await.unwrap().as_slice(), [Claimed::Owner(_), Claimed::Found(Found::InFlight { .. })]);
    let end = |claim: &Claim, body| Finish {
        record: claim.record,
        attempt: claim.attempt,
        outcome: Outcome::Done(reply(body)),
    };
    let ends = [end(&claims[0], "first"), end(&claims[1], "second")];
    found!(store.finish(&ends).await.unwrap().as_slice(), [Finished::Stored { .. }, Finished::Lost]);
}

#[tokio::test]
async fn replays_and_refusals_write_nothing_and_take_no_lock() {
    let place = Place::new();
    let store = place.migrated().await;
    run(&store, "expired", Outcome::Done(reply("x"))).await;
    Shifted(place.file()).pass(Duration::from_secs(25 * 3600)).await;
    let owner = claim("in-flight");
    own(&store, &owner).await;
    run(&store, "done", Outcome::Done(reply("x"))).await;
    run(&store, "in-doubt", Outcome::InDoubt(Reason::Panic)).await;

    let wal = place.folder.path().join("records.db-wal");
    let mut other = place.raw().await;
    let before = (number(&mut other, "pragma data_version").await, std::fs::metadata(&wal).unwrap().len());
    let fence = number(&mut other, "select fence from idem_meta").await;
    let lock = other.begin_with("begin immediate").await.unwrap();
    let mismatch = Claim { fingerprint: payload(2), ..claim("done") };
    let claims = [owner, claim("done"), claim("in-flight"), claim("in-doubt"), claim("expired"), mismatch];
    let claimed = tokio::time::timeout(Duration::from_secs(1), store.claim(&claims)).await.expect("no lock").unwrap();
    found!(
        claimed.as_slice(),
        [
            Claimed::Owner(_),
            Claimed::Found(Found::Replay(_)),
            Claimed::Found(Found::InFlight { .. }),
            Claimed::Found(Found::InDoubt(Reason::Panic)),
            Claimed::Found(Found::Expired),
            Claimed::Found(Found::Mismatch)
        ]
    );
    let peeked = store.peek(&claims.map(|claim| claim.peek())).await.unwrap();
    assert!(peeked.iter().all(Option::is_some), "{peeked:?}");
    lock.rollback().await.unwrap();
    let after = (number(&mut other, "pragma data_version").await, std::fs::metadata(&wal).unwrap().len());
    assert_eq!(after, before);
    assert_eq!(number(&mut other, "select fence from idem_meta").await, fence);
}

#[tokio::test]
async fn a_lock_held_too_long_is_unavailable_and_passes() {
    let place = Place::new();
    place.migrated().await;
    let impatient = place.options().busy_timeout(Duration::from_millis(50));
    let store = SqliteStore::with_options(impatient).await.unwrap();
    let mut other = place.raw().await;
    let lock = other.begin_with("begin immediate").await.unwrap();
    let error = store.claim(&[claim("a")]).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    assert!(error.source.to_string().contains("locked"), "{}", error.source);
    lock.rollback().await.unwrap();
    assert!(store.find(record("a")).await.unwrap().is_none());
    own(&store, &claim("a")).await;
    found!(retry(&store, "a").await, Claimed::Found(Found::InFlight { .. }));
}

#[tokio::test]
async fn connect_waits_for_somebody_who_uses_a_file_that_is_not_yet_in_wal_mode() {
    let place = Place::new();
    connect::create(&place.file()).unwrap();
    place.execute("create table other (n integer)").await;
    let mut other = place.raw().await;
    let using = other.begin_with("begin immediate").await.unwrap();
    let (store, ()) = tokio::join!(place.store(), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        using.rollback().await.unwrap();
    });
    store.migrate().await.unwrap();
}
