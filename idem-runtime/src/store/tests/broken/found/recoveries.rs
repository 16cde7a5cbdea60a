//! Which cases find faults in recovering, and in looking for what is in doubt.

use super::Fault;

pub(in super::super) const FOUND_BY: &[(Fault, &[&str])] = &[
    (Fault::RecoversAnyOperation, &["a_recovery_takes_doubts_of_its_operations"]),
    (
        Fault::RecoversRuns,
        &[
            "a_recovery_takes_doubts_of_its_operations",
            "a_recovery_leaves_a_silent_owner_its_grace",
            "a_recovery_takes_what_was_not_run_again_in_time",
        ],
    ),
    (Fault::RecoversAll, &["a_recovery_takes_doubts_of_its_operations", "what_is_due_longest_is_recovered_first"]),
    (
        Fault::RecoversForNoReason,
        &[
            "a_recovery_takes_doubts_of_its_operations",
            "an_owner_that_comes_after_a_recovery_is_lost",
            "what_was_tried_too_often_is_left_to_operators",
            "a_recovery_takes_what_was_not_run_again_in_time",
        ],
    ),
    (
        Fault::RecoversWithoutANewAttempt,
        &["a_recovery_takes_doubts_of_its_operations", "an_owner_that_comes_after_a_recovery_is_lost"],
    ),
    (
        Fault::RecoversWithoutANewFence,
        &[
            "a_recovery_takes_doubts_of_its_operations",
            "what_is_put_off_is_tried_later",
            "what_was_tried_too_often_is_left_to_operators",
        ],
    ),
    (Fault::RecoversOpByOp, &["what_is_due_longest_is_recovered_first"]),
    (Fault::IgnoresTheGrace, &["a_recovery_leaves_a_silent_owner_its_grace"]),
    (Fault::TriesAtOnceAgain, &["a_recovery_takes_doubts_of_its_operations", "one_of_two_recoveries_takes_a_doubt"]),
    (Fault::TriesForEver, &["what_was_tried_too_often_is_left_to_operators"]),
    (Fault::KeepsCountingTries, &["what_was_tried_too_often_is_left_to_operators"]),
    (Fault::TakesATryForALease, &["a_quarantine_counts_from_the_owners_lease"]),
    (Fault::ChecksThenRecovers, &["one_of_two_recoveries_takes_a_doubt"]),
    (
        Fault::ForgetsToPutOff,
        &[
            "what_is_put_off_is_tried_later",
            "what_is_due_longest_is_recovered_first",
            "a_quarantine_counts_from_the_owners_lease",
        ],
    ),
    (Fault::PutsOffByAnyFence, &["what_is_put_off_is_tried_later"]),
    (Fault::CountsTheLive, &["doubts_are_counted_by_operation"]),
    (Fault::CountsReportsOnly, &["doubts_are_counted_by_operation", "a_window_for_reruns_ends"]),
];
