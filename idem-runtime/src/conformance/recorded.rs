//! Steps of a run: noted before they are run, with their results afterwards, for the runs that continue it.
//!
//! For a store that keeps steps.

use super::{steps::*, *};
use crate::store::{EndStep, Recover, StartStep, Started, Step, StepEnded, StepKind};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn start_of(claim: &Claim, name: &str) -> StartStep {
    let (record, attempt) = (claim.record, claim.attempt);
    StartStep { record, attempt, name: name.into(), kind: StepKind::Run, input: None }
}

pub(crate) fn end_of(claim: &Claim, name: &str, result: &'static str) -> EndStep {
    EndStep { record: claim.record, attempt: claim.attempt, name: name.into(), result: result.into() }
}

async fn start_one(store: &dyn Store, start: StartStep) -> Started {
    let mut started = store.start_steps(&[start]).await.unwrap();
    assert_eq!(started.len(), 1);
    started.remove(0)
}

/// The step as it is kept.
pub(crate) async fn start(store: &dyn Store, claim: &Claim, name: &str) -> Step {
    found!(start_one(store, start_of(claim, name)).await, Started::Step(step) => step)
}

pub(crate) async fn end(store: &dyn Store, claim: &Claim, name: &str, result: &'static str) -> StepEnded {
    let ended = store.end_steps(&[end_of(claim, name, result)]).await.unwrap();
    assert_eq!(ended.len(), 1);
    ended[0]
}

/// Neither a start nor an end of this attempt is taken any more.
pub(crate) async fn is_shut_out(store: &dyn Store, claim: &Claim, name: &str) {
    assert_eq!(start_one(store, start_of(claim, name)).await, Started::Lost);
    assert_eq!(start_one(store, start_of(claim, "of a zombie")).await, Started::Lost);
    assert_eq!(end(store, claim, name, "of a zombie").await, StepEnded::Lost);
}

/// Names and results, as anybody sees them.
pub(crate) async fn noted(store: &dyn Store, key: &str) -> Vec<(String, Option<Bytes>)> {
    let steps = store.steps(record(key)).await.unwrap();
    steps.into_iter().map(|step| (step.name, step.result)).collect()
}

pub(crate) fn is(name: &str, result: Option<&'static str>) -> (String, Option<Bytes>) {
    (name.into(), result.map(Bytes::from))
}

/// A step is there when it was started, with all that was said of it, and its result when it has ended; catches a store
/// that notes both at the end.
pub async fn a_step_is_noted_before_its_result(store: &dyn Store, _clock: &dyn Clock) {
    assert_eq!(store.steps(record("a")).await.unwrap(), []);
    let owner = rerunnable("a");
    own(store, &owner).await;
    assert_eq!(noted(store, "a").await, []);
    for (kind, name) in [(StepKind::Run, "run"), (StepKind::Transaction, "transaction"), (StepKind::Once, "once")] {
        for input in [None, Some([7; 32])] {
            let name = format!("{name}, {}", input.is_some());
            let step = StartStep { kind, input, ..start_of(&owner, &name) };
            let new = found!(start_one(store, step).await, Started::Step(step) => step);
            assert_eq!((&*new.name, new.kind, new.input, &new.result), (&*name, kind, input, &None));
            let kept = store.steps(record("a")).await.unwrap().pop().unwrap();
            assert_eq!(Step { age: new.age, ..kept }, new);
            assert_eq!(end(store, &owner, &name, "x").await, StepEnded::Stored);
            let kept = store.steps(record("a")).await.unwrap().pop().unwrap();
            assert_eq!((kept.kind, kept.input, kept.result), (kind, input, Some("x".into())));
        }
    }
}

/// What a step was noted with stays, however often it is started, and a start that is sent again is told the same; catches
/// a store that lets a later run say what an earlier one has done.
pub async fn a_step_stays_as_it_was_noted(store: &dyn Store, _clock: &dyn Clock) {
    let owner = rerunnable("a");
    own(store, &owner).await;
    let first = StartStep { kind: StepKind::Once, input: Some([1; 32]), ..start_of(&owner, "mail") };
    found!(start_one(store, first.clone()).await, Started::Step(_));
    let other = StartStep { kind: StepKind::Run, input: Some([2; 32]), ..first.clone() };
    for start in [&first, &other] {
        let kept = found!(start_one(store, start.clone()).await, Started::Step(step) => step);
        assert_eq!((kept.kind, kept.input, kept.result), (StepKind::Once, first.input, None));
    }
    end(store, &owner, "mail", "sent").await;
    let kept = found!(start_one(store, other).await, Started::Step(step) => step);
    assert_eq!((kept.kind, kept.input, kept.result), (StepKind::Once, first.input, Some("sent".into())));
    assert_eq!(noted(store, "a").await, [is("mail", Some("sent"))]);
}

