//! Faults of transactions.

use super::Fault;

pub(in super::super) const FOUND_BY: &[(Fault, &[&str])] = &[
    (
        Fault::SaysThatItHasNoTransactions,
        &[
            "a_store_has_the_transactions_that_it_says",
            "a_second_attempt_meanwhile_does_not_run",
            "a_takeover_undoes_an_open_step",
            "one_event_of_an_object_is_applied_at_a_time",
        ],
    ),
    (
        Fault::ShowsWhatItBegins,
        &[
            "a_store_has_the_transactions_that_it_says",
            "nothing_is_seen_before_its_commit",
            "an_outcome_without_an_answer_undoes_all",
            "what_is_dropped_leaves_nothing",
            "a_released_key_starts_afresh_in_a_transaction",
            "links_are_committed_with_the_outcome",
            "a_commit_of_the_bodys_own_is_refused",
            "a_rollback_of_the_bodys_own_loses_the_claim",
            "a_commit_by_another_attempt_keeps_nothing",
            "a_session_that_is_gone_has_committed_nothing",
            "an_order_is_undone_with_its_run",
            "one_event_of_an_object_is_applied_at_a_time",
            "a_note_is_purged_when_its_time_is_over",
            "notes_are_purged_in_batches",
        ],
    ),
    (
        Fault::CommitsWhateverItIsGiven,
        &[
            "an_outcome_without_an_answer_undoes_all",
            "without_a_claim_the_rows_alone_are_kept_or_undone",
            "an_order_is_undone_with_its_run",
            "notes_are_purged_in_batches",
        ],
    ),
    (
        Fault::KeepsTheDroppedClaim,
        &[
            "a_store_has_the_transactions_that_it_says",
            "an_outcome_without_an_answer_undoes_all",
            "what_is_dropped_leaves_nothing",
            "a_released_key_starts_afresh_in_a_transaction",
            "links_are_committed_with_the_outcome",
            "a_commit_of_the_bodys_own_is_refused",
            "a_session_that_is_gone_has_committed_nothing",
            "an_order_is_undone_with_its_run",
            "one_event_of_an_object_is_applied_at_a_time",
            "a_note_is_purged_when_its_time_is_over",
            "notes_are_purged_in_batches",
        ],
    ),
    (
        Fault::GivesTheDroppedBack,
        &[
            "an_outcome_without_an_answer_undoes_all",
            "what_is_dropped_leaves_nothing",
            "a_session_that_is_gone_has_committed_nothing",
        ],
    ),
    (Fault::BeginsUnseen, &["a_second_attempt_meanwhile_does_not_run", "one_of_many_transactions_runs"]),
    (
        Fault::BeginsWhateverIsThere,
        &[
            "nothing_is_seen_before_its_commit",
            "an_outcome_without_an_answer_undoes_all",
            "what_is_dropped_leaves_nothing",
            "a_second_attempt_meanwhile_does_not_run",
            "one_of_many_transactions_runs",
            "a_transaction_is_refused_as_a_claim_is",
            "a_released_key_starts_afresh_in_a_transaction",
            "an_answer_is_kept_without_its_rows",
            "a_commit_of_the_bodys_own_is_refused",
            "a_rollback_of_the_bodys_own_loses_the_claim",
            "a_commit_by_another_attempt_keeps_nothing",
            "a_session_that_is_gone_has_committed_nothing",
            "a_stale_event_is_done",
        ],
    ),
    (Fault::CountsTransactionsFromOne, &["a_released_key_starts_afresh_in_a_transaction"]),
    (Fault::ForgetsLinksOfCommits, &["links_are_committed_with_the_outcome"]),
    (Fault::LinksBeforeTheOutcome, &["links_are_committed_with_the_outcome"]),
    (Fault::KeepsRowsWithAnyAnswer, &["an_answer_is_kept_without_its_rows", "an_order_goes_with_the_rows"]),
    (
        Fault::LetsBodiesCommit,
        &["a_commit_of_the_bodys_own_is_refused", "a_commit_of_the_bodys_own_is_refused_in_a_step"],
    ),
    (
        Fault::AnswersAfterARollback,
        &[
            "a_commit_of_the_bodys_own_is_refused",
            "a_rollback_of_the_bodys_own_loses_the_claim",
            "a_commit_of_the_bodys_own_is_refused_in_a_step",
            "a_rollback_of_the_bodys_own_loses_the_step",
        ],
    ),
    (Fault::CommitsUnfenced, &["a_commit_by_another_attempt_keeps_nothing"]),
    (
        Fault::TakesSilenceForYes,
        &["a_session_that_is_gone_has_committed_nothing", "a_step_of_a_session_that_is_gone_is_not_committed"],
    ),
    (Fault::KeepsNothingWithoutAClaim, &["without_a_claim_the_rows_alone_are_kept_or_undone"]),
];
