//! What the purge does to the server and to those who use it meanwhile.

use std::sync::Arc;

use super::*;
use crate::{
    conformance::{
        recorded::start_of,
        steps::{GUARD, claim, finish, own, reply, rerunnable, run},
    },
    state::Reason,
    store::{Claim, Outcome, Purge, Purged, Store, Strip, tests::purging},
};

async fn processes() -> (Place, Vec<Arc<dyn Store>>) {
    let place = Place::new();
    place.migrated().await;
    let stores = (0..3).map(|_| Arc::new(place.store()) as Arc<dyn Store>).collect();
    (place, stores)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scenario_96_what_is_claimed_again_survives_purges() {
    let (place, stores) = processes().await;
    purging::reclaimed(&stores, &place, 10, 60).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scenario_97_a_retry_during_a_purge_gets_a_whole_answer_or_a_fresh_run() {
    let (place, stores) = processes().await;
    purging::replayed(&stores, &place, 5).await;
}

/// An argument is kept in the clear, so it goes with its record.
#[tokio::test]
async fn clause_25_a_purge_removes_the_input_too() {
    let place = Place::new();
    let store = place.migrated().await;
    let mut raw = place.raw().await;
    for key in ["done", "failed"] {
        let claim = Claim { input: Some("{}".into()), ..rerunnable(key) };
        own(&store, &claim).await;
        let outcome = if key == "done" { Outcome::Done(reply("x")) } else { Outcome::Resumable(Reason::Status) };
        finish(&store, &claim, outcome).await;
    }
    assert_eq!(number(&mut raw, "select count(*) from idem_input").await, 2);
    place.pass(GUARD * 2).await;
    assert_eq!(store.purge(&Purge::at_any_time(10)).await.unwrap().records, 1);
    assert_eq!(number(&mut raw, "select count(*) from idem_input").await, 1, "of what may be run again");
}

#[tokio::test]
async fn scenario_65_no_open_or_unknown_state_is_purged() {
    let place = Place::new();
    let store = place.migrated().await;
    for key in ["1", "2", "3", "4", "5", "6", "42"] {
        run(&store, key, Outcome::Done(reply("x"))).await;
    }
    let mut raw = place.raw().await;
    for state in [1_i16, 2, 3, 4, 5, 6, 42] {
        let kid = uuid::Uuid::from_bytes(*claim(&state.to_string()).record.as_bytes());
        let set = sqlx::query("update idem_key set state = $1 where kid = $2").bind(state).bind(kid);
        set.execute(&mut raw).await.unwrap();
    }
    place.pass(GUARD * 100).await;
    assert_eq!(
        store.purge(&Purge::at_any_time(1_000)).await.unwrap(),
        Purged { records: 3, more: false, refused: false }
    );
    assert_eq!(number(&mut raw, "select sum(state) from idem_key").await, 1 + 5 + 6 + 42);
    assert_eq!(
        number(&mut raw, "select count(*) from idem_key where headers is not null").await,
        4,
        "with their answers"
    );
}

/// A claim that starts afresh leaves the steps of the epoch before; no read shows them any more.
#[tokio::test]
async fn a_purge_removes_the_steps_of_every_epoch() {
    let place = Place::new();
    let store = place.migrated().await;
    for key in ["over", "over", "live"] {
        let owner = claim(key);
        own(&store, &owner).await;
        store.start_steps(&[start_of(&owner, "pay"), start_of(&owner, "mail")]).await.unwrap();
        if key == "over" {
            finish(&store, &owner, Outcome::Released(Reason::Status)).await;
        }
    }
    assert_eq!(place.number("select count(*) from idem_step").await, 6);
    place.pass(GUARD * 2).await;
    assert_eq!(store.purge(&Purge::at_any_time(100)).await.unwrap().records, 1);
    assert_eq!(place.number("select count(*) from idem_step").await, 2);
}

const FILL: &str = "
    insert into idem_key (kid, scope, op, state, fence, epoch, attempt, fp_alg, fp, lease_until, created_at, expires_at, guard_until)
    select gen_random_uuid(), 'acme', 'charge', 2, 1, 1, gen_random_uuid(), 1, '', at, at, at, at
      from generate_series(1, 20000) n, lateral (select now() + (n - 2000.5) * interval '1 minute' as at) times";

/// Whatever the planner knows: a table that has grown may not be scanned for a step.
#[tokio::test]
async fn steps_are_found_by_their_records() {
    let place = Place::new();
    let store = place.migrated().await;
    store.steps(claim("a").record).await.unwrap();
    let mut connection = store.verbs().connections.lend().await;
    for (statement, args) in store.verbs().statements.steps.tried() {
        let explain = format!("explain {}", super::super::argument::rendered(statement, &args));
        let plan: Vec<String> = sqlx::query_scalar(AssertSqlSafe(explain)).fetch_all(&mut *connection).await.unwrap();
        let plan = plan.join("\n");
        assert!(plan.contains("Index Scan using idem_step_pkey") && !plan.contains("Seq Scan"), "{plan}");
    }
}

/// Also where the plan was made while the tables were empty.
#[tokio::test]
async fn a_purge_finds_what_is_over_by_its_index() {
    let place = Place::new();
    let store = place.migrated().await;
    let strip = Strip { late: GUARD, back: GUARD, after: None, limit: 100 };
    for _ in 0..2 {
        store.due().await.unwrap();
        store.purge(&Purge::at_any_time(100)).await.unwrap();
        store.strip(&strip).await.unwrap();
    }
    place.execute(FILL).await;
    let due = store.due().await.unwrap();
    assert_eq!(due.records, 1_999, "one is within the minute");
    assert_eq!(due.of, 20_000);
    let mut raw = place.raw().await;
    let mut connection = store.verbs().purging.lend().await;
    for (statement, args) in store.verbs().statements.purging.tried() {
        let explain = format!("explain {}", super::super::argument::rendered(statement, &args));
        let plan: Vec<String> = sqlx::query_scalar(AssertSqlSafe(explain)).fetch_all(&mut *connection).await.unwrap();
        let plan = plan.join("\n");
        assert!(
            plan.contains("Index Scan using idem_key_guard") || plan.contains("Only Scan using idem_key_guard"),
            "{plan}"
        );
        assert!(!plan.contains("Seq Scan on idem_key") && !plan.contains("Bitmap"), "{plan}");
    }
    connection.give_back();
    assert_eq!(
        store.purge(&Purge::at_any_time(100)).await.unwrap(),
        Purged { records: 100, more: true, refused: false }
    );
    store.strip(&strip).await.unwrap();
    drop(store);
    const SCANS: &str = "select sum(seq_scan)::int8 from pg_stat_user_tables where schemaname = current_schema
                            and relname in ('idem_key', 'idem_link')";
    tokio::time::sleep(Duration::from_millis(1_200)).await; // sessions report what they counted at most once a second
    assert_eq!(number(&mut raw, SCANS).await, 5, "those that built the indexes");
}

/// The one connection for purges is stuck; claims have their own.
#[tokio::test]
async fn no_claim_waits_for_a_purge() {
    let place = Place::new();
    let store = place.migrated().await.with_connections(1).with_statement_timeout(Duration::from_secs(3));
    run(&store, "over", Outcome::Done(reply("x"))).await;
    place.pass(GUARD * 2).await;
    let mut other = place.raw().await;
    let mut lock = other.begin().await.unwrap();
    sqlx::raw_sql("lock table idem_link in access exclusive mode").execute(&mut *lock).await.unwrap();
    let purger = store.clone();
    let purging = tokio::spawn(async move { purger.purge(&Purge::at_any_time(100)).await });
    until_somebody_waits(&place).await;
    own(&store, &claim("another")).await;
    lock.commit().await.unwrap();
    assert_eq!(purging.await.unwrap().unwrap().records, 1);
}
