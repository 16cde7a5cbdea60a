//! What the purge does to the file and to those who use it meanwhile.

use std::sync::Arc;

use super::*;
use crate::{
    conformance::{
        recorded::start_of,
        steps::{GUARD, claim, finish, own, reply, rerunnable, run},
    },
    state::Reason,
    store::{Claim, Outcome, Purge, Purged, Store, purge::GRACE, tests::purging},
};

async fn processes() -> (Place, Vec<Arc<dyn Store>>, Shifted) {
    let place = Place::new();
    let stores: Vec<Arc<dyn Store>> = vec![Arc::new(place.migrated().await), Arc::new(place.store().await)];
    let clock = Shifted(place.file());
    (place, stores, clock)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scenario_96_what_is_claimed_again_survives_purges() {
    let (_place, stores, clock) = processes().await;
    purging::reclaimed(&stores, &clock, 6, 40).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scenario_97_a_retry_during_a_purge_gets_a_whole_answer_or_a_fresh_run() {
    let (_place, stores, clock) = processes().await;
    purging::replayed(&stores, &clock, 3).await;
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
    Shifted(place.file()).pass(GUARD * 2).await;
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
    for state in [1, 2, 3, 4, 5, 6, 42] {
        let kid = claim(&state.to_string()).record;
        let set = sqlx::query("update idem_key set state = ?1 where kid = ?2").bind(state).bind(&kid.as_bytes()[..]);
        set.execute(&mut raw).await.unwrap();
    }
    Shifted(place.file()).pass(GUARD * 100).await;
    assert_eq!(
        store.purge(&Purge::at_any_time(1_000)).await.unwrap(),
        Purged { records: 3, more: false, refused: false }
    );
    assert_eq!(number(&mut raw, "select sum(state) from idem_key").await, 1 + 5 + 6 + 42);
    assert_eq!(number(&mut raw, "select count(*) from idem_response").await, 4, "with their answers");
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
    Shifted(place.file()).pass(GUARD * 2).await;
    assert_eq!(store.purge(&Purge::at_any_time(100)).await.unwrap().records, 1);
    assert_eq!(place.number("select count(*) from idem_step").await, 2);
}

/// While the write lock is held others wait, so it is never held for a scan.
#[tokio::test]
async fn a_purge_finds_what_is_over_by_its_index_in_small_transactions() {
    let place = Place::new();
    let store = place.migrated().await;
    let mut raw = place.raw().await;
    for statement in crate::store::sqlite::purge::statements() {
        let plan = sqlx::query(sqlx::AssertSqlSafe(format!("explain query plan {statement}")));
        let rows = plan.fetch_all(&mut raw).await.unwrap();
        let steps: Vec<String> = rows.iter().map(|row| sqlx::Row::get(row, "detail")).collect();
        let index = if statement.contains("idem_order") { "idem_order_guard" } else { "idem_key_guard" };
        assert!(steps.iter().any(|step| step.contains(index)), "{steps:?}");
        assert!(steps.iter().all(|step| !step.starts_with("SCAN idem_")), "{steps:?} of {statement}");
        assert!(steps.iter().all(|step| !step.contains("TEMP B-TREE FOR ORDER BY")), "{steps:?} of {statement}");
    }
    own(&store, &claim("live")).await;
    let at = i64::try_from(GRACE.as_millis()).unwrap() + 1_000;
    sqlx::query(
        "with recursive n (n) as (select 1 union all select n + 1 from n where n < 600)
         insert into idem_key (kid, scope, op, state, reason, fence, attempt, attempts, epoch, fp_alg, fp,
                               lease_until, created_at, expires_at, guard_until)
         select randomblob(16), '', '', 2, 0, 1, randomblob(16), 1, 0, 1, zeroblob(32), at, at, at, at
           from n, (select unixepoch() * 1000 - ?1 as at)",
    )
    .bind(at)
    .execute(&mut raw)
    .await
    .unwrap();
    let due = store.due().await.unwrap();
    assert_eq!((due.records, due.of), (600, 600), "all are counted only where much is due");
    let mut sizes = Vec::new();
    loop {
        let purged = store.purge(&Purge::at_any_time(1_000)).await.unwrap();
        sizes.push(purged.records);
        if !purged.more {
            break;
        }
    }
    assert_eq!(sizes, [250, 250, 100]);
    assert_eq!(number(&mut raw, "select count(*) from idem_key").await, 1);
}

#[tokio::test]
async fn all_are_counted_where_much_is_due() {
    let place = Place::new();
    let store = place.migrated().await;
    for (records, over) in [(1_001, 3600), (500, -3600)] {
        sqlx::query(
            "with recursive n (n) as (select 1 union all select n + 1 from n where n < ?1)
             insert into idem_key (kid, scope, op, state, reason, fence, attempt, attempts, epoch, fp_alg, fp,
                                   lease_until, created_at, expires_at, guard_until)
             select randomblob(16), '', '', 2, 0, 1, randomblob(16), 1, 0, 1, zeroblob(32), at, at, at, at
               from n, (select (unixepoch() - ?2) * 1000 as at)",
        )
        .bind(records)
        .bind(over)
        .execute(&mut place.raw().await)
        .await
        .unwrap();
    }
    let due = store.due().await.unwrap();
    assert_eq!((due.records, due.of), (1_001, 1_501));
}
