//! Which cases find faults in what is known of orders.

use super::Fault;

pub(in super::super) const FOUND_BY: &[(Fault, &[&str])] = &[
    (
        Fault::LooksAtNoOrder,
        &[
            "an_older_event_is_stale",
            "an_equal_event_is_stale",
            "a_stale_event_lowers_nothing",
            "a_stale_event_is_done",
            "another_object_has_an_order_of_its_own",
            "an_order_goes_with_the_rows",
            "one_event_of_an_object_is_applied_at_a_time",
            "a_note_is_purged_when_its_time_is_over",
            "a_later_event_prolongs_its_note",
            "notes_are_purged_in_batches",
        ],
    ),
    (Fault::AppliesEqualEvents, &["an_equal_event_is_stale"]),
    (Fault::NotesWhatCameLast, &["a_stale_event_lowers_nothing"]),
    (Fault::AsksTheOrderFirst, &["a_stale_event_is_done"]),
    (
        Fault::HasOneOrderForAll,
        &[
            "another_object_has_an_order_of_its_own",
            "one_event_of_an_object_is_applied_at_a_time",
            "notes_are_purged_in_batches",
        ],
    ),
    (
        Fault::KeepsUndoneNotes,
        &["an_order_is_undone_with_its_run", "an_order_goes_with_the_rows", "notes_are_purged_in_batches"],
    ),
    (Fault::KeepsNotesWithoutRows, &["an_order_goes_with_the_rows"]),
    (Fault::NotesUnseen, &["one_event_of_an_object_is_applied_at_a_time"]),
    (Fault::KeepsTheClaimOfTheRefused, &["one_event_of_an_object_is_applied_at_a_time"]),
    (Fault::ForgetsNotesWhenTheyAreOver, &["a_note_is_purged_when_its_time_is_over", "notes_are_purged_in_batches"]),
    (Fault::PurgesNoNotes, &["a_note_is_purged_when_its_time_is_over", "notes_are_purged_in_batches"]),
    (Fault::PurgesNotesWithoutGrace, &["a_note_is_purged_when_its_time_is_over"]),
    (Fault::KeepsTheFirstTimeOfANote, &["a_later_event_prolongs_its_note"]),
    (Fault::PurgesAllNotesAtOnce, &["notes_are_purged_in_batches"]),
    (Fault::PurgesNotesAtAnyTime, &["notes_are_purged_in_batches"]),
    (Fault::StopsWhenTheRecordsAreGone, &["notes_are_purged_in_batches"]),
];
