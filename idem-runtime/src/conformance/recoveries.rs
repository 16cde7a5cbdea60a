//! Taking doubts to settle them.

use futures_util::future::join;

use super::{steps::*, *};
use crate::store::{PutOff, Recover, Recovering};

const SECOND: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_secs(5);
/// How long a try lasts.
const TRY: Duration = Duration::from_secs(60);

fn of_charge() -> Recover {
    Recover { ops: vec!["charge"], lease: TRY, grace: GRACE, tries: 10, limit: 100 }
}

/// After a look for doubts, which a store may find them by.
async fn recover_by(store: &dyn Store, clock: &dyn Clock, recover: &Recover) -> Vec<Recovering> {
    clock.pass(SECOND * 2).await;
    survey(store).await;
    store.recover(recover).await.unwrap()
}

async fn recover(store: &dyn Store, clock: &dyn Clock) -> Vec<Recovering> {
    recover_by(store, clock, &of_charge()).await
}

/// The only one.
async fn recover_one(store: &dyn Store, clock: &dyn Clock) -> Recovering {
    let mut taken = recover(store, clock).await;
    assert_eq!(taken.len(), 1, "{taken:?}");
    taken.remove(0)
}

async fn put_off(store: &dyn Store, taken: &Recovering, by: Duration) -> bool {
    let put_off = PutOff { record: taken.record.id, seen: taken.record.fence, by };
    store.put_off(&put_off).await.unwrap()
}

fn ids(taken: &[Recovering]) -> Vec<RecordId> {
    let mut ids: Vec<RecordId> = taken.iter().map(|taken| taken.record.id).collect();
    ids.sort_by_key(|id| *id.as_bytes());
    ids
}

fn of(keys: &[&str]) -> Vec<RecordId> {
    let mut ids: Vec<RecordId> = keys.iter().map(|key| record(key)).collect();
    ids.sort_by_key(|id| *id.as_bytes());
    ids
}

/// What is in doubt is taken once per try, fenced off, and nothing else is; catches a store that takes what runs or is
/// settled, another operation's, or the same record twice.
pub async fn a_recovery_takes_doubts_of_its_operations(store: &dyn Store, clock: &dyn Clock) {
    let silent = claim("silent");
    let epoch = own(store, &silent).await.epoch;
    let link = Link { record: silent.record, epoch, attempt: silent.attempt, provider: "p".into(), id: "1".into() };
    store.link(&[link]).await.unwrap();
    let (held, _) = doubt(store, "held").await;
    run(store, "done", Outcome::Done(reply("x"))).await;
    let refund = Claim { op: "refund", ..claim("refund") };
    own(store, &refund).await;
    finish(store, &refund, Outcome::InDoubt(Reason::Panic)).await;
    clock.pass(LEASE + GRACE).await;
    own(store, &Claim { lease: TRY * 10, ..claim("live") }).await;
    let (before_silent, before_held) = (find(store, "silent").await, find(store, "held").await);

    let one = Recover { limit: 1, ..of_charge() };
    let mut taken = recover_by(store, clock, &one).await;
    assert_eq!(taken.len(), 1, "at most its limit");
    taken.extend(store.recover(&of_charge()).await.unwrap());
    assert_eq!(ids(&taken), of(&["silent", "held"]));
    for Recovering { record: taken, tries } in &taken {
        let (claim, before) = if taken.id == held.record { (&held, &before_held) } else { (&silent, &before_silent) };
        assert_eq!((taken.state, taken.reason, *tries), (State::InDoubt, before.reason, 1));
        assert!(taken.fence > before.fence && taken.attempt != claim.attempt, "the old owner is fenced off");
        assert_eq!((taken.attempts, taken.epoch, &taken.links), (1, before.epoch, &before.links));
        assert_eq!((before.tries, taken.tries), (0, 1));
        let found = store.find(taken.id).await.unwrap().unwrap();
        assert_eq!((found.fence, found.attempt, found.reason), (taken.fence, taken.attempt, taken.reason));
    }
    assert!(recover(store, clock).await.is_empty(), "somebody tries them");
    clock.pass(TRY).await;
    let again = recover(store, clock).await;
    assert_eq!(ids(&again), of(&["silent", "held"]), "whoever tried is gone");
    assert!(again.iter().all(|taken| taken.tries == 2));
}

/// An owner may be a little late; catches a store that takes its record at once.
pub async fn a_recovery_leaves_a_silent_owner_its_grace(store: &dyn Store, clock: &dyn Clock) {
    own(store, &claim("a")).await;
    clock.pass(LEASE - SECOND * 2).await;
    assert!(recover(store, clock).await.is_empty());
    assert!(recover(store, clock).await.is_empty(), "its lease is over");
    clock.pass(GRACE).await;
    assert_eq!(recover(store, clock).await.len(), 1);
}

/// Those whose next try is due longest are given out first, whatever their operation; catches a store that goes operation by
/// operation, so that one of them keeps the others waiting, forgets the limit, or what was put off.
pub async fn what_is_due_longest_is_recovered_first(store: &dyn Store, clock: &dyn Clock) {
    for (key, op) in [("a", "charge"), ("b", "refund"), ("c", "charge"), ("d", "refund")] {
        let claim = Claim { op, ..claim(key) };
        own(store, &claim).await;
        finish(store, &claim, Outcome::InDoubt(Reason::Status)).await;
    }
    let all = Recover { ops: vec!["charge", "refund"], ..of_charge() };
    for taken in recover_by(store, clock, &all).await {
        let later = ["d", "c", "b", "a"].into_iter().zip(1..).find(|(key, _)| record(key) == taken.record.id);
        let (_, seconds) = later.unwrap();
        assert!(put_off(store, &taken, SECOND * seconds).await);
    }
    clock.pass(SECOND * 5).await;
    for key in ["d", "c", "b", "a"] {
        let one = Recover { limit: 1, ..all.clone() };
        assert_eq!(ids(&recover_by(store, clock, &one).await), of(&[key]));
    }
}

