#![doc = include_str!("docs/store.md")]
// A case fails by panicking: that is how a test says what it found.
#![allow(clippy::unwrap_used, reason = "see above")]

pub mod claims;
pub mod committed;
pub mod decided;
pub mod finishes;
pub mod inputs;
pub mod listings;
pub mod operators;
pub mod ordered;
pub mod purges;
pub mod races;
pub mod recorded;
pub mod recoveries;
pub mod reruns;
pub(crate) mod steps;
pub mod transactions;
pub mod windows;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;

use crate::{
    fingerprint::Fingerprint,
    key::{Key, RecordId, Scope},
    state::{Reason, State},
    store::{
        Attempt, Audit, Begin, Begun, Claim, Claimed, Commit, Doubts, Fence, Finish, Finished, Found, Link, Outcome,
        Owned, Peek, Purge, Purged, Record, Renewal, Renewed, Resolution, Resolve, Store, StoreErrorKind,
        StoredResponse, Strip, Stripped,
    },
};

/// Moves a store's time, for the cases in [`windows`], [`listings`], [`recoveries`], [`reruns`], [`inputs`], [`purges`],
/// [`recorded`], [`decided`] and [`ordered`]. A store that reads its time from a database moves its records, their steps and its
/// notes of orders, and the time of its last purge, back instead.
#[async_trait::async_trait]
pub trait Clock: Send + Sync {
    /// Lets `by` pass for every record, and since the last purge.
    async fn pass(&self, by: Duration);
}

/// Makes one `#[tokio::test]` of each case, with a fresh store for each.
///
/// `store_conformance!(new_store)` takes the path of an `async fn() -> (guard, store)`; the guard (a folder, a
/// database of the test's own, or `()`) is dropped after the case. `store_conformance!(timed new_store_with_clock)`
/// adds the cases in [`windows`](crate::conformance::windows), [`listings`](crate::conformance::listings),
/// [`recoveries`](crate::conformance::recoveries), [`reruns`](crate::conformance::reruns), [`inputs`](crate::conformance::inputs) and [`purges`](crate::conformance::purges), for a store whose time can be moved; its constructor
/// gives `(guard, store, clock)`, the last a [`Clock`](crate::conformance::Clock), and runs on tokio's current-thread
/// runtime. `store_conformance!(steps new_store_with_clock)` adds those in [`recorded`](crate::conformance::recorded) and
/// [`decided`](crate::conformance::decided), for a store that keeps the steps of runs. `store_conformance!(bodies new_store_with_body)` adds those in
/// [`transactions`](crate::conformance::transactions) and [`committed`](crate::conformance::committed), for a store that has
/// them, and in them the steps of runs; its constructor gives
/// `(guard, store, body)`, the last a [`Body`](crate::conformance::transactions::Body).
/// `store_conformance!(ordered new_store_with_clock)` adds those in [`ordered`](crate::conformance::ordered), for a store that has
/// transactions, with a clock.
///
/// The crate that calls it needs `tokio` with the features `macros` and `rt-multi-thread`: the
/// [`races`](crate::conformance::races) run on several threads.
///
/// ```no_run
/// use idem_runtime::{MemoryStore, store_conformance};
///
/// async fn new_store() -> ((), MemoryStore) {
///     ((), MemoryStore::volatile())
/// }
///
/// store_conformance!(new_store);
/// ```
#[macro_export]
#[cfg_attr(docsrs, doc(cfg(feature = "conformance")))]
macro_rules! store_conformance {
    (timed $fresh:path) => {
        $crate::__store_cases! { timed $crate::__store_test, $fresh }
    };
    (steps $fresh:path) => {
        $crate::__store_cases! { steps $crate::__store_test, $fresh }
    };
    (bodies $fresh:path) => {
        $crate::__store_cases! { bodies $crate::__store_test, $fresh }
    };
    (ordered $fresh:path) => {
        $crate::__store_cases! { ordered $crate::__store_test, $fresh }
    };
    ($fresh:path) => {
        $crate::__store_cases! { plain $crate::__store_test, $fresh }
    };
}

