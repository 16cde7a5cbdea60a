//! Scenarios 41 … 43: `kill -9` at every point of a run.

use std::time::Duration;

use super::{FOREVER, PAST_THE_LEASE, assert_outcome_unknown, killed_in, refused};
use crate::support::{
    Backend,
    process::{ACME, Disk, card, slow},
};

#[tokio::test]
async fn scenario_41_killed_before_the_claim_commits_leaves_nothing() {
    let (disk, payments) = killed_in("insert on idem_key", "/charges", &card("tok_visa")).await;
    assert_eq!((disk.records().await, disk.effects().await), (0, 0));
    let retry = payments.pay("/charges", "k1", &card("tok_visa")).await;
    assert_eq!((retry.status, retry.replayed, disk.effects().await), (201, false, 1));
}

/// Also case 05: what blocks the key is the lease, never the `ttl` of 24 h.
#[tokio::test]
async fn scenario_42_killed_after_the_claim_is_in_progress_until_the_lease_ends_and_unknown_then() {
    let disk = Disk::new().await;
    let payments = disk.start().await;
    let payment = slow(FOREVER);
    let caller = payments.pay_meanwhile("/payouts", "k1", &payment);
    disk.reaches(1).await;
    let leases =
        format!("select count(*) from idem_key where lease_until <= created_at + {}", disk.span(PAST_THE_LEASE));
    assert_eq!(disk.count(&leases).await, 1, "a lease, not a ttl");
    payments.kill().await;
    assert!(caller.await.unwrap().is_none());
    disk.prolong_leases(FOREVER).await;

    let payments = disk.start().await;
    let told = refused(&payments, "/payouts", "k1", &payment).await;
    assert_eq!((told.status, told.slug.as_str()), (409, "idempotency-in-progress"));
    assert!((1..=2).contains(&told.retry_after.unwrap()), "{:?}", told.retry_after);

    disk.pass(FOREVER + PAST_THE_LEASE).await;
    for _ in 0..2 {
        assert_outcome_unknown(&payments, "/payouts", "k1", &payment).await;
    }
    let other = refused(&payments, "/payouts", "k1", &card("tok_visa")).await;
    assert_eq!((other.status, other.slug.as_str()), (422, "idempotency-key-reused"));
    let attempts = disk.count("select attempts from idem_key").await;
    assert_eq!((disk.effects().await, attempts), (0, 1), "nothing ran again");
}

#[tokio::test]
async fn scenario_43_killed_between_effect_and_outcome_never_has_a_second_effect() {
    let payment = card("tok_visa");
    // While the run holds the write lock, the effect is there, its link is not.
    let (disk, payments) = killed_in("insert on idem_link", "/payouts", &payment).await;
    assert_eq!(disk.effects().await, 1);
    disk.pass(PAST_THE_LEASE).await;
    for _ in 0..2 {
        assert_outcome_unknown(&payments, "/payouts", "k1", &payment).await;
    }
    disk.pass(Duration::from_secs(3600)).await;
    assert_outcome_unknown(&payments, "/payouts", "k1", &payment).await;
    assert_eq!(disk.effects().await, 1);
}

/// Killed while the effect, or its outcome, was being committed.
#[tokio::test]
async fn case_02_killed_within_a_commit() {
    let answering = Backend::of_this_run().answering();
    for (write, effects, path) in [
        ("insert on gateway_effects", 0, "/payouts"),
        ("insert on idem_link", 1, "/payouts"),
        (answering, 1, "/payouts"),
    ] {
        let (disk, payments) = killed_in(write, path, &card("tok_visa")).await;
        assert_eq!(disk.effects().await, effects, "{write}");
        disk.pass(PAST_THE_LEASE).await;
        assert_outcome_unknown(&payments, path, "k1", &card("tok_visa")).await;
        assert_eq!(disk.effects().await, effects, "{write}");
    }
}

#[tokio::test]
async fn case_02_killed_after_the_outcome_was_stored_replays() {
    let disk = Disk::new().await;
    let payments = disk.start().await;
    // Nobody listens any more, as if the answer had been lost on its way.
    let caller = payments.pay_meanwhile("/payouts", "k1", &card("tok_visa"));
    disk.reaches(2).await;
    payments.kill().await;
    caller.abort();

    let payments = disk.start().await;
    let retry = payments.pay("/payouts", "k1", &card("tok_visa")).await;
    assert_eq!((retry.status, retry.replayed, disk.effects().await), (201, true, 1));
    let paid: serde_json::Value = serde_json::from_str(&retry.body).unwrap();
    assert_eq!(payments.listing("/payouts", ACME).await, [paid]);
}
