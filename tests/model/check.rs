//! Each configuration by its letter. What is wrong must be found to be wrong.

use idem_model_tests::{
    A, Compare, Config, CutOff, Dedupe,
    Invariant::{self, Final, I1, I2, I3, I4, I6, I7, Payload},
    Mode,
    Reached::{
        self, Abandoned, ActedInDoubt, Arrived, Completed, Late, Lost, Purged, Rejected, Released, Resumed, RunAgain,
        RunsBesideAZombie, Stripped, Told,
    },
    Release::{self, AtOnce, Never, QuarantinedAtTheEnd, QuarantinedAtTheLook, Void},
    Settler::{Hook, Operator},
    play,
};
use idem_runtime::MemoryStore;

/// All invariants hold in all interleavings, and what makes the configuration worth checking is among them.
#[track_caller]
fn holds(name: &str, config: Config, reached: &[Reached]) {
    let report = config.check(reached);
    println!("{name}: holds in {} states", report.states);
    for &invariant in &report.broken {
        println!("  {invariant:?}: {}", config.break_it(invariant).unwrap_or_default());
    }
    assert_eq!(report.broken, [], "{name}");
    assert_eq!(report.missed, [], "{name}: never happens, so nothing is proved of it");
}

/// The checker finds what is wrong.
#[track_caller]
fn breaks(name: &str, config: Config, invariants: &[Invariant]) {
    for &invariant in invariants {
        let steps = config.break_it(invariant);
        println!("{name}: {invariant:?} by {}", steps.as_deref().unwrap_or("nothing"));
        assert!(steps.is_some(), "{name}: {invariant:?} is not found to be broken");
    }
}

/// With fewer events, as counterexamples need few; and those that are left are short to read.
const FEW: Config = Config { client_errors: false, purge: None, runs: 3, expiries: 2, windows: 0, ..A };
/// Doubts are settled; bounded a little more, since this multiplies the states.
const SETTLED: Config = Config { runs: 3, expiries: 2, windows: 1, ..A };
const TRANSACTION: Config = Config { mode: Mode::OneTransaction, late: true, client_errors: false, ..A };
/// Runs that failed or were lost are run again, and all that they call dedupes.
const RUN_AGAIN: Config = Config { rerun: true, rerun_ends: true, dedupe: Dedupe::ByEpoch, late: true, ..A };
const RUN_AGAIN_FEW: Config = Config { rerun: true, dedupe: Dedupe::ByEpoch, late: true, ..FEW };
const LEASED: Config = Config { mode: Mode::LeasedTransaction, rerun: true, ..TRANSACTION };

#[test]
fn model_a_held() {
    holds("A", A, &[Told, Rejected, Stripped, Purged]);
}

#[test]
fn model_b_an_external_effect_is_run_again() {
    breaks("B", Config { rerun: true, late: true, ..FEW }, &[I1]);
}

#[test]
fn model_c_an_error_gives_the_key_back() {
    breaks("C", Config { release_errors: true, ..FEW }, &[I1]);
}

#[test]
fn model_d_run_again_the_provider_dedupes() {
    let config = Config { windows: 1, ..RUN_AGAIN };
    holds("D", config, &[Told, Lost, RunAgain, Abandoned, Rejected, Stripped, Purged]);
}

/// A client error of a second run is no proof that the first one did nothing.
#[test]
fn model_d_a_second_run_gives_the_key_back() {
    let config = Config { second_releases: true, client_errors: true, ..RUN_AGAIN_FEW };
    breaks("D, a second run releases", config, &[I1]);
}

/// T4 alone: no lease ends, what is run again had failed.
#[test]
fn clause_26_a_failed_run_is_run_again_the_provider_does_not_dedupe() {
    breaks("T4 without dedupe", Config { dedupe: Dedupe::No, expiries: 0, ..RUN_AGAIN_FEW }, &[I1]);
}

#[test]
fn clause_26_an_operator_settles_what_may_be_run_again() {
    let settler = Some(Operator(QuarantinedAtTheLook));
    let config = Config { settler, runs: 3, expiries: 2, windows: 0, purge: None, ..RUN_AGAIN };
    holds("D, operator", config, &[Told, Lost, RunAgain, Abandoned, Completed, Released]);
}

/// A hook takes what was not run again in time.
#[test]
fn clause_26_a_hook_settles_what_was_not_run_again() {
    let settler = Some(Hook(QuarantinedAtTheLook));
    let config = Config { settler, runs: 3, expiries: 2, windows: 0, purge: None, ..RUN_AGAIN };
    holds("D, hook", config, &[Told, Lost, RunAgain, Abandoned, Completed, Released]);
}

