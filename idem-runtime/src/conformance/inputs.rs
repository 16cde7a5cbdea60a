//! What is kept to go on with an operation that was interrupted, and when somebody may.

use super::{steps::*, *};
use crate::store::{Resume, Resuming};

const SECOND: Duration = Duration::from_secs(1);
const TRY: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(5);

fn with_input(key: &str, input: &'static str) -> Claim {
    Claim { input: Some(Bytes::from_static(input.as_bytes())), ..rerunnable(key) }
}

fn resume(limit: u32) -> Resume {
    Resume { ops: vec!["charge"], lease: TRY, grace: GRACE, limit }
}

/// What may be gone on with now, after a look.
async fn interrupted(store: &dyn Store) -> Vec<Resuming> {
    survey(store).await;
    store.interrupted(&resume(100)).await.unwrap()
}

/// The same, as ids with their inputs, in any order.
async fn inputs(store: &dyn Store) -> Vec<(RecordId, Bytes)> {
    let found = interrupted(store).await.into_iter().map(|found| (found.record.id, found.input));
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(id, _)| *id.as_bytes());
    found
}

fn of(key: &str, input: &'static str) -> (RecordId, Bytes) {
    (record(key), Bytes::from_static(input.as_bytes()))
}

/// A run that failed.
async fn fails(store: &dyn Store, claim: &Claim) {
    own(store, claim).await;
    found!(finish(store, claim, Outcome::Resumable(Reason::Status)).await, Finished::Stored { .. });
}

/// An interrupted operation is found with the argument of the claim that took it last, byte for byte, and stays as it is: a
/// retry has it as ever. Catches a store that keeps the argument of a claim that was refused, or takes the record away.
pub async fn an_interrupted_run_is_found_with_its_input(store: &dyn Store, clock: &dyn Clock) {
    let first = with_input("a", "{\"n\": 1,  \"é\":\"\\u0000\"}");
    let epoch = own(store, &first).await.epoch;
    found!(claim_one(store, &with_input("a", "refused")).await, Claimed::Found(Found::InFlight { .. }));
    found!(finish(store, &first, Outcome::Resumable(Reason::Panic)).await, Finished::Stored { .. });
    fails(store, &rerunnable("without")).await;
    clock.pass(SECOND * 3).await;
    let found = interrupted(store).await;
    let found = found!(found.as_slice(), [found] => found);
    assert_eq!(&found.input, "{\"n\": 1,  \"é\":\"\\u0000\"}");
    let Record { id, state, reason, attempts, .. } = found.record;
    assert_eq!((id, state, reason, attempts), (record("a"), State::Resumable, Some(Reason::Panic), 1));
    assert!(!format!("{found:?}").contains("\\u0000") && found.record.attempt == first.attempt);
    let second = with_input("a", "2");
    assert_eq!(own(store, &second).await.epoch, epoch, "a retry goes on with it");
    found!(finish(store, &second, Outcome::Resumable(Reason::Panic)).await, Finished::Stored { .. });
    let third = rerunnable("a");
    own(store, &third).await;
    found!(finish(store, &third, Outcome::Resumable(Reason::Panic)).await, Finished::Stored { .. });
    clock.pass(SECOND * 5).await;
    assert_eq!(inputs(store).await, [of("a", "2")], "that of the last claim which had one");
}

/// Nobody goes on by an argument of an earlier life of the key; catches a store that keeps arguments by record alone.
pub async fn an_input_belongs_to_its_epoch(store: &dyn Store, clock: &dyn Clock) {
    let first = with_input("a", "old");
    own(store, &first).await;
    found!(finish(store, &first, Outcome::Released(Reason::Status)).await, Finished::Stored { .. });
    fails(store, &rerunnable("a")).await;
    clock.pass(SECOND * 10).await;
    assert_eq!(inputs(store).await, []);
    fails(store, &with_input("a", "new")).await;
    clock.pass(SECOND * 10).await;
    assert_eq!(inputs(store).await, [of("a", "new")]);
}

/// Found is what its owner left, or what is silent for longer than its lease and the grace, of the operations that are asked
/// for; not what runs, what is held in doubt, what is done, and what is too old. Catches a store that looks at less.
pub async fn only_what_was_interrupted_is_found(store: &dyn Store, clock: &dyn Clock) {
    let silent = Claim { lease: SECOND * 30, ..with_input("silent", "silent") };
    own(store, &silent).await;
    own(store, &Claim { lease: TRY * 60, ..with_input("runs", "runs") }).await;
    fails(store, &with_input("failed", "failed")).await;
    let done = with_input("done", "done");
    own(store, &done).await;
    found!(finish(store, &done, Outcome::Done(reply("x"))).await, Finished::Stored { .. });
    let held = with_input("held", "held");
    own(store, &held).await;
    found!(finish(store, &held, Outcome::InDoubt(Reason::Status)).await, Finished::Stored { .. });
    let plain = Claim { rerun: Duration::ZERO, lease: SECOND, ..with_input("plain", "plain") };
    own(store, &plain).await;
    clock.pass(SECOND * 32).await;
    assert_eq!(inputs(store).await, [of("failed", "failed")], "the silent one may be a little late");
    let others = Resume { ops: vec!["refund"], ..resume(100) };
    clock.pass(SECOND * 5).await;
    assert!(store.interrupted(&others).await.unwrap().is_empty());
    assert_eq!(inputs(store).await, [of("silent", "silent")]);
    clock.pass(WINDOW).await;
    assert_eq!(inputs(store).await, [], "their windows are over: they are in doubt");
}

/// What one process gets nobody else gets for a while, and each failed run makes the next one come later; catches a store
/// that gives a record out twice, or as soon as it can.
pub async fn an_interrupted_run_is_given_out_once_in_a_while(store: &dyn Store, clock: &dyn Clock) {
    for _ in 0..3 {
        fails(store, &with_input("a", "a")).await; // 4 s until the next
    }
    for key in ["b", "c"] {
        fails(store, &with_input(key, "x")).await; // 1 s
    }
    clock.pass(SECOND * 2).await;
    survey(store).await;
    let first = store.interrupted(&resume(1)).await.unwrap();
    assert_eq!(first.len(), 1, "at most so many");
    let second = interrupted(store).await;
    let ids: Vec<_> = first.iter().chain(&second).map(|found| found.record.id).collect();
    assert!(ids.len() == 2 && ids.contains(&record("b")) && ids.contains(&record("c")), "{ids:?}");
    assert_eq!(inputs(store).await, [], "they are given out");
    clock.pass(SECOND * 3).await;
    assert_eq!(inputs(store).await, [of("a", "a")]);
    clock.pass(TRY - SECOND).await;
    assert_eq!(inputs(store).await.len(), 2, "whoever had those did nothing");
    fails(store, &with_input("b", "again")).await;
    clock.pass(SECOND * 3).await;
    let found = inputs(store).await;
    assert!(found.len() == 2 && found.contains(&of("b", "again")), "{found:?}: 2 s after its second run");
}

/// An operator's word lets it go on at once; catches a store that keeps the pause of an earlier try.
pub async fn what_is_resumed_is_found_at_once(store: &dyn Store, clock: &dyn Clock) {
    fails(store, &with_input("a", "a")).await;
    clock.pass(SECOND * 3).await;
    assert_eq!(inputs(store).await, [of("a", "a")]);
    assert_eq!(inputs(store).await, []);
    let seen = find(store, "a").await.fence;
    assert!(resolve(store, "a", seen, Resolution::Resume).await);
    assert_eq!(inputs(store).await, [of("a", "a")]);
}