/// Whatever the old owner says comes too late, and what the recovery finds out is the answer; catches a store that leaves
/// the owner its attempt.
pub async fn an_owner_that_comes_after_a_recovery_is_lost(store: &dyn Store, clock: &dyn Clock) {
    let owner = claim("a");
    own(store, &owner).await;
    clock.pass(LEASE + GRACE).await;
    let taken = recover_one(store, clock).await;
    assert_eq!(finish(store, &owner, Outcome::Done(reply("late"))).await, Finished::Lost);
    let renewal = Renewal { record: owner.record, attempt: owner.attempt };
    assert_eq!(store.renew(&[renewal], LEASE).await.unwrap(), [Renewed::Lost]);
    found!(retry(store, "a").await, Claimed::Found(Found::InDoubt(Reason::LeaseExpired)));
    assert!(resolve(store, "a", taken.record.fence, Resolution::Complete(reply("found"))).await);
    let replay = found!(retry(store, "a").await, Claimed::Found(Found::Replay(replay)) => replay);
    assert_eq!(replay.response, reply("found"));
    assert_eq!(finish(store, &owner, Outcome::Done(reply("late"))).await, Finished::Lost);
}

/// What is put off comes when it is said to; catches a store that forgets it, or lets somebody else put it off.
pub async fn what_is_put_off_is_tried_later(store: &dyn Store, clock: &dyn Clock) {
    let (_, seen) = doubt(store, "a").await;
    let taken = recover_one(store, clock).await;
    let stale = PutOff { record: taken.record.id, seen, by: SECOND };
    assert!(!store.put_off(&stale).await.unwrap());
    assert!(put_off(store, &taken, TRY * 10).await);
    clock.pass(TRY * 5).await;
    assert!(recover(store, clock).await.is_empty());
    clock.pass(TRY * 5).await;
    let taken = recover_one(store, clock).await;
    assert!(put_off(store, &taken, SECOND).await);
    let taken = recover_one(store, clock).await;
    assert_eq!(taken.tries, 3);
    assert!(resolve(store, "a", taken.record.fence, Resolution::Void).await);
    assert!(!put_off(store, &taken, SECOND).await, "it is settled");
}

/// What nobody finds out is left to operators, and a new run of the key begins to count anew; catches a store that does
/// not count, or counts over epochs.
pub async fn what_was_tried_too_often_is_left_to_operators(store: &dyn Store, clock: &dyn Clock) {
    let twice = Recover { tries: 2, ..of_charge() };
    let (_, first) = doubt(store, "a").await;
    for _ in 0..2 {
        assert_eq!(recover_by(store, clock, &twice).await.len(), 1);
        clock.pass(TRY).await;
    }
    assert!(recover_by(store, clock, &twice).await.is_empty());
    let seen = find(store, "a").await.fence;
    assert!(seen > first);
    assert!(resolve(store, "a", seen, Resolution::Release).await, "its own report");
    let (_, second) = doubt(store, "a").await;
    let taken = recover_by(store, clock, &twice).await;
    assert_eq!(taken.first().map(|taken| (taken.tries, taken.record.epoch)), Some((1, second)));
}

/// However often it is tried, a silent owner may act until the quarantine after *its* lease is over, and no longer;
/// catches a store that lets tries count as signs of life, or as the end of one.
pub async fn a_quarantine_counts_from_the_owners_lease(store: &dyn Store, clock: &dyn Clock) {
    own(store, &claim("a")).await;
    clock.pass(LEASE + GRACE).await;
    let taken = recover_one(store, clock).await;
    assert!(!resolve(store, "a", taken.record.fence, Resolution::Release).await);
    assert!(put_off(store, &taken, SECOND).await);
    clock.pass(QUARANTINE - SECOND * 20).await;
    let taken = recover_one(store, clock).await;
    assert!(!resolve(store, "a", taken.record.fence, Resolution::Release).await);
    assert!(put_off(store, &taken, SECOND).await);
    clock.pass(SECOND * 20).await;
    let taken = recover_one(store, clock).await;
    assert!(resolve(store, "a", taken.record.fence, Resolution::Release).await);
    assert!(!own(store, &claim("a")).await.continues());
}

/// Of two processes that look at the same time each doubt is given to one; catches a store that looks and takes in two
/// steps.
pub async fn one_of_two_recoveries_takes_a_doubt(store: &dyn Store, clock: &dyn Clock) {
    for n in 0..20 {
        doubt(store, &n.to_string()).await;
    }
    clock.pass(SECOND * 2).await;
    survey(store).await;
    let of_charge = of_charge();
    let (one, other) = join(store.recover(&of_charge), store.recover(&of_charge)).await;
    let mut taken = one.unwrap();
    taken.extend(other.unwrap());
    assert_eq!(taken.len(), 20);
    for Recovering { record, tries } in taken {
        assert_eq!(tries, 1);
        assert_eq!(store.find(record.id).await.unwrap().unwrap().fence, record.fence);
    }
}
