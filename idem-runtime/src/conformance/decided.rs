//! Decisions about single steps, and about records that have some.
//!
//! For a store that keeps steps.

use super::{recorded::*, steps::*, *};
use crate::store::{StepDecision, StepDecisions, StepEnded};

const MINUTE: Duration = Duration::from_secs(60);

fn done(name: &str, result: &'static str) -> StepDecisions {
    StepDecisions::new().step(name, StepDecision::Done(result.into()))
}

async fn decide(store: &dyn Store, key: &str, decisions: StepDecisions) -> bool {
    let seen = find(store, key).await.fence;
    resolve(store, key, seen, Resolution::ResumeWith(decisions)).await
}

/// A run that has begun these steps, ended the first, and come to an end for this reason.
async fn broken_off(store: &dyn Store, key: &str, steps: [&str; 3], reason: Reason) -> Claim {
    let owner = rerunnable(key);
    own(store, &owner).await;
    for name in steps {
        start(store, &owner, name).await;
    }
    end(store, &owner, steps[0], "first").await;
    found!(finish(store, &owner, Outcome::InDoubt(reason)).await, Finished::Stored { .. });
    owner
}

/// What has a step with a result is not released, whenever: all of it would happen again. Catches a store that leaves this to
/// those who ask.
pub async fn what_has_acted_is_not_released(store: &dyn Store, clock: &dyn Clock) {
    broken_off(store, "acted", ["user", "pay", "mail"], Reason::Status).await;
    let open = rerunnable("open");
    own(store, &open).await;
    start(store, &open, "pay").await;
    finish(store, &open, Outcome::InDoubt(Reason::Status)).await;
    clock.pass(QUARANTINE * 2).await;
    let seen = find(store, "acted").await.fence;
    assert!(!resolve(store, "acted", seen, Resolution::Release).await);
    assert_eq!((find(store, "acted").await.state, find(store, "acted").await.fence), (State::InDoubt, seen));
    assert!(resolve(store, "acted", seen, Resolution::Complete(reply("x"))).await);
    let seen = find(store, "open").await.fence;
    assert!(resolve(store, "open", seen, Resolution::Release).await, "what was only begun is another matter");
    // What an earlier epoch has done is over.
    let again = rerunnable("open");
    own(store, &again).await;
    start(store, &again, "pay").await;
    end(store, &again, "pay", "x").await;
    finish(store, &again, Outcome::Released(Reason::Status)).await;
    let third = rerunnable("open");
    own(store, &third).await;
    finish(store, &third, Outcome::InDoubt(Reason::Status)).await;
    let seen = find(store, "open").await.fence;
    assert!(resolve(store, "open", seen, Resolution::Release).await);
}

/// A result that is decided is the step's: the next run finds it, and the record goes on in the same epoch. All other steps
/// stay. Catches a store that settles the record and forgets its steps.
pub async fn a_decided_result_is_found_by_the_next_run(store: &dyn Store, _clock: &dyn Clock) {
    let first = broken_off(store, "a", ["user", "pay", "mail"], Reason::StepUnknown).await;
    let epoch = find(store, "a").await.epoch;
    assert!(decide(store, "a", done("pay", "by hand").step("mail", StepDecision::AskAgain)).await);
    let shown = find(store, "a").await;
    assert_eq!((shown.state, shown.reason, shown.epoch), (State::Resumable, Some(Reason::Operator), epoch));
    let next = rerunnable("a");
    assert!(own(store, &next).await.continues());
    is_shut_out(store, &first, "mail").await;
    assert_eq!(start(store, &next, "pay").await.result, Some("by hand".into()));
    assert_eq!(noted(store, "a").await, [is("user", Some("first")), is("pay", Some("by hand")), is("mail", None)]);
    assert_eq!(end(store, &next, "mail", "asked").await, StepEnded::Stored);
}

