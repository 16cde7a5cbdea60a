//! The look for doubts: what could slip through it, and what it costs.

use sqlx::Row as _;

use super::*;
use crate::{
    conformance::steps::{LEASE, claim, find, own, reply, resolve, run, survey},
    state::Reason,
    store::{Doubts, Outcome, Resolution, Store},
};

fn counts(doubts: &[Doubts]) -> Vec<(&str, u64)> {
    doubts.iter().map(|doubts| (&*doubts.op, doubts.count)).collect()
}

/// Moves what the look has noted about itself, as if `noted` and `back` ago.
async fn marks(place: &Place, noted: &str, back: &str) {
    let sql = format!(
        "update idem_meta set noted_until = now() - interval '{noted}', looked_back = now() - interval '{back}'"
    );
    let mut raw = place.raw().await;
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut raw).await.unwrap();
    raw.close().await.unwrap();
}

#[tokio::test]
async fn a_claim_that_was_slow_to_commit_is_found_by_the_look_back() {
    let place = Place::new();
    let store = place.migrated().await;
    run(&store, "k", Outcome::InDoubt(Reason::Panic)).await;
    place.pass(Duration::from_secs(60)).await;
    marks(&place, "30 seconds", "1 second").await;
    assert_eq!(counts(&survey(&store).await), [], "it lies behind the mark");
    marks(&place, "30 seconds", "31 seconds").await;
    assert_eq!(counts(&survey(&store).await), [("charge", 1)]);
    assert_eq!(counts(&survey(&store).await), [("charge", 1)], "it stays until it is settled");
}

#[tokio::test]
async fn a_clock_that_was_set_back_hides_nothing() {
    let place = Place::new();
    let store = place.migrated().await;
    run(&store, "k", Outcome::InDoubt(Reason::Panic)).await;
    place.pass(Duration::from_secs(20)).await;
    marks(&place, "-1 hours", "-1 hours").await;
    assert_eq!(counts(&survey(&store).await), [("charge", 1)]);
    let ahead = place.number("select count(*) from idem_meta where noted_until > now()").await;
    assert_eq!(ahead, 0, "the mark has come back to the present");
}

#[tokio::test]
async fn a_look_after_a_weekend_comes_up_to_the_present_in_steps() {
    let place = Place::new();
    let store = place.migrated().await;
    marks(&place, "2 hours", "2 hours").await;
    own(&store, &claim("k")).await;
    place.pass(LEASE).await; // the marks as well
    assert!(store.survey().await.unwrap().behind);
    assert_eq!(counts(&survey(&store).await), [("charge", 1)]);
}

/// The mark is the one row that all processes write, so they must not queue for it.
#[tokio::test]
async fn a_process_at_the_mark_does_not_hold_the_others_up() {
    let place = Place::new();
    let store = place.migrated().await;
    run(&store, "k", Outcome::InDoubt(Reason::Panic)).await;
    place.pass(Duration::from_secs(5)).await;
    assert_eq!(counts(&survey(&store).await), [("charge", 1)]);
    let mut raw = place.raw().await;
    let mut other = raw.begin().await.unwrap();
    sqlx::raw_sql("select from idem_meta for update").execute(&mut *other).await.unwrap();
    assert_eq!(counts(&survey(&store).await), [("charge", 1)]);
    other.rollback().await.unwrap();
}

#[tokio::test]
async fn what_is_settled_is_struck_and_a_quiet_look_writes_nothing() {
    let place = Place::new();
    let store = place.migrated().await;
    run(&store, "k", Outcome::InDoubt(Reason::Panic)).await;
    place.pass(Duration::from_secs(5)).await;
    survey(&store).await;
    assert_eq!(place.number("select count(*) from idem_open").await, 1);
    let seen = find(&store, "k").await.fence;
    assert!(resolve(&store, "k", seen, Resolution::Complete(reply("x"))).await);
    survey(&store).await;
    assert_eq!(place.number("select count(*) from idem_open").await, 0);
    const WRITTEN: &str = "select xmin::text::int8 from idem_meta";
    let before = place.number(WRITTEN).await;
    survey(&store).await;
    assert_eq!(place.number(WRITTEN).await, before);
}

/// A plan that is made while the table is empty must not read all of it when it has grown.
#[tokio::test]
async fn a_look_reads_only_the_newest_pages_of_a_table_that_has_grown() {
    let place = Place::new();
    let store = place.migrated().await.with_connections(1);
    survey(&store).await;
    place
        .execute(
            "insert into idem_key (kid, scope, op, state, fence, epoch, attempt, fp_alg, fp, lease_until, created_at, expires_at, guard_until)
             select gen_random_uuid(), 'acme', 'charge', 2, 1, 1, gen_random_uuid(), 1, '', now(), now() - n * interval '1 second',
                    now() + '1 day', now() + '2 days'
               from generate_series(100000, 1, -1) n;
             select brin_summarize_new_values('idem_key_created')",
        )
        .await;
    let explain = format!("explain (analyze, buffers) {}", store.verbs().statements.note_open.text());
    let mut connection = store.verbs().connections.lend().await;
    let plan = sqlx::raw_sql(AssertSqlSafe(explain)).fetch_all(&mut *connection).await.unwrap();
    let plan: Vec<String> = plan.iter().map(|line| line.get(0)).collect();
    let plan = plan.join("\n");
    assert!(plan.contains("Bitmap Index Scan on idem_key_created"), "{plan}");
    assert!(!plan.contains("Seq Scan on idem_key "), "{plan}");
    let pages = plan.split("Heap Blocks: lossy=").nth(1).and_then(|rest| rest.split_whitespace().next());
    let pages: u32 = pages.map_or(0, |pages| pages.parse().unwrap());
    assert!(pages <= 64, "{pages} pages: {plan}");
}
