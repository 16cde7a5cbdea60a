//! Several tasks and processes on one database, and callers that go away.

use std::{
    collections::HashMap,
    future::Future,
    pin::pin,
    task::{Context, Waker},
};

use super::*;
use crate::{
    conformance::steps::{LEASE, claim, find, finish, found, own, record, reply, rerunnable, resolve, retry},
    state::{Reason, State},
    store::{Claim, Claimed, Finish, Finished, Found, Outcome, Renewal, Renewed, Resolution, Store, StoreErrorKind},
};

/// Two copies of one claim may be under way, since a lost reply makes it be sent again.
#[tokio::test]
async fn a_late_copy_of_a_claim_takes_nothing() {
    let place = Place::new();
    let prepared = place.migrated().await;
    for store in [prepared.clone(), prepared.with_simple_protocol()] {
        let claim = claim(&format!("{:?}", store.protocol));
        own(&store, &claim).await;
        finish(&store, &claim, Outcome::Released(Reason::Cancelled)).await;
        let late = store.claim(std::slice::from_ref(&claim)).await.unwrap();
        assert!(matches!(late.as_slice(), [Claimed::Found(_)]), "{late:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scenario_10_eight_connections_race_for_300_keys() {
    race(|store| store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scenario_10_eight_connections_race_for_300_keys_by_the_simple_protocol() {
    race(PostgresStore::with_simple_protocol).await;
}

async fn race(protocol: fn(PostgresStore) -> PostgresStore) {
    let place = Place::new();
    place.migrated().await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = protocol(place.store().with_connections(1)); // as eight processes
            tokio::spawn(async move {
                let mut owned = Vec::new();
                for key in 0..300 {
                    let claim = claim(&key.to_string());
                    match store.claim(std::slice::from_ref(&claim)).await.unwrap().as_slice() {
                        [Claimed::Owner(_)] => {
                            owned.push(key);
                            found!(finish(&store, &claim, Outcome::Done(reply("x"))).await, Finished::Stored { .. });
                        }
                        [Claimed::Found(Found::InFlight { .. } | Found::Replay(_))] => {}
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
    assert_eq!(owners.len(), 300);
    assert!(owners.values().all(|&n| n == 1), "{owners:?}");
    assert_eq!(place.number("select count(distinct fence) from idem_key where state = 2 and attempts = 1").await, 300);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scenario_94_shuffled_batches_do_not_wait_in_a_circle() {
    let place = Place::new();
    place.migrated().await;
    let mut raw = place.raw().await;
    const DEADLOCKS: &str = "select deadlocks from pg_stat_database where datname = current_database()";
    let before = number(&mut raw, DEADLOCKS).await;
    let stores: Vec<_> = (0..6).map(|_| place.store().with_connections(1)).collect();
    for round in 0..30 {
        let batches: Vec<_> = stores
            .iter()
            .map(|store| {
                let store = store.clone();
                let mut claims: Vec<Claim> = (0..40).map(|key| claim(&format!("{round}-{key}"))).collect();
                fastrand::shuffle(&mut claims);
                tokio::spawn(async move {
                    let claimed = store.claim(&claims).await.unwrap();
                    let mut owned: Vec<_> = claims
                        .iter()
                        .zip(&claimed)
                        .filter(|(_, claimed)| matches!(claimed, Claimed::Owner(_)))
                        .map(|(claim, _)| claim.clone())
                        .collect();
                    fastrand::shuffle(&mut owned);
                    let ends: Vec<_> = owned
                        .iter()
                        .map(|Claim { record, attempt, .. }| Finish {
                            record: *record,
                            attempt: *attempt,
                            outcome: Outcome::Released(Reason::Status),
                        })
                        .collect();
                    // Released at once, so that the conflict arms of the others take over.
                    let finished = store.finish(&ends).await.unwrap();
                    assert!(finished.iter().all(|finished| matches!(finished, Finished::Stored { .. })));
                    owned.len()
                })
            })
            .collect();
        let mut owners = 0;
        for batch in batches {
            owners += batch.await.unwrap();
        }
        assert!(owners >= 40);
    }
    drop(stores);
    tokio::time::sleep(Duration::from_millis(1_200)).await; // sessions report what they counted at most once a second
    assert_eq!(number(&mut raw, DEADLOCKS).await, before);
}

#[tokio::test]
async fn a_slice_may_differ_in_rerun() {
    let place = Place::new();
    let store = place.migrated().await;
    let (lost, held) = (rerunnable("rerun"), claim("held"));
    store.claim(&[lost, held]).await.unwrap();
    place.pass(LEASE).await;
    let claims = [claim("held"), rerunnable("rerun"), claim("new")];
    found!(
        store.claim(&claims).await.unwrap().as_slice(),
        [Claimed::Found(Found::InDoubt(Reason::LeaseExpired)), Claimed::Owner(_), Claimed::Owner(_)]
    );
}

#[tokio::test]
async fn a_claim_that_waited_for_an_answer_gives_that_answer() {
    const OWNED_AND_DONE: &str = "
        insert into idem_key (kid, scope, op, state, fence, epoch, attempt, fp_alg, fp, lease_until, created_at, expires_at, guard_until,
                              status, headers, body)
        select $1, 'acme', 'charge', 2, 1, 1, gen_random_uuid(), 1, $2, now(), now(), now() + '1 day', now() + '2 days', 201, '', 'late'";
    let place = Place::new();
    let store = place.migrated().await;
    let claim = claim("a");
    let kid = uuid::Uuid::from_bytes(*claim.record.as_bytes());
    let mut other = place.raw().await;
    let mut transaction = other.begin().await.unwrap();
    let insert = sqlx::query(OWNED_AND_DONE).bind(kid).bind(claim.fingerprint.digest().as_slice());
    insert.execute(&mut *transaction).await.unwrap();
    let waiting = tokio::spawn(async move { store.claim(&[claim]).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!waiting.is_finished());
    transaction.commit().await.unwrap();
    let claimed = waiting.await.unwrap().unwrap();
    found!(claimed.as_slice(), [Claimed::Found(Found::Replay(replay))] if replay.response.body.as_deref() == Some(b"late"));
}

#[tokio::test]
async fn a_locked_record_is_busy_to_renewals_and_unavailable_to_claims_that_wait_too_long() {
    let place = Place::new();
    let store = place.migrated().await.with_statement_timeout(Duration::from_millis(200));
    let (owner, ended) = (claim("a"), claim("released"));
    own(&store, &owner).await;
    own(&store, &ended).await;
    found!(finish(&store, &ended, Outcome::Released(Reason::Status)).await, Finished::Stored { .. });
    let mut other = place.raw().await;
    let mut lock = other.begin().await.unwrap();
    sqlx::raw_sql("select from idem_key for update").execute(&mut *lock).await.unwrap();
    let renewal = Renewal { record: owner.record, attempt: owner.attempt };
    assert_eq!(store.renew(&[renewal], LEASE).await.unwrap(), [Renewed::Busy]);
    for store in [store.clone(), store.clone().with_simple_protocol()] {
        found!(retry(&store, "a").await, Claimed::Found(Found::InFlight { .. })); // takes no lock
        let error = store.claim(&[claim("released")]).await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Unavailable, "{}", error.source);
        own(&store, &claim(&format!("{:?}", store.protocol))).await; // the connection is as good as before
    }
    lock.rollback().await.unwrap();
    assert_eq!(store.renew(&[renewal], LEASE).await.unwrap(), [Renewed::Held]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_03_a_dropped_verb_leaves_no_open_transaction() {
    let place = Place::new();
    let prepared = place.migrated().await.with_connections(2);
    for store in [prepared.clone(), prepared.with_simple_protocol()] {
        for micros in (0..3_000).step_by(50) {
            let (name, dropped) = (format!("{micros}-{:?}", store.protocol), store.clone());
            let claim = claim(&name);
            let sent = claim.clone();
            let task = tokio::spawn(async move { dropped.claim(&[sent]).await });
            std::thread::sleep(Duration::from_micros(micros));
            task.abort();
            own(&store, &claim).await; // sent again: whether it had happened or not, it is the same owner
            assert_eq!(find(&store, &name).await.attempts, 1);
        }
        const OPEN: &str = "select count(*) from pg_stat_activity
                             where state like 'idle in transaction%' and query like '%' || current_schema || '%'";
        assert_eq!(place.number(OPEN).await, 0);
    }
}

#[tokio::test]
async fn case_03_what_was_sent_runs_to_its_end_without_its_caller() {
    let place = Place::new();
    let store = place.migrated().await.with_connections(1);
    let first = claim("a");
    own(&store, &first).await;
    let end = |record| Finish { record, attempt: first.attempt, outcome: Outcome::Done(reply("x")) };
    store.finish(&[end(record("absent"))]).await.unwrap(); // prepares the statement
    tokio::time::sleep(Duration::from_millis(50)).await; // and gives the connection back
    start_and_drop(store.finish(&[end(first.record)]));
    own(&store, &claim("b")).await; // waits its turn on the one connection
    assert_eq!(find(&store, "a").await.state, State::Done);
}

/// Polls once, which sends the statement, then drops. On a busy machine the answer may be there already.
fn start_and_drop<T>(future: impl Future<Output = T>) {
    let _ = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
}

#[tokio::test]
async fn a_finish_or_a_decision_that_waited_goes_by_the_latest_row() {
    let place = Place::new();
    let store = place.migrated().await;
    let cases = [
        ("renewed", "update idem_key set lease_until = lease_until + interval '1 s'", true),
        ("taken", "update idem_key set attempt = gen_random_uuid(), fence = fence + 1000", false),
        ("settled", "update idem_key set state = 2, fence = fence + 1000, attempt = gen_random_uuid()", false),
    ];
    for (before, (name, change, counts)) in (1..).zip(cases) {
        let (runs, doubtful) = (claim(&format!("{name}-runs")), claim(&format!("{name}-in-doubt")));
        own(&store, &runs).await;
        own(&store, &doubtful).await;
        found!(finish(&store, &doubtful, Outcome::InDoubt(Reason::Panic)).await, Finished::Stored { .. });
        let seen = find(&store, &format!("{name}-in-doubt")).await.fence;
        let mut other = place.raw().await;
        let mut transaction = other.begin().await.unwrap();
        sqlx::raw_sql(change).execute(&mut *transaction).await.unwrap();
        let neighbour = claim(&format!("{name}-neighbour"));
        own(&store, &neighbour).await;
        let (finisher, operator) = (store.clone(), store.clone());
        let end =
            |claim: &Claim| Finish { record: claim.record, attempt: claim.attempt, outcome: Outcome::Done(reply("x")) };
        let ends = [end(&runs), end(&neighbour)];
        let finished = tokio::spawn(async move { finisher.finish(&ends).await.unwrap() });
        let in_doubt = format!("{name}-in-doubt");
        let resolved = tokio::spawn(async move { resolve(&operator, &in_doubt, seen, Resolution::Release).await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!finished.is_finished() && !resolved.is_finished(), "{name}");
        transaction.commit().await.unwrap();
        let finished = finished.await.unwrap();
        assert_eq!(matches!(finished[0], Finished::Stored { .. }), counts, "{name}: {finished:?}");
        assert!(matches!(finished[1], Finished::Stored { .. }), "{name}: {finished:?}");
        assert_eq!(resolved.await.unwrap(), counts, "{name}");
        let answered = "select count(*) from idem_key where headers is not null";
        assert_eq!(place.number(answered).await, before + 1, "{name}: a lost finish leaves no answer");
    }
}