/// The one list of all cases. Calls `$each! { kind $with, group: case.. }` for each group.
#[doc(hidden)]
#[macro_export]
macro_rules! __store_cases {
    (plain $each:path, $with:path) => {
        $each! { plain $with, claims:
            first_claim_owns
            second_claim_is_in_flight
            a_claim_sent_again_is_still_the_owners
            a_mismatch_is_told_before_anything_else
            digests_of_another_algorithm_are_not_compared
            another_scope_is_a_mismatch_by_any_algorithm
            a_slice_is_answered_in_order
            peek_finds_what_a_claim_would
            peek_takes_nothing
            peek_without_a_payload_finds_any
            a_store_has_the_transactions_that_it_says
        }
        $each! { plain $with, finishes:
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
            a_late_end_settles_what_its_own_attempt_left_in_doubt
            a_lease_is_renewed_until_the_run_ends
        }
        $each! { plain $with, operators:
            find_shows_the_record
            find_shows_whose_record_it_is
            links_are_kept_once_and_in_order
            links_belong_to_their_epoch
            resolve_compares_the_fence
            resolve_leaves_a_live_run_alone
            resolve_completes
            resolve_voids
            resolve_releases_what_has_ended_by_its_own_report
        }
        $each! { race $with, races:
            one_of_many_claims_wins
            one_of_many_takes_a_released_record
            slices_share_their_records_between_them
            a_retry_meets_the_run_or_its_whole_answer
            one_of_two_attempts_ends_the_run
            one_of_two_ends_by_one_attempt_counts
            a_lease_is_renewed_or_taken_over
            a_late_owner_ends_its_run_or_is_taken_over
            an_operator_or_the_owner_settles_a_doubt
            one_of_two_operators_decides
        }
    };
    (timed $each:path, $with:path) => {
        $each! { timed $with, windows:
            an_expired_lease_is_in_doubt
            a_late_owner_completes_if_nobody_took_over
            a_rerun_takes_over_an_expired_lease
            a_rerun_by_another_scope_takes_nothing_over
            an_answer_is_replayed_then_refused_then_runs_afresh
            one_of_many_runs_an_expired_record_afresh
            a_rejection_lasts_as_long_as_it_says
            a_rejection_does_not_outlast_its_ttl
            what_is_in_doubt_never_expires
            an_answer_that_comes_late_is_not_run_again_by_the_next_retry
            a_zombie_of_a_released_run_is_shut_out
            a_settled_doubt_guards_its_quarantine
            a_voided_key_does_not_answer_from_an_earlier_epoch
            a_renewed_lease_ends_later
            doubts_are_counted_by_operation
        }
        $each! { timed $with, listings:
            a_list_shows_what_is_asked_for
            pages_neither_repeat_nor_miss
            a_providers_id_finds_its_records
        }
        $each! { timed $with, recoveries:
            a_recovery_takes_doubts_of_its_operations
            a_recovery_leaves_a_silent_owner_its_grace
            what_is_due_longest_is_recovered_first
            an_owner_that_comes_after_a_recovery_is_lost
            what_is_put_off_is_tried_later
            what_was_tried_too_often_is_left_to_operators
            a_quarantine_counts_from_the_owners_lease
            one_of_two_recoveries_takes_a_doubt
        }
        $each! { timed $with, reruns:
            a_failed_run_is_run_again
            both_sides_must_allow_a_rerun
            a_run_that_continues_gives_nothing_back
            a_late_owner_completes_what_it_left_to_be_run_again
            a_window_for_reruns_ends
            a_recovery_takes_what_was_not_run_again_in_time
            an_operator_settles_what_may_be_run_again
            what_is_resumed_is_run_again
            what_was_not_run_again_is_never_purged
        }
        $each! { timed $with, inputs:
            an_interrupted_run_is_found_with_its_input
            an_input_belongs_to_its_epoch
            only_what_was_interrupted_is_found
            an_interrupted_run_is_given_out_once_in_a_while
            what_is_resumed_is_found_at_once
        }
        $each! { timed $with, purges:
            what_is_over_is_purged
            a_purge_waits_for_the_windows_and_a_minute
            runs_and_doubts_are_never_purged
            a_purge_removes_at_most_its_limit
            a_purged_key_is_claimed_afresh
            a_purge_notes_its_time
            an_answer_is_dropped_when_its_record_only_refuses
            answers_are_dropped_in_slices
            a_record_that_is_claimed_again_survives_a_purge
            a_purge_after_too_long_removes_nothing
        }
    };
    (steps $each:path, $with:path) => {
        $each! { timed $with, recorded:
            a_step_is_noted_before_its_result
            a_step_stays_as_it_was_noted
            a_result_stays
            a_result_is_kept_byte_for_byte
            a_step_that_was_not_started_does_not_end
            steps_come_in_the_order_of_their_starts
            a_slice_of_steps_is_answered_in_order
            another_attempt_notes_nothing
            nothing_is_noted_after_the_end
            steps_belong_to_their_epoch
            a_run_that_continues_finds_the_steps
            a_late_owner_may_note_its_steps
            a_recovery_shuts_the_owner_out_of_its_steps
            the_age_of_a_step_counts_from_its_first_start
            steps_are_purged_with_their_record
            a_step_ends_or_its_run_is_taken_over
        }
        $each! { timed $with, decided:
            what_has_acted_is_not_released
            a_decided_result_is_found_by_the_next_run
            what_was_not_done_begins_anew_after_the_quarantine
            only_open_steps_are_decided_about
            a_stale_decision_changes_no_step
            a_late_end_or_a_decision_counts
        }
    };
    (ordered $each:path, $with:path) => {
        $each! { timed $with, ordered:
            an_older_event_is_stale
            an_equal_event_is_stale
            a_stale_event_lowers_nothing
            a_stale_event_is_done
            another_object_has_an_order_of_its_own
            an_order_is_undone_with_its_run
            an_order_goes_with_the_rows
            one_event_of_an_object_is_applied_at_a_time
            a_note_is_purged_when_its_time_is_over
            a_later_event_prolongs_its_note
            notes_are_purged_in_batches
        }
    };
    (bodies $each:path, $with:path) => {
        $each! { bodies $with, transactions:
            nothing_is_seen_before_its_commit
            an_outcome_without_an_answer_undoes_all
            what_is_dropped_leaves_nothing
            a_second_attempt_meanwhile_does_not_run
            one_of_many_transactions_runs
            a_transaction_is_refused_as_a_claim_is
            a_released_key_starts_afresh_in_a_transaction
            links_are_committed_with_the_outcome
            an_answer_is_kept_without_its_rows
            a_commit_of_the_bodys_own_is_refused
            a_rollback_of_the_bodys_own_loses_the_claim
            a_commit_by_another_attempt_keeps_nothing
            a_session_that_is_gone_has_committed_nothing
            without_a_claim_the_rows_alone_are_kept_or_undone
        }
        $each! { bodies $with, committed:
            a_step_and_its_rows_are_one_commit
            a_step_that_is_dropped_leaves_nothing
            a_step_is_begun_by_its_owner_only
            a_step_that_was_started_is_committed
            a_takeover_undoes_an_open_step
            a_commit_of_another_step_keeps_nothing
            a_commit_of_the_bodys_own_is_refused_in_a_step
            a_rollback_of_the_bodys_own_loses_the_step
            a_step_of_a_session_that_is_gone_is_not_committed
        }
    };
}

/// A test per case.
#[doc(hidden)]
#[macro_export]
macro_rules! __store_test {
    (plain $fresh:path, $group:ident: $($case:ident)*) => {$(
        #[tokio::test]
        async fn $case() {
            let (_guard, store) = $fresh().await;
            $crate::conformance::$group::$case(&store).await;
        }
    )*};
    (race $fresh:path, $group:ident: $($case:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $case() {
            let (_guard, store) = $fresh().await;
            $crate::conformance::$group::$case(::std::sync::Arc::new(store)).await;
        }
    )*};
    (timed $fresh:path, $group:ident: $($case:ident)*) => {$(
        #[tokio::test]
        async fn $case() {
            let (_guard, store, clock) = $fresh().await;
            $crate::conformance::$group::$case(&store, &clock).await;
        }
    )*};
    (bodies $fresh:path, $group:ident: $($case:ident)*) => {$(
        #[tokio::test]
        async fn $case() {
            let (_guard, store, body) = $fresh().await;
            $crate::conformance::$group::$case(&store, &body).await;
        }
    )*};
}

#[cfg(test)]
mod tests;
