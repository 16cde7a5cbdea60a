//! Which cases find faults in removing what is over.

use super::Fault;

pub(in super::super) const FOUND_BY: &[(Fault, &[&str])] = &[
    (
        Fault::PurgesNothing,
        &[
            "what_is_over_is_purged",
            "a_purge_waits_for_the_windows_and_a_minute",
            "a_purge_removes_at_most_its_limit",
            "a_purged_key_is_claimed_afresh",
            "a_purge_notes_its_time",
            "a_purge_after_too_long_removes_nothing",
            "steps_are_purged_with_their_record",
            "a_note_is_purged_when_its_time_is_over",
            "notes_are_purged_in_batches",
        ],
    ),
    (Fault::PurgesByTheReplayWindow, &["a_purge_waits_for_the_windows_and_a_minute"]),
    (Fault::PurgesWithoutGrace, &["a_purge_waits_for_the_windows_and_a_minute"]),
    (Fault::PurgesRuns, &["runs_and_doubts_are_never_purged", "steps_are_purged_with_their_record"]),
    (Fault::PurgesDoubts, &["runs_and_doubts_are_never_purged"]),
    (Fault::IgnoresTheLimit, &["a_purge_removes_at_most_its_limit"]),
    (Fault::StopsAtTheLimit, &["a_purge_removes_at_most_its_limit"]),
    (Fault::LeavesOldLinksLying, &["a_purged_key_is_claimed_afresh"]),
    (Fault::ChecksThenPurges, &["a_record_that_is_claimed_again_survives_a_purge"]),
    (Fault::TrustsTheClock, &["a_purge_after_too_long_removes_nothing", "notes_are_purged_in_batches"]),
    (Fault::NotesNoPurge, &["a_purge_notes_its_time", "a_purge_after_too_long_removes_nothing"]),
    (Fault::CountsTheDoubtfulAsDue, &["a_purge_notes_its_time"]),
    (Fault::StripsNothing, &["an_answer_is_dropped_when_its_record_only_refuses", "answers_are_dropped_in_slices"]),
    (Fault::StripsWhatIsDue, &["an_answer_is_dropped_when_its_record_only_refuses", "answers_are_dropped_in_slices"]),
    (Fault::StripsTheRecord, &["an_answer_is_dropped_when_its_record_only_refuses", "answers_are_dropped_in_slices"]),
    (Fault::ForgetsTheMark, &["answers_are_dropped_in_slices"]),
    (Fault::StripsFromTheBeginning, &["answers_are_dropped_in_slices"]),
];
