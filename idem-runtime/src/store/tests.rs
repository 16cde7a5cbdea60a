//! What every store must do. Each case is a plain function of any store, run for each by [`conformance!`].

pub(crate) mod claims;
pub(crate) mod finishes;
pub(crate) mod operators;
pub(crate) mod windows;

use std::time::SystemTime;

use bytes::Bytes;

use super::*;
use crate::{
    fingerprint::Fingerprint,
    key::{Key, Scope},
    state::{Reason, State},
};

/// Moves a store's time, for the cases that need it.
#[async_trait::async_trait]
pub(crate) trait Clock: Sync {
    /// Lets `by` pass for every record.
    async fn pass(&self, by: Duration);
}

/// One test per case, each with a fresh `(guard, store, clock)`. In brackets: arguments of `#[tokio::test]`.
macro_rules! conformance {
    ($fresh:path, $flags:tt) => {
        conformance! { plain $fresh, $flags, claims:
            first_claim_owns
            second_claim_is_in_flight
            scenario_53_a_claim_sent_again_is_still_the_owners
            clause_03_a_mismatch_is_told_before_anything_else
            digests_of_another_algorithm_are_not_compared
            a_slice_is_answered_in_order
            scenario_10_one_of_many_claims_wins
            peek_finds_what_a_claim_would
            peek_takes_nothing
        }
        conformance! { plain $fresh, $flags, finishes:
            done_is_replayed_byte_for_byte
            an_empty_body_is_kept
            a_body_that_is_not_kept_leaves_its_status
            a_plain_value_has_no_status
            a_finish_sent_again_is_stored
            another_end_by_the_same_attempt_is_lost
            another_attempt_finishes_nothing
            a_lost_record_does_not_fail_its_neighbours
            a_rejection_is_replayed_to_the_same_payload_only
            a_released_key_starts_afresh
            in_doubt_holds
            t11_a_late_end_settles_what_its_own_attempt_left_in_doubt
            a_lease_is_renewed_until_the_run_ends
        }
        conformance! { plain $fresh, $flags, operators:
            find_shows_the_record
            links_are_kept_once_and_in_order
            links_belong_to_their_epoch
            resolve_compares_the_fence
            resolve_leaves_a_live_run_alone
            resolve_completes
            resolve_voids
            resolve_releases_what_has_ended_by_its_own_report
        }
        conformance! { timed $fresh, $flags, windows:
            an_expired_lease_is_in_doubt
            scenario_47_a_late_owner_completes_if_nobody_took_over
            a_rerun_takes_over_an_expired_lease
            clause_12_an_answer_is_replayed_then_refused_then_runs_afresh
            case_56_one_of_many_runs_an_expired_record_afresh
            a_rejection_lasts_as_long_as_it_says
            a_rejection_does_not_outlast_its_ttl
            what_is_in_doubt_never_expires
            an_answer_that_comes_late_is_not_run_again_by_the_next_retry
            scenario_49_a_zombie_of_a_released_run_is_shut_out
            a_voided_key_does_not_answer_from_an_earlier_epoch
            a_renewed_lease_ends_later
        }
    };
    (plain $fresh:path, $flags:tt, $group:ident: $($case:ident)*) => {$(
        #[tokio::test $flags]
        async fn $case() {
            let (_guard, store, _) = $fresh().await;
            $crate::store::tests::$group::$case(&store).await;
        }
    )*};
    (timed $fresh:path, $flags:tt, $group:ident: $($case:ident)*) => {$(
        #[tokio::test $flags]
        async fn $case() {
            let (_guard, store, clock) = $fresh().await;
            $crate::store::tests::$group::$case(&store, &clock).await;
        }
    )*};
}
#[cfg_attr(not(feature = "sqlite"), allow(unused_imports, reason = "the memory store finds the macro without it"))]
pub(crate) use conformance;

/// Fails unless the value matches; otherwise gives what the pattern binds.
macro_rules! found {
    ($value:expr, $pattern:pat $(if $guard:expr)? $(=> $bound:expr)?) => {
        match $value {
            $pattern $(if $guard)? => { $($bound)? }
            other => panic!("expected {}, found {other:?}", stringify!($pattern $(if $guard)?)),
        }
    };
}
pub(crate) use found;

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const TTL: Duration = Duration::from_secs(24 * 3600);
pub(crate) const GUARD: Duration = Duration::from_secs(48 * 3600);
pub(crate) const QUARANTINE: Duration = Duration::from_secs(600);

