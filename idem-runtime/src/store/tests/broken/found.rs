//! Which cases find which fault, in the order of the suite.

mod forgetful;
pub(super) mod orders;
pub(super) mod purges;
pub(super) mod recoveries;
pub(super) mod reruns;
pub(super) mod steps;
pub(super) mod transactions;

use super::Fault;

pub(super) const FOUND_BY: &[(Fault, &[&str])] = &[
    (Fault::Nothing, &[]),
    (Fault::ForgetsAnswers, forgetful::ALL),
    (
        Fault::ChecksThenTakes,
        &[
            "one_of_many_claims_wins",
            "one_of_many_takes_a_released_record",
            "slices_share_their_records_between_them",
            "a_lease_is_renewed_or_taken_over",
            "a_late_owner_ends_its_run_or_is_taken_over",
            "one_of_many_runs_an_expired_record_afresh",
        ],
    ),
    (
        Fault::ChecksThenFinishes,
        &[
            "one_of_two_ends_by_one_attempt_counts",
            "a_late_owner_ends_its_run_or_is_taken_over",
            "an_operator_or_the_owner_settles_a_doubt",
        ],
    ),
    (Fault::ChecksThenRenews, &["a_lease_is_renewed_or_taken_over"]),
    (
        Fault::ChecksThenResolves,
        &[
            "an_operator_or_the_owner_settles_a_doubt",
            "one_of_two_operators_decides",
            "a_late_end_or_a_decision_counts",
        ],
    ),
    (
        Fault::WritesTheStateBeforeTheAnswer,
        &["a_retry_meets_the_run_or_its_whole_answer", "a_late_owner_ends_its_run_or_is_taken_over"],
    ),
    (
        Fault::FinishesUnfenced,
        &[
            "another_attempt_finishes_nothing",
            "a_lost_record_does_not_fail_its_neighbours",
            "a_released_key_starts_afresh",
            "a_late_end_settles_what_its_own_attempt_left_in_doubt",
            "resolve_completes",
            "resolve_releases_what_has_ended_by_its_own_report",
            "one_of_two_attempts_ends_the_run",
            "a_late_owner_ends_its_run_or_is_taken_over",
            "an_operator_or_the_owner_settles_a_doubt",
            "a_rerun_takes_over_an_expired_lease",
            "an_answer_is_replayed_then_refused_then_runs_afresh",
            "a_zombie_of_a_released_run_is_shut_out",
            "an_owner_that_comes_after_a_recovery_is_lost",
            "a_failed_run_is_run_again",
            "a_purged_key_is_claimed_afresh",
            "what_is_resumed_is_run_again",
        ],
    ),
    (
        Fault::RenewsUnfenced,
        &[
            "a_lease_is_renewed_until_the_run_ends",
            "a_lease_is_renewed_or_taken_over",
            "a_rerun_takes_over_an_expired_lease",
            "a_zombie_of_a_released_run_is_shut_out",
        ],
    ),
    (
        Fault::PurgesTheLive,
        &[
            "an_answer_is_replayed_then_refused_then_runs_afresh",
            "a_rejection_lasts_as_long_as_it_says",
            "what_is_in_doubt_never_expires",
            "an_answer_that_comes_late_is_not_run_again_by_the_next_retry",
            "what_was_not_run_again_is_never_purged",
            "a_settled_doubt_guards_its_quarantine",
            "a_purge_waits_for_the_windows_and_a_minute",
            "runs_and_doubts_are_never_purged",
            "an_answer_is_dropped_when_its_record_only_refuses",
            "what_is_resumed_is_run_again",
        ],
    ),
    (
        Fault::OverwritesTheSilent,
        &[
            "an_expired_lease_is_in_doubt",
            "a_late_owner_completes_if_nobody_took_over",
            "what_is_in_doubt_never_expires",
            "a_renewed_lease_ends_later",
            "both_sides_must_allow_a_rerun",
            "a_window_for_reruns_ends",
            "runs_and_doubts_are_never_purged",
        ],
    ),
    (
        Fault::OverwritesTheLive,
        &[
            "second_claim_is_in_flight",
            "another_scope_is_a_mismatch_by_any_algorithm",
            "a_slice_is_answered_in_order",
            "another_attempt_finishes_nothing",
            "a_lost_record_does_not_fail_its_neighbours",
            "find_shows_whose_record_it_is",
            "one_of_many_claims_wins",
            "one_of_many_takes_a_released_record",
            "slices_share_their_records_between_them",
            "a_retry_meets_the_run_or_its_whole_answer",
            "a_lease_is_renewed_or_taken_over",
            "a_late_owner_ends_its_run_or_is_taken_over",
            "an_expired_lease_is_in_doubt",
            "a_rerun_takes_over_an_expired_lease",
            "one_of_many_runs_an_expired_record_afresh",
            "a_renewed_lease_ends_later",
            "runs_and_doubts_are_never_purged",
            "an_interrupted_run_is_found_with_its_input",
        ],
    ),
    (
        Fault::RunsDoubtsAgain,
        &[
            "another_scope_is_a_mismatch_by_any_algorithm",
            "a_slice_is_answered_in_order",
            "in_doubt_holds",
            "an_expired_lease_is_in_doubt",
            "a_late_owner_completes_if_nobody_took_over",
            "what_is_in_doubt_never_expires",
            "a_voided_key_does_not_answer_from_an_earlier_epoch",
            "a_renewed_lease_ends_later",
            "an_owner_that_comes_after_a_recovery_is_lost",
            "both_sides_must_allow_a_rerun",
            "a_window_for_reruns_ends",
            "what_was_not_run_again_is_never_purged",
            "runs_and_doubts_are_never_purged",
            "an_answer_is_dropped_when_its_record_only_refuses",
            "what_is_resumed_is_run_again",
        ],
    ),
    (
        Fault::ComparesNoFingerprint,
        &[
            "a_mismatch_is_told_before_anything_else",
            "another_scope_is_a_mismatch_by_any_algorithm",
            "a_slice_is_answered_in_order",
            "peek_finds_what_a_claim_would",
            "a_rejection_is_replayed_to_the_same_payload_only",
            "an_expired_lease_is_in_doubt",
            "a_rerun_takes_over_an_expired_lease",
            "a_rerun_by_another_scope_takes_nothing_over",
            "an_answer_is_replayed_then_refused_then_runs_afresh",
            "a_failed_run_is_run_again",
        ],
    ),
    (Fault::ShutsOwnersOut, &["a_claim_sent_again_is_still_the_owners"]),
    (
        Fault::CountsFencesPerRecord,
        &[
            "first_claim_owns",
            "a_slice_is_answered_in_order",
            "a_purged_key_is_claimed_afresh",
            "an_interrupted_run_is_given_out_once_in_a_while",
            "only_what_was_interrupted_is_found",
        ],
    ),
    (Fault::ClaimsByPeeking, &["peek_takes_nothing"]),
    (
        Fault::AnswersInReverse,
        &["a_slice_is_answered_in_order", "both_sides_must_allow_a_rerun", "a_window_for_reruns_ends"],
    ),
    (
        Fault::PeeksWithoutTheFingerprint,
        &["another_scope_is_a_mismatch_by_any_algorithm", "peek_finds_what_a_claim_would"],
    ),
    (
        Fault::ComparesNoScope,
        &["another_scope_is_a_mismatch_by_any_algorithm", "a_rerun_by_another_scope_takes_nothing_over"],
    ),
    (Fault::PeeksByDigestsOnly, &["peek_without_a_payload_finds_any"]),
    (Fault::KeepsTheFirstScope, &["find_shows_whose_record_it_is"]),
    (
        Fault::ComparesDigestsOnly,
        &["digests_of_another_algorithm_are_not_compared", "another_scope_is_a_mismatch_by_any_algorithm"],
    ),
    (Fault::TakesBytesForText, &["done_is_replayed_byte_for_byte"]),
    (Fault::KeepsNoEmptyBody, &["an_empty_body_is_kept"]),
    (Fault::KeepsNoBodyAsEmpty, &["a_body_that_is_not_kept_leaves_its_status"]),
    (Fault::MakesUpAStatus, &["a_body_that_is_not_kept_leaves_its_status", "a_plain_value_has_no_status"]),
    (Fault::TakesNoEndTwice, &["a_finish_sent_again_is_stored", "a_failed_run_is_run_again"]),
    (
        Fault::LetsOwnersChangeTheirAnswer,
        &[
            "another_end_by_the_same_attempt_is_lost",
            "one_of_two_ends_by_one_attempt_counts",
            "a_late_owner_completes_what_it_left_to_be_run_again",
        ],
    ),
    (
        Fault::EndsOnlyWhatIsInFlight,
        &[
            "a_finish_sent_again_is_stored",
            "a_late_end_settles_what_its_own_attempt_left_in_doubt",
            "a_failed_run_is_run_again",
            "a_late_owner_completes_what_it_left_to_be_run_again",
        ],
    ),
    (
        Fault::ComparesTheLease,
        &[
            "a_late_owner_completes_if_nobody_took_over",
            "an_answer_that_comes_late_is_not_run_again_by_the_next_retry",
            "the_age_of_a_step_counts_from_its_first_start",
        ],
    ),
    (Fault::UndoesTheSlice, &["a_lost_record_does_not_fail_its_neighbours"]),
    (
        Fault::RenewsInWordsOnly,
        &[
            "a_lease_is_renewed_until_the_run_ends",
            "a_lease_is_renewed_or_taken_over",
            "a_renewed_lease_ends_later",
            "runs_and_doubts_are_never_purged",
        ],
    ),
    (
        Fault::ResolvesTheLive,
        &[
            "resolve_leaves_a_live_run_alone",
            "an_operator_or_the_owner_settles_a_doubt",
            "a_zombie_of_a_released_run_is_shut_out",
            "a_settled_doubt_guards_its_quarantine",
            "what_is_resumed_is_run_again",
            "what_was_not_done_begins_anew_after_the_quarantine",
        ],
    ),
    (
        Fault::KeepsRejectionsForTtl,
        &["a_rejection_is_replayed_to_the_same_payload_only", "a_rejection_lasts_as_long_as_it_says"],
    ),
    (Fault::KeepsRejectionsBeyondTtl, &["a_rejection_does_not_outlast_its_ttl"]),
    (Fault::CountsWindowsFromTheClaimOnly, &["an_answer_that_comes_late_is_not_run_again_by_the_next_retry"]),
    (Fault::LeavesOldAnswersLying, &["a_voided_key_does_not_answer_from_an_earlier_epoch"]),
    (
        Fault::ResolvesByAnyFence,
        &["resolve_compares_the_fence", "what_is_resumed_is_run_again", "a_stale_decision_changes_no_step"],
    ),
    (
        Fault::ResolvesWithoutANewAttempt,
        &[
            "resolve_completes",
            "an_operator_or_the_owner_settles_a_doubt",
            "a_zombie_of_a_released_run_is_shut_out",
            "what_is_resumed_is_run_again",
        ],
    ),
    (
        Fault::IgnoresTheQuarantine,
        &[
            "resolve_releases_what_has_ended_by_its_own_report",
            "a_zombie_of_a_released_run_is_shut_out",
            "a_settled_doubt_guards_its_quarantine",
            "a_quarantine_counts_from_the_owners_lease",
            "an_operator_settles_what_may_be_run_again",
            "what_was_not_done_begins_anew_after_the_quarantine",
        ],
    ),
    (Fault::TakesACutForAnEnd, &["resolve_releases_what_has_ended_by_its_own_report"]),
    (
        Fault::TakesVoidForRelease,
        &[
            "resolve_voids",
            "an_answer_that_comes_late_is_not_run_again_by_the_next_retry",
            "a_settled_doubt_guards_its_quarantine",
            "a_voided_key_does_not_answer_from_an_earlier_epoch",
            "an_operator_settles_what_may_be_run_again",
            "a_purged_key_is_claimed_afresh",
        ],
    ),
    (
        Fault::GuardsTheWindowsOnly,
        &["a_settled_doubt_guards_its_quarantine", "what_was_not_done_begins_anew_after_the_quarantine"],
    ),
    (
        Fault::GuardsTheQuarantineOnly,
        &[
            "an_answer_that_comes_late_is_not_run_again_by_the_next_retry",
            "a_settled_doubt_guards_its_quarantine",
            "a_recovery_takes_what_was_not_run_again_in_time",
        ],
    ),
    (Fault::ShowsItsOwnZero, &["find_shows_the_record"]),
    (Fault::SortsLinks, &["links_are_kept_once_and_in_order"]),
    (Fault::TakesLinksForTheCurrentEpoch, &["links_belong_to_their_epoch"]),
    (Fault::ListsTheSilentAsInFlight, &["a_list_shows_what_is_asked_for", "a_window_for_reruns_ends"]),
    (Fault::ListsAnyScope, &["a_list_shows_what_is_asked_for"]),
    (Fault::ListsTheYoung, &["a_list_shows_what_is_asked_for"]),
    (Fault::BeginsEachPageAnew, &["pages_neither_repeat_nor_miss"]),
    (Fault::PagesByCount, &["pages_neither_repeat_nor_miss"]),
    (Fault::FindsByIdAlone, &["a_providers_id_finds_its_records"]),
    (Fault::FindsByLinksOfTheEpoch, &["a_providers_id_finds_its_records"]),
];