/// What was not run again in time is let be run again: by the same key, so nothing happens twice.
#[test]
fn clause_33_an_operator_resumes() {
    let settler = Some(Operator(Release::Resume));
    let config = Config { settler, runs: 3, expiries: 2, windows: 0, purge: None, ..RUN_AGAIN };
    holds("D, resume", config, &[Told, Lost, RunAgain, Abandoned, Completed, Resumed]);
}

#[test]
fn clause_33_a_hook_resumes() {
    let settler = Some(Hook(Release::Resume));
    let config = Config { settler, runs: 3, expiries: 2, windows: 0, purge: None, ..RUN_AGAIN };
    holds("D, hook resumes", config, &[Told, Lost, RunAgain, Abandoned, Completed, Resumed]);
}

/// What is held stays held, whatever an operator wants.
#[test]
fn clause_33_what_is_never_run_again_is_not_resumed() {
    let config = Config { settler: Some(Operator(Release::Resume)), ..SETTLED };
    holds("A, resume", config, &[Told, Completed]);
    assert_eq!(config.check(&[Resumed]).missed, [Resumed]);
}

#[test]
fn model_e_one_transaction() {
    holds("E", TRANSACTION, &[Told, Lost, Stripped, Purged]);
}

#[test]
fn model_f_a_transaction_without_a_fence() {
    let config = Config { compare: Compare::Nothing, purge: None, windows: 0, ..LEASED };
    breaks("F", config, &[I1, I2, I3, Final]);
}

#[test]
fn model_g_a_counter_and_a_release_that_deletes() {
    let config = Config { compare: Compare::Counter, delete_released: true, purge: None, windows: 0, ..LEASED };
    breaks("G", config, &[I3, I7, Payload]);
}

#[test]
fn model_h_a_counter_and_a_release_that_marks() {
    holds("H", Config { compare: Compare::Counter, purge: None, ..LEASED }, &[Told, Lost, Stripped]);
}

#[test]
fn model_i_a_unique_attempt_and_a_release_that_deletes() {
    holds("I", Config { delete_released: true, ..LEASED }, &[Told, Lost, Stripped, Purged]);
}

#[test]
fn model_j_a_loser_answers_for_itself() {
    breaks("J", Config { loser_answers: true, purge: None, windows: 0, ..TRANSACTION }, &[I2, I4]);
}

#[test]
fn model_k_an_operator_releases_at_once() {
    breaks("K", Config { settler: Some(Operator(AtOnce)), ..FEW }, &[I1]);
}

#[test]
fn model_l_an_operator_releases_after_quarantine() {
    let config = Config { settler: Some(Operator(QuarantinedAtTheLook)), ..SETTLED };
    holds("L", config, &[Told, Lost, Completed, Released, RunsBesideAZombie]);
}

/// Nothing was found, then the body acted, then the quarantine ended, then the record is released.
#[test]
fn model_l_an_operator_looks_before_the_end_of_the_quarantine() {
    breaks("L, early look", Config { settler: Some(Operator(QuarantinedAtTheEnd)), ..FEW }, &[I1]);
}

#[test]
fn model_m_an_operator_releases_at_once_the_provider_dedupes() {
    let config = Config { settler: Some(Operator(AtOnce)), dedupe: Dedupe::ByRecord, ..SETTLED };
    holds("M", config, &[Told, Lost, Completed, Released, RunsBesideAZombie]);
}

/// A release begins a new epoch, and with it another provider key.
#[test]
fn model_m_the_providers_key_is_that_of_the_epoch() {
    breaks("M, by epoch", Config { settler: Some(Operator(AtOnce)), dedupe: Dedupe::ByEpoch, ..FEW }, &[I1]);
}

#[test]
fn model_n_a_hook_releases_at_once() {
    breaks("N", Config { settler: Some(Hook(AtOnce)), ..FEW }, &[I1]);
}

#[test]
fn model_o_a_hook_releases_after_quarantine() {
    let config = Config { settler: Some(Hook(QuarantinedAtTheLook)), ..SETTLED };
    holds("O", config, &[Told, Lost, Completed, Released, RunsBesideAZombie]);
}

#[test]
fn model_o_a_hook_looks_before_the_end_of_the_quarantine() {
    breaks("O, early look", Config { settler: Some(Hook(QuarantinedAtTheEnd)), ..FEW }, &[I1]);
}

/// A body that ran into its `timeout` has sent its request.
#[test]
fn model_o_a_hook_releases_after_quarantine_what_was_cut_off() {
    let settler = Some(Hook(QuarantinedAtTheLook));
    let config = Config { settler, cut_off: CutOff::TimedOut, client_errors: false, expiries: 1, ..SETTLED };
    holds("O, cut off", config, &[Told, Arrived, Completed, Released, RunsBesideAZombie]);
}

