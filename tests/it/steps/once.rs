//! Steps that must not run again.

use idem_runtime::state::{Reason, State as Stands};

use super::workshop::{Do, name, open};
use crate::support::{eventually, problem, refusal};

#[tokio::test]
async fn clause_26_a_step_that_must_not_run_again_leaves_a_doubt() {
    let shop = open().await;
    let runs = [vec![Do::Run(name("a")), Do::OnceLost(name("fax"))], vec![Do::Run(name("a")), Do::Once(name("fax"))]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 502);
    let shown = shop.worked("k").await;
    assert_eq!((shown.state, shown.reason), (Stands::InDoubt, Some(Reason::StepUnknown)));
    let retry = shop.post("/work", "k").json(&shop.plan(&runs)).send().await.unwrap();
    assert_eq!(refusal(retry).await, (409, "idempotency-outcome-unknown".to_owned()));
    assert_eq!(shop.effects_by_step(), ["a", "fax"]);
}

/// Its process is lost, so nobody could say so; the next run finds it.
#[tokio::test]
async fn clause_26_a_lost_step_that_must_not_run_again_is_found_by_the_next_run() {
    let shop = open().await;
    let runs = [vec![Do::Whatever(vec![Do::OnceLost(name("fax"))]), Do::Gate], vec![Do::Once(name("fax"))]];
    let held = shop.probe.hold().await;
    let first = shop.post("/work", "k").json(&shop.plan(&runs));
    let first = tokio::spawn(async { first.send().await.unwrap() });
    eventually(async || shop.probe.started() == 1).await;
    shop.freeze().await;
    let second = shop.post("/work", "k").json(&shop.plan(&runs)).send().await.unwrap();
    assert_eq!(refusal(second).await, (409, "idempotency-outcome-unknown".to_owned()));
    let shown = shop.worked("k").await;
    assert_eq!((shown.state, shown.reason), (Stands::InDoubt, Some(Reason::StepUnknown)));
    assert_eq!(shop.effects_by_step(), ["fax"]);
    drop(held);
    assert_eq!(refusal(first.await.unwrap()).await.0, 409);
}

#[tokio::test]
async fn clause_26_a_provider_that_can_be_asked_settles_it() {
    let shop = open().await;
    let runs = [vec![Do::OnceOrFindLost(name("fax"))], vec![Do::OnceOrFind(name("fax"))]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 502);
    assert_eq!(shop.worked("k").await.state, Stands::Resumable);
    let second = shop.work("/work", "k", &runs).await;
    assert_eq!((second.status, &*second.body), (201, "fax found"));
    assert_eq!(shop.effects_by_step(), ["fax"]);
}

/// That it is not there is no proof.
#[tokio::test]
async fn clause_26_a_provider_that_does_not_know_it_proves_nothing() {
    let shop = open().await;
    // Begun as another step's call, so that its provider knows nothing of it.
    let runs =
        [vec![Do::Whatever(vec![Do::OnceLost(name("fax"))]), Do::Answer(500)], vec![Do::OnceOrFind(name("fax"))]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 500);
    let shown = shop.worked("k").await;
    assert_eq!((shown.state, shown.reason), (Stands::InDoubt, Some(Reason::StepUnknown)));
}

/// A body that goes on without the step has decided so.
#[tokio::test]
async fn clause_26_a_body_may_succeed_without_it() {
    let shop = open().await;
    let runs = [vec![Do::Whatever(vec![Do::OnceLost(name("fax"))])]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 201);
    assert_eq!(shop.worked("k").await.state, Stands::Done);
}

/// Its caller must not be told to come back for it: no retry runs it again.
#[tokio::test]
async fn clause_20_who_is_cut_off_in_the_middle_of_it_is_told_of_the_doubt() {
    for (step, state, retry) in
        [(Do::OnceGate(name("fax")), "in_doubt", "operator"), (Do::RunGate(name("fax")), "resumable", "same-key")]
    {
        let shop = open().await;
        let _held = shop.probe.hold().await;
        let cut_off = shop.post("/short", "k").json(&shop.plan(&[vec![step]])).send().await.unwrap();
        let told = problem(cut_off).await;
        assert_eq!((told.status, &*told.slug), (504, "idempotency-body-timeout"));
        let says = |member: &str| told.body[member].as_str().unwrap_or_default().to_owned();
        assert_eq!((&*says("state"), &*says("retry")), (state, retry), "{}", told.body);
    }
}