/// What was not done is no longer noted, so the next run begins it as any; but only when nothing can act any more, as for a
/// release. Catches a store that has it done beside the first run, or lets its age go on.
pub async fn what_was_not_done_begins_anew_after_the_quarantine(store: &dyn Store, clock: &dyn Clock) {
    let not_done = || StepDecisions::new().step("pay", StepDecision::NotDone);
    broken_off(store, "cut", ["user", "pay", "mail"], Reason::StepUnknown).await;
    broken_off(store, "ended", ["user", "pay", "mail"], Reason::Status).await;
    let silent = rerunnable("silent");
    own(store, &silent).await;
    start(store, &silent, "pay").await;
    assert!(!decide(store, "silent", not_done()).await, "it runs");
    clock.pass(LEASE + MINUTE).await;
    for key in ["cut", "silent"] {
        assert!(!decide(store, key, not_done()).await, "{key}: it may still act");
        assert!(!decide(store, key, not_done().step("mail", StepDecision::Done("x".into()))).await);
        assert!(noted(store, key).await.contains(&is("pay", None)));
    }
    assert!(decide(store, "ended", not_done()).await, "its body has ended");
    clock.pass(QUARANTINE).await;
    for key in ["cut", "silent"] {
        assert!(decide(store, key, not_done()).await, "{key}");
        assert!(!noted(store, key).await.contains(&is("pay", None)));
        let next = rerunnable(key);
        own(store, &next).await;
        assert!(start(store, &next, "pay").await.age < MINUTE, "{key}: a provider is asked for the first time");
        end(store, &next, "pay", "p2").await;
        assert!(noted(store, key).await.contains(&is("pay", Some("p2"))));
    }
}

/// A decision is about steps of this epoch that were begun and have no result, or it changes nothing, neither of the record nor
/// of the other steps. Catches a store that overwrites what later runs rely on, or does half of it.
pub async fn only_open_steps_are_decided_about(store: &dyn Store, clock: &dyn Clock) {
    let old = rerunnable("a");
    own(store, &old).await;
    start(store, &old, "of old").await;
    finish(store, &old, Outcome::Released(Reason::Status)).await;
    broken_off(store, "a", ["user", "pay", "mail"], Reason::Status).await;
    clock.pass(QUARANTINE).await;
    let before = (find(store, "a").await.fence, noted(store, "a").await);
    for name in ["user", "absent", "of old", "PAY"] {
        for decision in [StepDecision::Done("x".into()), StepDecision::NotDone, StepDecision::AskAgain] {
            let decisions = done("pay", "x").step("mail", StepDecision::NotDone).step(name, decision);
            assert!(!decide(store, "a", decisions).await, "{name}");
            assert_eq!((find(store, "a").await.fence, noted(store, "a").await), before);
        }
    }
    assert!(decide(store, "a", done("pay", "x").step("mail", StepDecision::NotDone)).await);
    assert_eq!(noted(store, "a").await, [is("user", Some("first")), is("pay", Some("x"))]);
}

/// A decision that rests on what is no more changes no step either; catches a store that writes them first.
pub async fn a_stale_decision_changes_no_step(store: &dyn Store, clock: &dyn Clock) {
    broken_off(store, "a", ["user", "pay", "mail"], Reason::Status).await;
    clock.pass(QUARANTINE).await;
    let (seen, before) = (find(store, "a").await.fence, noted(store, "a").await);
    let decisions = || Resolution::ResumeWith(done("pay", "x").step("mail", StepDecision::NotDone));
    for stale in [Fence(seen.0 - 1), Fence(seen.0 + 1)] {
        assert!(!resolve(store, "a", stale, decisions()).await);
    }
    assert_eq!(noted(store, "a").await, before);
    let next = rerunnable("a");
    assert!(resolve(store, "a", seen, Resolution::Resume).await);
    own(store, &next).await;
    assert!(!resolve(store, "a", find(store, "a").await.fence, decisions()).await, "it runs");
    assert_eq!(noted(store, "a").await, before);
}

/// A late end of a step and a decision about it at once: one of them counts, and the other one is told. Catches a store that
/// looks at the steps first and writes then.
pub async fn a_late_end_or_a_decision_counts(store: &dyn Store, _clock: &dyn Clock) {
    for round in 0..20 {
        let key = round.to_string();
        let owner = Claim { lease: Duration::ZERO, ..rerunnable(&key) };
        own(store, &owner).await;
        start(store, &owner, "pay").await;
        let decides = async {
            for _ in 0..round % 4 {
                tokio::task::yield_now().await;
            }
            decide(store, &key, done("pay", "decided")).await
        };
        let ends = async {
            tokio::task::yield_now().await;
            end(store, &owner, "pay", "ended").await
        };
        let (decided, ended) = futures_util::future::join(decides, ends).await;
        assert_eq!(decided, ended == StepEnded::Lost, "{round}");
        assert_eq!(noted(store, &key).await, [is("pay", Some(if decided { "decided" } else { "ended" }))]);
    }
}