pub(crate) fn record(key: &str) -> RecordId {
    RecordId::new("test", &Scope::of("acme"), "charge", &Key::new(key).unwrap())
}

pub(crate) fn payload(n: u8) -> Fingerprint {
    Fingerprint::from_parts(1, [n; 32])
}

/// A claim of `key` by a new attempt.
pub(crate) fn claim(key: &str) -> Claim {
    Claim {
        record: record(key),
        scope: "acme".into(),
        op: "charge",
        attempt: Attempt::random(),
        fingerprint: payload(1),
        lease: LEASE,
        ttl: TTL,
        guard: GUARD,
        rerun: false,
    }
}

pub(crate) fn reply(body: &'static str) -> StoredResponse {
    StoredResponse { status: Some(201), headers: Bytes::from_static(b"location: /1"), body: Some(body.into()) }
}

pub(crate) async fn claim_one(store: &dyn Store, claim: &Claim) -> Claimed {
    let mut claimed = store.claim(std::slice::from_ref(claim)).await.unwrap();
    assert_eq!(claimed.len(), 1);
    claimed.remove(0)
}

pub(crate) async fn own(store: &dyn Store, claim: &Claim) -> Owned {
    found!(claim_one(store, claim).await, Claimed::Owner(owned) => owned)
}

/// What a new attempt with the same payload finds.
pub(crate) async fn retry(store: &dyn Store, key: &str) -> Claimed {
    claim_one(store, &claim(key)).await
}

pub(crate) async fn finish(store: &dyn Store, claim: &Claim, outcome: Outcome) -> Finished {
    let finish = Finish { record: claim.record, attempt: claim.attempt, outcome };
    let finished = store.finish(&[finish]).await.unwrap();
    assert_eq!(finished.len(), 1);
    finished[0]
}

/// Claims `key` and finishes it.
pub(crate) async fn run(store: &dyn Store, key: &str, outcome: Outcome) -> Claim {
    let claim = claim(key);
    own(store, &claim).await;
    found!(finish(store, &claim, outcome).await, Finished::Stored { .. });
    claim
}

pub(crate) async fn find(store: &dyn Store, key: &str) -> Record {
    store.find(record(key)).await.unwrap().unwrap()
}

pub(crate) async fn resolve(store: &dyn Store, key: &str, seen: Fence, to: Resolution) -> bool {
    let by = Audit { who: "ops".into(), why: "asked the provider".into() };
    store.resolve(&Resolve { record: record(key), seen, to, quarantine: QUARANTINE, by }).await.unwrap()
}

#[test]
fn every_case_is_run() {
    let list = include_str!("tests.rs");
    for source in [
        include_str!("tests/claims.rs"),
        include_str!("tests/finishes.rs"),
        include_str!("tests/operators.rs"),
        include_str!("tests/windows.rs"),
    ] {
        for line in source.lines() {
            let Some(case) = line.strip_prefix("pub(crate) async fn ").and_then(|rest| rest.split('(').next()) else {
                continue;
            };
            assert!(list.lines().any(|line| line.trim() == case), "`{case}` is not in the list of `conformance!`");
        }
    }
}

mod memory {
    use super::{Clock, MemoryStore};
    use std::time::Duration;

    struct Paused;

    #[async_trait::async_trait]
    impl Clock for Paused {
        async fn pass(&self, by: Duration) {
            tokio::time::advance(by).await;
        }
    }

    async fn fresh() -> ((), MemoryStore, Paused) {
        ((), MemoryStore::volatile(), Paused)
    }

    conformance!(fresh, (start_paused = true));

    #[tokio::test]
    async fn clones_share_their_records() {
        use super::{claim, own, retry};
        let store = MemoryStore::volatile();
        own(&store, &claim("k")).await;
        super::found!(retry(&store.clone(), "k").await, super::Claimed::Found(super::Found::InFlight { .. }));
        assert!(!format!("{store:?}").contains("charge"));
    }
}
