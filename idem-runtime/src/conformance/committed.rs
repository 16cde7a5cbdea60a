//! Steps that are one transaction: what the body wrote and the result of the step appear together or not at all, and only
//! while the run that does it has its record.
//!
//! For a store whose [`transactions`](Store::transactions) are not `None`, and that keeps steps.

use super::{
    recorded::{end_of, is, is_shut_out, noted, start, start_of},
    steps::*,
    transactions::Body,
    *,
};
use crate::store::{Committed, EndStep, OpenTransaction, StartStep, Started, StepBegun, StepKind};

fn step_of(claim: &Claim) -> StartStep {
    StartStep { kind: StepKind::Transaction, ..start_of(claim, "order") }
}

fn done(claim: &Claim) -> EndStep {
    end_of(claim, "order", "o1")
}

async fn begin(store: &dyn Store, claim: &Claim) -> StepBegun {
    store.begin_step(&step_of(claim), Duration::from_secs(5)).await.unwrap()
}

async fn open(store: &dyn Store, claim: &Claim) -> OpenTransaction {
    found!(begin(store, claim).await, StepBegun::Open(transaction) => transaction)
}

/// A run that has its record.
async fn owner(store: &dyn Store, key: &str) -> Claim {
    let claim = rerunnable(key);
    own(store, &claim).await;
    claim
}

/// Nothing is there of a body, nor of its step, but that it was started before.
async fn nothing_is_left(store: &dyn Store, body: &dyn Body, started: bool) {
    assert_eq!(body.written().await, 0);
    assert_eq!(noted(store, "a").await, if started { vec![is("order", None)] } else { vec![] });
}

/// The step of this run is done, and is the only one that ever was.
async fn runs(store: &dyn Store, body: &dyn Body, claim: &Claim) {
    let mut transaction = open(store, claim).await;
    body.write(&mut transaction).await;
    found!(store.commit_step(transaction, &done(claim)).await.unwrap(), Committed::Stored { .. });
    is_done(store, body, claim).await;
}

async fn is_done(store: &dyn Store, body: &dyn Body, claim: &Claim) {
    assert_eq!(body.written().await, 1);
    assert_eq!(noted(store, "a").await, [is("order", Some("o1"))]);
    found!(begin(store, claim).await, StepBegun::Found(Started::Step(step)) if step.result == Some("o1".into()));
}

/// Step, rows and result appear with the commit; catches a store that notes the step outside of it.
pub async fn a_step_and_its_rows_are_one_commit(store: &dyn Store, body: &dyn Body) {
    let owner = owner(store, "a").await;
    let mut transaction = open(store, &owner).await;
    body.write(&mut transaction).await;
    nothing_is_left(store, body, false).await;
    let committed = store.commit_step(transaction, &done(&owner)).await.unwrap();
    found!(committed, Committed::Stored { ttl_left: Duration::ZERO });
    is_done(store, body, &owner).await;
    assert_eq!(store.steps(record("a")).await.unwrap()[0].kind, StepKind::Transaction);
    found!(finish(store, &owner, Outcome::Done(reply("x"))).await, Finished::Stored { .. });
}

/// A step that is dropped leaves nothing, not even in the next one on its connection; catches a store that finds it started.
pub async fn a_step_that_is_dropped_leaves_nothing(store: &dyn Store, body: &dyn Body) {
    let owner = owner(store, "a").await;
    for _ in 0..5 {
        let mut transaction = open(store, &owner).await;
        body.write(&mut transaction).await;
        drop(transaction);
    }
    nothing_is_left(store, body, false).await;
    runs(store, body, &owner).await;
}

/// Only the run that has the record begins a step, and one that is done is not begun; catches a store that opens whatever it
/// is asked for, or leaves something open where it does not.
pub async fn a_step_is_begun_by_its_owner_only(store: &dyn Store, body: &dyn Body) {
    found!(begin(store, &rerunnable("a")).await, StepBegun::Found(Started::Lost));
    let failed = owner(store, "a").await;
    found!(begin(store, &rerunnable("a")).await, StepBegun::Found(Started::Lost));
    found!(finish(store, &failed, Outcome::Resumable(Reason::Status)).await, Finished::Stored { .. });
    found!(begin(store, &failed).await, StepBegun::Found(Started::Lost));
    let second = owner(store, "a").await;
    found!(begin(store, &failed).await, StepBegun::Found(Started::Lost));
    nothing_is_left(store, body, false).await;
    runs(store, body, &second).await;
}

/// A step that was started before, as another kind, is begun and committed; catches a store that takes it for new, or for
/// done.
pub async fn a_step_that_was_started_is_committed(store: &dyn Store, body: &dyn Body) {
    let owner = owner(store, "a").await;
    start(store, &owner, "order").await;
    let mut transaction = open(store, &owner).await;
    body.write(&mut transaction).await;
    nothing_is_left(store, body, true).await;
    drop(transaction);
    nothing_is_left(store, body, true).await;
    runs(store, body, &owner).await;
    assert_eq!(store.steps(record("a")).await.unwrap()[0].kind, StepKind::Run, "what was noted stays");
}