/// The first result stays, and an end that is sent again counts; catches a store that changes what a later run relies on.
pub async fn a_result_stays(store: &dyn Store, _clock: &dyn Clock) {
    let owner = rerunnable("a");
    own(store, &owner).await;
    start(store, &owner, "pay").await;
    for result in ["first", "first", "second"] {
        assert_eq!(end(store, &owner, "pay", result).await, StepEnded::Stored);
    }
    assert_eq!(noted(store, "a").await, [is("pay", Some("first"))]);
    assert_eq!(start(store, &owner, "pay").await.result, Some("first".into()));
}

/// Results are bytes, an empty one is a result, and names are compared whole; catches a store that takes bytes for text, or
/// nothing for no result.
pub async fn a_result_is_kept_byte_for_byte(store: &dyn Store, _clock: &dyn Clock) {
    let owner = rerunnable("a");
    own(store, &owner).await;
    let (long, bytes) = ("ä".repeat(64), Bytes::from_static(b"\0\xff\"'\\"));
    for (name, result) in [("empty", Bytes::new()), (&*long, bytes.clone()), ("EMPTY", bytes.clone())] {
        start(store, &owner, name).await;
        let end = EndStep { result: result.clone(), ..end_of(&owner, name, "") };
        assert_eq!(store.end_steps(&[end]).await.unwrap(), [StepEnded::Stored]);
        assert_eq!(start(store, &owner, name).await.result, Some(result.clone()));
        assert_eq!(noted(store, "a").await.pop(), Some((name.into(), Some(result))));
    }
}

/// What was not started has not ended; catches a store that makes a step of its result.
pub async fn a_step_that_was_not_started_does_not_end(store: &dyn Store, _clock: &dyn Clock) {
    let owner = rerunnable("a");
    own(store, &owner).await;
    start(store, &owner, "pay").await;
    assert_eq!(end(store, &owner, "mail", "x").await, StepEnded::Lost);
    assert_eq!(end(store, &rerunnable("absent"), "pay", "x").await, StepEnded::Lost);
    assert_eq!(start_one(store, start_of(&rerunnable("absent"), "pay")).await, Started::Lost);
    assert_eq!(noted(store, "a").await, [is("pay", None)]);
}

/// Steps come in the order in which they were first started, whatever their names, their ends and later starts; catches a
/// store that sorts them otherwise.
pub async fn steps_come_in_the_order_of_their_starts(store: &dyn Store, _clock: &dyn Clock) {
    let owner = rerunnable("a");
    own(store, &owner).await;
    let names = ["d", "b", "e", "a", "c"];
    for name in names {
        start(store, &owner, name).await;
        assert_eq!(store.steps(record("a")).await.unwrap().last().unwrap().name, name);
    }
    for name in ["a", "d", "b"] {
        end(store, &owner, name, "x").await;
        start(store, &owner, name).await;
    }
    let order: Vec<String> = noted(store, "a").await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(order, names);
}

/// A slice is answered entry by entry, and what is lost does not fail its neighbours; catches a store that answers in the
/// order of its rows.
pub async fn a_slice_of_steps_is_answered_in_order(store: &dyn Store, _clock: &dyn Clock) {
    let owners = ["c", "a", "d", "b"].map(rerunnable);
    store.claim(&owners).await.unwrap();
    let stranger = rerunnable("d");
    let slice = [&owners[0], &owners[1], &stranger, &owners[3]];
    let starts =
        slice.map(|owner| StartStep { input: Some([owner.record.as_bytes()[0]; 32]), ..start_of(owner, "pay") });
    for _ in 0..2 {
        let started = store.start_steps(&starts).await.unwrap();
        let inputs: Vec<_> = started
            .into_iter()
            .map(|started| if let Started::Step(step) = started { step.input } else { None })
            .collect();
        assert_eq!(inputs, [starts[0].input, starts[1].input, None, starts[3].input]);
    }
    let ends = [end_of(&owners[0], "pay", "c"), end_of(&stranger, "pay", "d"), end_of(&owners[3], "pay", "b")];
    let ended = store.end_steps(&ends).await.unwrap();
    assert_eq!(ended, [StepEnded::Stored, StepEnded::Lost, StepEnded::Stored]);
    assert_eq!(noted(store, "b").await, [is("pay", Some("b"))]);
    assert_eq!(noted(store, "c").await, [is("pay", Some("c"))]);
    assert_eq!((noted(store, "a").await, noted(store, "d").await), (vec![is("pay", None)], vec![]));
    assert_eq!(store.start_steps(&[]).await.unwrap(), []);
    assert_eq!(store.end_steps(&[]).await.unwrap(), []);
}

