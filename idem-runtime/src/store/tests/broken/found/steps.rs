//! Faults of steps.

use super::Fault;

pub(in super::super) const FOUND_BY: &[(Fault, &[&str])] = &[
    (
        Fault::NotesStepsAtTheirEnd,
        &[
            "a_step_is_noted_before_its_result",
            "a_step_stays_as_it_was_noted",
            "a_step_that_was_not_started_does_not_end",
            "steps_come_in_the_order_of_their_starts",
            "a_slice_of_steps_is_answered_in_order",
            "another_attempt_notes_nothing",
            "nothing_is_noted_after_the_end",
            "steps_belong_to_their_epoch",
            "a_run_that_continues_finds_the_steps",
            "a_late_owner_may_note_its_steps",
            "a_recovery_shuts_the_owner_out_of_its_steps",
            "the_age_of_a_step_counts_from_its_first_start",
            "steps_are_purged_with_their_record",
            "a_step_ends_or_its_run_is_taken_over",
            "a_step_that_was_started_is_committed",
            "a_commit_of_another_step_keeps_nothing",
            "a_rollback_of_the_bodys_own_loses_the_step",
        ],
    ),
    (Fault::LetsStepsBeNotedAnew, &["a_step_stays_as_it_was_noted"]),
    (Fault::ChangesResults, &["a_result_stays"]),
    (Fault::TakesResultsForText, &["a_result_is_kept_byte_for_byte"]),
    (Fault::TakesAnEmptyResultForNone, &["a_result_is_kept_byte_for_byte"]),
    (Fault::MakesStepsOfResults, &["a_step_that_was_not_started_does_not_end", "steps_belong_to_their_epoch"]),
    (
        Fault::SortsSteps,
        &[
            "a_step_is_noted_before_its_result",
            "a_result_is_kept_byte_for_byte",
            "steps_come_in_the_order_of_their_starts",
            "a_run_that_continues_finds_the_steps",
            "a_late_owner_may_note_its_steps",
            "a_step_ends_or_its_run_is_taken_over",
        ],
    ),
    (Fault::AnswersStepsInReverse, &["a_slice_of_steps_is_answered_in_order"]),
    (
        Fault::NotesForAnybody,
        &[
            "a_slice_of_steps_is_answered_in_order",
            "another_attempt_notes_nothing",
            "steps_belong_to_their_epoch",
            "a_run_that_continues_finds_the_steps",
        ],
    ),
    (Fault::NotesAfterTheEnd, &["nothing_is_noted_after_the_end"]),
    (
        Fault::NotesUnfenced,
        &[
            "a_slice_of_steps_is_answered_in_order",
            "another_attempt_notes_nothing",
            "nothing_is_noted_after_the_end",
            "steps_belong_to_their_epoch",
            "a_run_that_continues_finds_the_steps",
            "a_recovery_shuts_the_owner_out_of_its_steps",
        ],
    ),
    (Fault::ShowsAnySteps, &["steps_belong_to_their_epoch"]),
    (
        Fault::ForgetsStepsWithTheirRun,
        &[
            "a_run_that_continues_finds_the_steps",
            "the_age_of_a_step_counts_from_its_first_start",
            "a_step_ends_or_its_run_is_taken_over",
        ],
    ),
    (
        Fault::ComparesTheLeaseOfSteps,
        &[
            "a_late_owner_may_note_its_steps",
            "the_age_of_a_step_counts_from_its_first_start",
            "a_step_ends_or_its_run_is_taken_over",
        ],
    ),
    (Fault::CountsStepsFromTheirLastStart, &["the_age_of_a_step_counts_from_its_first_start"]),
    (
        Fault::LeavesOldStepsLying,
        &[
            "steps_belong_to_their_epoch",
            "the_age_of_a_step_counts_from_its_first_start",
            "steps_are_purged_with_their_record",
        ],
    ),
    (Fault::ForgetsAllStepsWithAPurge, &["steps_are_purged_with_their_record"]),
    (Fault::ChecksThenNotes, &["a_step_ends_or_its_run_is_taken_over"]),
    (
        Fault::ShowsOpenSteps,
        &[
            "a_step_and_its_rows_are_one_commit",
            "a_step_that_is_dropped_leaves_nothing",
            "a_takeover_undoes_an_open_step",
            "a_commit_of_another_step_keeps_nothing",
            "a_rollback_of_the_bodys_own_loses_the_step",
            "a_step_of_a_session_that_is_gone_is_not_committed",
        ],
    ),
    (
        Fault::KeepsDroppedSteps,
        &["a_step_that_is_dropped_leaves_nothing", "a_step_of_a_session_that_is_gone_is_not_committed"],
    ),
    (
        Fault::BeginsAnyStep,
        &[
            "a_step_and_its_rows_are_one_commit",
            "a_step_that_is_dropped_leaves_nothing",
            "a_step_is_begun_by_its_owner_only",
            "a_step_that_was_started_is_committed",
            "a_takeover_undoes_an_open_step",
            "a_rollback_of_the_bodys_own_loses_the_step",
            "a_step_of_a_session_that_is_gone_is_not_committed",
        ],
    ),
    (
        Fault::BeginsNoStartedStep,
        &[
            "a_step_that_was_started_is_committed",
            "a_commit_of_the_bodys_own_is_refused_in_a_step",
            "a_rollback_of_the_bodys_own_loses_the_step",
        ],
    ),
    (Fault::HoldsTheRecordOfAStep, &["a_takeover_undoes_an_open_step"]),
    (Fault::ChecksTheRecordOfAStepFirst, &["a_takeover_undoes_an_open_step"]),
    (Fault::CommitsAnyStep, &["a_commit_of_another_step_keeps_nothing"]),
    (
        Fault::CommitsStepsWithoutRows,
        &[
            "a_step_and_its_rows_are_one_commit",
            "a_step_that_is_dropped_leaves_nothing",
            "a_step_is_begun_by_its_owner_only",
            "a_step_that_was_started_is_committed",
            "a_takeover_undoes_an_open_step",
            "a_rollback_of_the_bodys_own_loses_the_step",
            "a_step_of_a_session_that_is_gone_is_not_committed",
        ],
    ),
];
