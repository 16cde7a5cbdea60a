//! Clauses 21 and 22: what goes to the store before and after a body, or the reply to it, is lost.

use super::{Wire, on_both, unavailable};
use crate::support::{Backend, Cut, Verb, eventually, seen};

/// How an argument is written on this wire: behind the pooler all text is part of a statement, in hexadecimal digits.
fn argument(backend: Backend, text: &str) -> Vec<u8> {
    match backend {
        Backend::PgBouncer => text.bytes().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect(),
        Backend::Postgres | Backend::Sqlite => text.into(),
    }
}

/// The scope, which is among a claim's arguments and no other verb's.
fn claim(backend: Backend) -> Vec<u8> {
    argument(backend, "acme")
}

/// The answer, which is among a finish's.
fn finish(backend: Backend) -> Vec<u8> {
    argument(backend, "effect 1")
}

/// It was answered once, by one run, and every retry says so.
async fn is_one_effect(wire: &Wire) {
    let record = wire.shop.record("wire.charge", "k").await;
    assert_eq!((record.state, record.attempts), (idem_runtime::state::State::Done, 1));
    assert_eq!(record.epoch, record.fence, "the first run of its epoch");
    assert!(seen(wire.charge("k").await).await.replayed);
    assert_eq!(wire.shop.probe.effects(), 1);
    wire.is_sound().await;
}

async fn claim_is_cut(backend: Backend, cut: Cut) {
    for connections in [1, 2] {
        let wire = Wire::open(backend, connections).await;
        wire.proxy.cut_next(cut, Some(&claim(backend)));
        assert!(seen(wire.charge("k").await).await.ran());
        let counts = wire.proxy.counts();
        assert_eq!((counts.before + counts.after, wire.shop.store.calls(Verb::Claim)), (1, 2), "sent again");
        is_one_effect(&wire).await;
    }
}

async fn finish_is_cut(backend: Backend, cut: Cut) {
    for connections in [1, 2] {
        let wire = Wire::open(backend, connections).await;
        wire.proxy.cut_next(cut, Some(&finish(backend)));
        let answer = wire.charge("k").await;
        assert!(!answer.headers().contains_key("idempotency-status"), "it is recorded");
        assert!(seen(answer).await.ran());
        let counts = wire.proxy.counts();
        assert_eq!((counts.before + counts.after, wire.shop.store.calls(Verb::Finish)), (1, 2), "sent again");
        is_one_effect(&wire).await;
    }
}

async fn claim_in_a_transaction_is_cut(backend: Backend) {
    for (n, (cut, message)) in [
        (Cut::Before, b"begin isolation".to_vec()),
        (Cut::After, b"begin isolation".to_vec()),
        (Cut::Before, b"acme".to_vec()), // bound, behind the pooler as well
        (Cut::After, b"acme".to_vec()),
    ]
    .into_iter()
    .enumerate()
    {
        let wire = Wire::open(backend, 1).await;
        wire.proxy.cut_next(cut, Some(&message));
        unavailable(wire.order("k").await).await;
        let counts = wire.proxy.counts();
        assert_eq!(
            (counts.before + counts.after, wire.shop.probe.started(), wire.shop.records().await),
            (1, 0, 0),
            "{n}"
        );
        assert!(wire.insist(async || wire.order("k").await).await.ran(), "{n}");
        assert!(seen(wire.order("k").await).await.replayed);
        assert_eq!((wire.shop.orders().await, wire.shop.probe.started()), (1, 1), "{n}");
        wire.is_sound().await;
    }
}

/// The server is out of reach while a body runs, and comes back within its lease.
async fn server_is_away_for_a_while(backend: Backend) {
    let wire = Wire::open(backend, 2).await;
    let held = wire.shop.probe.hold().await;
    let (first, ()) = tokio::join!(wire.charge("k"), async {
        eventually(async || wire.shop.probe.started() == 1).await;
        wire.proxy.refuse(true);
        wire.proxy.cut().await;
        drop(held);
        eventually(async || wire.shop.store.calls(Verb::Finish) >= 2).await;
        wire.proxy.refuse(false);
    });
    assert!(!first.headers().contains_key("idempotency-status"));
    assert!(seen(first).await.ran());
    is_one_effect(&wire).await;
}

on_both! {
    clause_21_a_claim_that_does_not_arrive_is_sent_again,
    clause_21_a_claim_that_does_not_arrive_at_pgbouncer_is_sent_again:
        claim_is_cut(Cut::Before);

    /// Scenario 53 on the wire.
    clause_21_a_claim_whose_reply_is_lost_is_sent_again_as_the_same_attempt,
    clause_21_a_claim_whose_reply_is_lost_before_pgbouncer_is_sent_again_as_the_same_attempt:
        claim_is_cut(Cut::After);

    clause_21_a_transaction_that_cannot_claim_does_not_run,
    clause_21_a_transaction_that_cannot_claim_before_pgbouncer_does_not_run:
        claim_in_a_transaction_is_cut();

    clause_22_a_finish_that_does_not_arrive_is_sent_again,
    clause_22_a_finish_that_does_not_arrive_at_pgbouncer_is_sent_again:
        finish_is_cut(Cut::Before);

    clause_22_a_finish_whose_reply_is_lost_is_sent_again,
    clause_22_a_finish_whose_reply_is_lost_before_pgbouncer_is_sent_again:
        finish_is_cut(Cut::After);

    clause_22_a_finish_waits_for_the_server,
    clause_22_a_finish_waits_for_pgbouncer:
        server_is_away_for_a_while();
}