/// Only the attempt that the record is in flight for notes anything; catches a store that looks at the record's state
/// alone.
pub async fn another_attempt_notes_nothing(store: &dyn Store, _clock: &dyn Clock) {
    let owner = rerunnable("a");
    own(store, &owner).await;
    start(store, &owner, "pay").await;
    is_shut_out(store, &rerunnable("a"), "pay").await;
    assert_eq!(noted(store, "a").await, [is("pay", None)]);
    assert_eq!(end(store, &owner, "pay", "x").await, StepEnded::Stored);
}

/// A run that has come to its end notes nothing more, whatever that was; catches a store that looks at the attempt alone.
pub async fn nothing_is_noted_after_the_end(store: &dyn Store, _clock: &dyn Clock) {
    let ends = [
        Outcome::Done(reply("x")),
        Outcome::Rejected(reply("no"), LEASE),
        Outcome::Released(Reason::Status),
        Outcome::InDoubt(Reason::Panic),
        Outcome::Resumable(Reason::Status),
    ];
    for outcome in ends {
        let key = format!("{:?}", outcome.state());
        let owner = rerunnable(&key);
        own(store, &owner).await;
        start(store, &owner, "pay").await;
        found!(finish(store, &owner, outcome).await, Finished::Stored { .. });
        is_shut_out(store, &owner, "pay").await;
        assert_eq!(noted(store, &key).await, [is("pay", None)]);
    }
}

/// A run that begins afresh finds no steps of the ones before, and its own are its own; catches a store that skips what
/// this run has not done.
pub async fn steps_belong_to_their_epoch(store: &dyn Store, _clock: &dyn Clock) {
    let first = rerunnable("a");
    own(store, &first).await;
    start(store, &first, "pay").await;
    end(store, &first, "pay", "first").await;
    found!(finish(store, &first, Outcome::Released(Reason::Status)).await, Finished::Stored { .. });
    assert_eq!(noted(store, "a").await, [is("pay", Some("first"))], "until somebody begins anew");
    let second = rerunnable("a");
    own(store, &second).await;
    assert_eq!(noted(store, "a").await, []);
    assert_eq!(end(store, &second, "pay", "not started").await, StepEnded::Lost);
    assert_eq!(start(store, &second, "pay").await.result, None);
    is_shut_out(store, &first, "pay").await;
    end(store, &second, "pay", "second").await;
    assert_eq!(noted(store, "a").await, [is("pay", Some("second"))]);
}

/// Whoever takes over continues with the steps that are there, and from then on the one before notes nothing more; catches a
/// store that begins anew, or lets a zombie write what its successor has not seen.
pub async fn a_run_that_continues_finds_the_steps(store: &dyn Store, clock: &dyn Clock) {
    for key in ["lost", "failed"] {
        let first = rerunnable(key);
        own(store, &first).await;
        for name in ["user", "pay"] {
            start(store, &first, name).await;
        }
        end(store, &first, "user", "u1").await;
        if key == "failed" {
            found!(finish(store, &first, Outcome::Resumable(Reason::Status)).await, Finished::Stored { .. });
        }
        clock.pass(LEASE).await;
        let second = rerunnable(key);
        assert!(own(store, &second).await.continues());
        assert_eq!(noted(store, key).await, [is("user", Some("u1")), is("pay", None)]);
        is_shut_out(store, &first, "pay").await;
        assert_eq!(start(store, &second, "user").await.result, Some("u1".into()));
        assert_eq!(start(store, &second, "pay").await.result, None);
        is_shut_out(store, &first, "pay").await;
        assert_eq!(end(store, &second, "pay", "p2").await, StepEnded::Stored);
        assert_eq!(noted(store, key).await, [is("user", Some("u1")), is("pay", Some("p2"))]);
    }
}

