//! Which cases find faults in running again what failed or was lost.

use super::Fault;

pub(in super::super) const FOUND_BY: &[(Fault, &[&str])] = &[
    (
        Fault::RunsAgainForAnybody,
        &[
            "both_sides_must_allow_a_rerun",
            "a_window_for_reruns_ends",
            "what_was_not_run_again_is_never_purged",
            "what_is_resumed_is_run_again",
        ],
    ),
    (Fault::GivesAnyRecordAWindow, &["both_sides_must_allow_a_rerun", "a_window_for_reruns_ends"]),
    (
        Fault::BeginsAnewWhatGoesOn,
        &[
            "a_rerun_takes_over_an_expired_lease",
            "a_failed_run_is_run_again",
            "a_run_that_continues_gives_nothing_back",
            "an_operator_settles_what_may_be_run_again",
            "a_run_that_continues_finds_the_steps",
            "the_age_of_a_step_counts_from_its_first_start",
            "a_step_ends_or_its_run_is_taken_over",
            "what_is_resumed_is_run_again",
            "an_input_belongs_to_its_epoch",
            "an_interrupted_run_is_found_with_its_input",
            "an_interrupted_run_is_given_out_once_in_a_while",
            "a_decided_result_is_found_by_the_next_run",
            "a_stale_decision_changes_no_step",
        ],
    ),
    (Fault::CountsTheWindowFromTheLastRun, &["a_window_for_reruns_ends"]),
    (Fault::ReleasesInAnyRun, &["a_run_that_continues_gives_nothing_back"]),
    (
        Fault::BelievesTheLastRun,
        &[
            "an_operator_settles_what_may_be_run_again",
            "what_is_resumed_is_run_again",
            "what_is_resumed_is_found_at_once",
            "a_decided_result_is_found_by_the_next_run",
            "a_stale_decision_changes_no_step",
            "only_open_steps_are_decided_about",
            "what_was_not_done_begins_anew_after_the_quarantine",
        ],
    ),
    (Fault::ResumesWhatIsHeld, &["what_is_resumed_is_run_again"]),
    (Fault::ResumesInTheOldWindow, &["what_is_resumed_is_run_again"]),
    (Fault::ResumesWithThePause, &["what_is_resumed_is_found_at_once"]),
    (Fault::KeepsTheInputsOfTheRefused, &["an_interrupted_run_is_found_with_its_input"]),
    (
        Fault::KeepsTheFirstInput,
        &["an_interrupted_run_is_found_with_its_input", "an_interrupted_run_is_given_out_once_in_a_while"],
    ),
    (Fault::GoesOnWithAnyInput, &["an_input_belongs_to_its_epoch"]),
    (Fault::GoesOnWithAnyOperation, &["only_what_was_interrupted_is_found"]),
    (Fault::GoesOnWithoutGrace, &["only_what_was_interrupted_is_found"]),
    (Fault::GoesOnWithoutLimit, &["an_interrupted_run_is_given_out_once_in_a_while"]),
    (Fault::GoesOnWithoutABackOff, &["an_interrupted_run_is_given_out_once_in_a_while"]),
    (Fault::GoesOnWithDoubts, &["only_what_was_interrupted_is_found"]),
    (Fault::GoesOnPastTheWindow, &["only_what_was_interrupted_is_found"]),
    (
        Fault::GivesOutAgainAtOnce,
        &[
            "an_interrupted_run_is_given_out_once_in_a_while",
            "only_what_was_interrupted_is_found",
            "what_is_resumed_is_found_at_once",
        ],
    ),
    (Fault::RecoversWhatWaits, &["a_recovery_takes_what_was_not_run_again_in_time"]),
    (Fault::PurgesWhatWaits, &["what_was_not_run_again_is_never_purged"]),
];