#[test]
fn model_l_an_operator_releases_after_quarantine_what_was_cut_off() {
    let settler = Some(Operator(QuarantinedAtTheLook));
    let config = Config { settler, cut_off: CutOff::TimedOut, client_errors: false, expiries: 1, ..SETTLED };
    holds("L, cut off", config, &[Told, Arrived, Completed, Released, RunsBesideAZombie]);
}

/// Its effect comes after the hook has looked.
#[test]
fn model_o_a_body_that_was_cut_off_counts_as_ended() {
    let settler = Some(Hook(QuarantinedAtTheLook));
    breaks("O, cut off is not the end", Config { settler, cut_off: CutOff::Failed, ..FEW }, &[I1]);
}

#[test]
fn model_p_a_hook_only_completes() {
    holds("P", Config { settler: Some(Hook(Never)), late: true, ..SETTLED }, &[Told, Lost, Late, Completed]);
}

#[test]
fn model_q_a_hook_releases_at_once_the_provider_dedupes() {
    let config = Config { settler: Some(Hook(AtOnce)), dedupe: Dedupe::ByRecord, ..SETTLED };
    holds("Q", config, &[Told, Lost, Completed, Released, RunsBesideAZombie]);
}

#[test]
fn model_q_the_providers_key_is_that_of_the_epoch() {
    breaks("Q, by epoch", Config { settler: Some(Hook(AtOnce)), dedupe: Dedupe::ByEpoch, ..FEW }, &[I1]);
}

#[test]
fn model_r_a_late_run_completes() {
    holds("R", Config { late: true, ..A }, &[Told, ActedInDoubt, Late, Rejected, Stripped, Purged]);
}

/// No lease ends, so what completes late had reported a doubt before.
#[test]
fn model_r_a_run_that_was_given_up_completes() {
    holds("R, given up", Config { late: true, expiries: 0, ..A }, &[ActedInDoubt, Late]);
}

#[test]
fn model_t_an_operator_and_late_runs() {
    let config = Config { settler: Some(Operator(QuarantinedAtTheLook)), late: true, ..SETTLED };
    holds("T", config, &[Told, Lost, Late, Completed, Released, RunsBesideAZombie]);
}

#[test]
fn model_u_a_hook_that_releases_at_once_and_late_runs_the_provider_dedupes() {
    let config = Config { settler: Some(Hook(AtOnce)), dedupe: Dedupe::ByRecord, late: true, ..SETTLED };
    holds("U", config, &[Told, Lost, Late, Completed, Released, RunsBesideAZombie]);
}

/// What removes must compare again what it has found.
#[test]
fn scenario_96_a_purge_that_does_not_compare_again() {
    breaks("purge", Config { purge: Some(false), windows: 2, ..FEW }, &[I6]);
}

#[test]
fn clause_33_an_operator_closes_a_doubt_without_an_answer() {
    let config = Config { settler: Some(Operator(Void)), late: true, ..SETTLED };
    holds("void", config, &[Told, Lost, Late, Completed, Stripped, Purged]);
}

/// A `ttl` shorter than the quarantine: a doubt that is closed is not forgotten before its body may act no more.
#[test]
fn clause_33_a_window_shorter_than_a_bodys_life() {
    let config = Config { settler: Some(Operator(Void)), windows_outlast_bodies: false, late: true, ..SETTLED };
    holds("void, short window", config, &[Told, Lost, Completed, Purged]);
    let config = Config { settled_guards: false, windows: 1, ..config };
    breaks("void, short window, no guard", Config { client_errors: false, purge: None, ..config }, &[I1]);
}

/// What the model makes of a record is what a store makes of it.
#[test]
fn a_store_plays_along() {
    let many = Config { runs: 20, expiries: 20, late: true, ..FEW };
    let settled = Config { client_errors: true, settler: Some(Operator(QuarantinedAtTheLook)), ..many };
    let closed = Config { settler: Some(Operator(Void)), ..settled };
    let recovered = Config { settler: Some(Hook(QuarantinedAtTheLook)), cut_off: CutOff::TimedOut, ..settled };
    let run_again = Config { rerun: true, dedupe: Dedupe::ByEpoch, client_errors: true, ..many };
    let resumed = Config { settler: Some(Operator(Release::Resume)), ..run_again };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    for config in [settled, closed, recovered, run_again, resumed] {
        let walks = (0..1_000).map(|seed| runtime.block_on(play(&MemoryStore::volatile(), config, seed, 100)));
        let played: usize = walks.sum();
        println!("{played} steps played");
        assert!(played > 4_000, "{played}: the walks end too early");
    }
}