/// While nobody has taken over, an owner may note its steps, also after its lease; catches a store that compares the lease.
pub async fn a_late_owner_may_note_its_steps(store: &dyn Store, clock: &dyn Clock) {
    let owner = rerunnable("a");
    own(store, &owner).await;
    start(store, &owner, "pay").await;
    clock.pass(LEASE * 2).await;
    assert_eq!(end(store, &owner, "pay", "x").await, StepEnded::Stored);
    start(store, &owner, "mail").await;
    assert_eq!(noted(store, "a").await, [is("pay", Some("x")), is("mail", None)]);
}

/// A recovery shuts the owner out of its steps, as of its end, and they stay for whoever looks; catches a store that fences
/// off the end alone.
pub async fn a_recovery_shuts_the_owner_out_of_its_steps(store: &dyn Store, clock: &dyn Clock) {
    let owner = claim("a");
    own(store, &owner).await;
    start(store, &owner, "pay").await;
    clock.pass(LEASE * 2).await;
    survey(store).await;
    let recover = Recover { ops: vec!["charge"], lease: LEASE, grace: SECOND, tries: 10, limit: 10 };
    assert_eq!(store.recover(&recover).await.unwrap().len(), 1);
    is_shut_out(store, &owner, "pay").await;
    assert_eq!(noted(store, "a").await, [is("pay", None)]);
}

/// The age of a step counts from its first start in the epoch, by the store's clock; catches a store that counts from the
/// last start, for a provider does not.
pub async fn the_age_of_a_step_counts_from_its_first_start(store: &dyn Store, clock: &dyn Clock) {
    let first = rerunnable("a");
    own(store, &first).await;
    assert!(start(store, &first, "pay").await.age < SECOND * 20);
    clock.pass(SECOND * 60).await;
    assert!(start(store, &first, "pay").await.age >= SECOND * 60);
    found!(finish(store, &first, Outcome::Resumable(Reason::Status)).await, Finished::Stored { .. });
    clock.pass(SECOND * 60).await;
    let second = rerunnable("a");
    own(store, &second).await;
    for _ in 0..2 {
        let age = start(store, &second, "pay").await.age;
        assert!((SECOND * 120..SECOND * 140).contains(&age), "{age:?}");
        end(store, &second, "pay", "x").await;
    }
    let age = store.steps(record("a")).await.unwrap()[0].age;
    assert!((SECOND * 120..SECOND * 140).contains(&age), "{age:?}");
}

/// Steps are removed with their record, of whatever epoch; and those of a record that stays, stay. Catches a store that
/// takes the old ones for those of a new record.
pub async fn steps_are_purged_with_their_record(store: &dyn Store, clock: &dyn Clock) {
    let live = rerunnable("live");
    own(store, &live).await;
    start(store, &live, "pay").await;
    for _ in 0..2 {
        let over = rerunnable("over");
        own(store, &over).await;
        start(store, &over, "pay").await;
        end(store, &over, "pay", "x").await;
        found!(finish(store, &over, Outcome::Released(Reason::Status)).await, Finished::Stored { .. });
    }
    clock.pass(GUARD * 2).await;
    assert_eq!(store.purge(&Purge::at_any_time(100)).await.unwrap().records, 1);
    assert_eq!(noted(store, "over").await, []);
    assert_eq!(noted(store, "live").await, [is("pay", None)]);
    let again = rerunnable("over");
    own(store, &again).await;
    assert_eq!(noted(store, "over").await, []);
    assert_eq!(start(store, &again, "pay").await.result, None);
}

/// The end of a step, or its start, and a takeover at once: whoever takes over sees, from then on, all that there will be of
/// the one before. Catches a store that looks at the record first and writes then.
pub async fn a_step_ends_or_its_run_is_taken_over(store: &dyn Store, _clock: &dyn Clock) {
    for round in 0..20 {
        let key = round.to_string();
        let first = Claim { lease: Duration::ZERO, ..rerunnable(&key) };
        own(store, &first).await;
        start(store, &first, "pay").await;
        let next = [start_of(&first, "mail")];
        let zombie = async {
            let ended = end(store, &first, "pay", "first").await;
            (ended, store.start_steps(&next).await.unwrap())
        };
        let successor = async {
            for _ in 0..round % 4 {
                tokio::task::yield_now().await;
            }
            own(store, &rerunnable(&key)).await;
            noted(store, &key).await
        };
        let ((ended, started), seen) = futures_util::future::join(zombie, successor).await;
        assert_eq!(noted(store, &key).await, seen, "nothing is written that a successor did not see");
        assert_eq!(seen[0], is("pay", (ended == StepEnded::Stored).then_some("first")));
        assert_eq!(seen.len(), if started == [Started::Lost] { 1 } else { 2 });
    }
}