/// While a step is open its record can be renewed and taken over, and after that nothing of the step is kept; or, where a
/// transaction excludes all others, whoever takes over waits for it. Catches a store that holds the record for the body's
/// time, or that looks at the record before the body only.
pub async fn a_takeover_undoes_an_open_step(store: &dyn Store, body: &dyn Body) {
    let first = Claim { lease: Duration::ZERO, ..rerunnable("a") };
    own(store, &first).await;
    let mut transaction = open(store, &first).await;
    body.write(&mut transaction).await;
    let second = rerunnable("a");
    if store.transactions().unwrap().exclusive {
        let done = done(&first);
        let ends = futures_util::future::join(claim_one(store, &second), store.commit_step(transaction, &done)).await;
        found!(ends, (Claimed::Owner(_), Ok(Committed::Stored { .. })));
        is_done(store, body, &second).await;
        is_shut_out(store, &first, "order").await;
        return;
    }
    let renewal = Renewal { record: first.record, attempt: first.attempt };
    assert_eq!(store.renew(&[renewal], Duration::ZERO).await.unwrap(), [Renewed::Held]);
    own(store, &second).await;
    found!(store.commit_step(transaction, &done(&first)).await.unwrap(), Committed::Lost);
    nothing_is_left(store, body, false).await;
    runs(store, body, &second).await;
}

/// A step is committed by the attempt that began it, under its name; catches a store that commits what it has not begun.
pub async fn a_commit_of_another_step_keeps_nothing(store: &dyn Store, body: &dyn Body) {
    let owner = owner(store, "a").await;
    start(store, &owner, "mail").await;
    for end in [done(&rerunnable("a")), end_of(&owner, "mail", "o1"), end_of(&owner, "absent", "o1")] {
        let mut transaction = open(store, &owner).await;
        body.write(&mut transaction).await;
        found!(store.commit_step(transaction, &end).await.unwrap(), Committed::Lost);
        assert_eq!(body.written().await, 0);
        assert_eq!(noted(store, "a").await, [is("mail", None)]);
    }
}

/// The database takes no COMMIT before the result; catches a store that lets a body make its rows durable by itself, so that
/// they are written again.
pub async fn a_commit_of_the_bodys_own_is_refused_in_a_step(store: &dyn Store, body: &dyn Body) {
    for (key, started) in [("a", false), ("b", true)] {
        let owner = owner(store, key).await;
        if started {
            start(store, &owner, "order").await;
        }
        for ends in [false, true] {
            let mut transaction = open(store, &owner).await;
            let before = body.written().await;
            body.write(&mut transaction).await;
            assert!(!body.commit(&mut transaction).await, "a body's own COMMIT counts");
            let committed = match ends {
                true => store.commit_step(transaction, &done(&owner)).await.unwrap(),
                false => Committed::Lost,
            };
            // What is left of the transaction after that is the database's affair; half of it may not be.
            let stored = matches!(committed, Committed::Stored { .. });
            let result = store.steps(record(key)).await.unwrap().pop().and_then(|step| step.result);
            assert_eq!((body.written().await - before, result.is_some()), (u64::from(stored), stored));
        }
    }
}

/// After a ROLLBACK of the body's own the step is gone, also one that had been started before, and the commit says so;
/// catches a store that notes the result without its rows.
pub async fn a_rollback_of_the_bodys_own_loses_the_step(store: &dyn Store, body: &dyn Body) {
    let owner = owner(store, "a").await;
    for started in [false, true] {
        if started {
            start(store, &owner, "order").await;
        }
        let mut transaction = open(store, &owner).await;
        body.write(&mut transaction).await;
        body.roll_back(&mut transaction).await;
        found!(store.commit_step(transaction, &done(&owner)).await.unwrap(), Committed::Lost | Committed::Undone(_));
        nothing_is_left(store, body, started).await;
    }
    runs(store, body, &owner).await;
}

/// Where the session is gone there was no commit, and nobody is told of one; catches a store that takes no answer for yes.
pub async fn a_step_of_a_session_that_is_gone_is_not_committed(store: &dyn Store, body: &dyn Body) {
    let owner = owner(store, "a").await;
    let mut transaction = open(store, &owner).await;
    body.write(&mut transaction).await;
    if body.cut_off(&mut transaction).await {
        let committed = store.commit_step(transaction, &done(&owner)).await;
        found!(committed, Err(_) | Ok(Committed::Undone(_) | Committed::Lost));
    } else {
        drop(transaction);
    }
    nothing_is_left(store, body, false).await;
    runs(store, body, &owner).await;
}
