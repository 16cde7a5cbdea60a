//! What may be run again: after a run that failed, and after one that was lost.

use super::{steps::*, *};
use crate::store::Recover;

const SECOND: Duration = Duration::from_secs(1);
const TRY: Duration = Duration::from_secs(60);

/// What a retry that may not run it again is told.
async fn held_back(store: &dyn Store, key: &str) -> Reason {
    found!(retry(store, key).await, Claimed::Found(Found::InDoubt(reason)) => reason)
}

/// A first run that failed.
async fn failed(store: &dyn Store, key: &str) -> Claim {
    let first = rerunnable(key);
    own(store, &first).await;
    found!(finish(store, &first, Outcome::Resumable(Reason::Status)).await, Finished::Stored { .. });
    first
}

/// A run that failed is run again by the same payload, in the same epoch, and its own attempt is fenced off; catches a
/// store that lets nobody, or anybody, have it, or that begins a new operation.
pub async fn a_failed_run_is_run_again(store: &dyn Store, _clock: &dyn Clock) {
    let first = rerunnable("a");
    let owned = own(store, &first).await;
    for _ in 0..2 {
        found!(finish(store, &first, Outcome::Resumable(Reason::Status)).await, Finished::Stored { .. });
    }
    let shown = find(store, "a").await;
    assert_eq!((shown.state, shown.reason), (State::Resumable, Some(Reason::Status)));
    assert_eq!(shown.lease_left, Duration::ZERO, "nobody need wait for it");
    let other = Claim { fingerprint: payload(2), ..rerunnable("a") };
    found!(claim_one(store, &other).await, Claimed::Found(Found::Mismatch));
    let second = rerunnable("a");
    found!(store.peek(&[second.peek()]).await.unwrap().as_slice(), [None]);
    let again = own(store, &second).await;
    assert_eq!((again.attempts, again.epoch), (2, owned.epoch), "the same operation goes on: its provider keys stay");
    assert!(again.fence > owned.fence && again.continues());
    let shown = find(store, "a").await;
    assert_eq!((shown.state, shown.reason), (State::InFlight, None));
    assert!(shown.lease_left > LEASE / 2);
    assert_eq!(finish(store, &first, Outcome::Done(reply("late"))).await, Finished::Lost);
    found!(finish(store, &second, Outcome::Done(reply("second"))).await, Finished::Stored { .. });
    found!(retry(store, "a").await, Claimed::Found(Found::Replay(replay)) if replay.response == reply("second"));
}

/// Nobody runs again what is not theirs to run again: a claim that may not is told that it is in doubt, and an operation
/// that began without a window never gets one; catches a store that looks at one of the two only.
pub async fn both_sides_must_allow_a_rerun(store: &dyn Store, clock: &dyn Clock) {
    failed(store, "failed").await;
    own(store, &rerunnable("lost")).await;
    own(store, &claim("plain")).await;
    run(store, "reported", Outcome::Resumable(Reason::Status)).await;
    clock.pass(LEASE).await;
    assert_eq!(held_back(store, "failed").await, Reason::Abandoned);
    assert_eq!(held_back(store, "lost").await, Reason::LeaseExpired);
    let peek = claim("failed").peek();
    found!(store.peek(&[peek]).await.unwrap().as_slice(), [Some(Found::InDoubt(Reason::Abandoned))]);
    found!(claim_one(store, &rerunnable("plain")).await, Claimed::Found(Found::InDoubt(Reason::LeaseExpired)));
    found!(claim_one(store, &rerunnable("reported")).await, Claimed::Found(Found::InDoubt(Reason::Abandoned)));
    let slice = [rerunnable("lost"), claim("plain"), rerunnable("failed"), claim("new")];
    let told = store.claim(&slice).await.unwrap();
    found!(
        told.as_slice(),
        [Claimed::Owner(_), Claimed::Found(Found::InDoubt(Reason::LeaseExpired)), Claimed::Owner(_), Claimed::Owner(_)]
    );
}

/// A run that continues an operation can end it, or leave it to the next; it can not say that nothing happened, for it
/// knows nothing of the runs before. Catches a store that begins a new epoch beside an effect of the old one.
pub async fn a_run_that_continues_gives_nothing_back(store: &dyn Store, _clock: &dyn Clock) {
    for outcome in [Outcome::Released(Reason::Status), Outcome::Rejected(reply("no"), SECOND * 30)] {
        let key = format!("{:?}", outcome.state());
        let first = failed(store, &key).await;
        let second = rerunnable(&key);
        let epoch = own(store, &second).await.epoch;
        assert_eq!(finish(store, &second, outcome.clone()).await, Finished::Lost);
        assert_eq!(find(store, &key).await.state, State::InFlight, "it is still its own");
        found!(finish(store, &second, Outcome::Resumable(Reason::Status)).await, Finished::Stored { .. });
        assert_eq!(finish(store, &second, outcome.clone()).await, Finished::Lost, "nor afterwards");
        let third = rerunnable(&key);
        assert_eq!(own(store, &third).await.epoch, epoch);
        found!(finish(store, &third, Outcome::Done(reply("third"))).await, Finished::Stored { .. });
        assert_eq!(finish(store, &first, outcome).await, Finished::Lost);
    }
    let only = rerunnable("only");
    let epoch = own(store, &only).await.epoch;
    found!(finish(store, &only, Outcome::Released(Reason::Status)).await, Finished::Stored { .. });
    let next = own(store, &rerunnable("only")).await;
    assert!(next.epoch > epoch && !next.continues(), "what the first run says is all there is");
}

/// A run that gave itself up may still complete, while nobody has run it again; catches a store that makes a second run
/// of what is done.
pub async fn a_late_owner_completes_what_it_left_to_be_run_again(store: &dyn Store, _clock: &dyn Clock) {
    let claim = rerunnable("a");
    own(store, &claim).await;
    found!(finish(store, &claim, Outcome::Resumable(Reason::Shutdown)).await, Finished::Stored { .. });
    assert_eq!(finish(store, &claim, Outcome::InDoubt(Reason::Status)).await, Finished::Lost, "that is no news");
    found!(finish(store, &claim, Outcome::Done(reply("late"))).await, Finished::Stored { .. });
    found!(claim_one(store, &rerunnable("a")).await, Claimed::Found(Found::Replay(replay)) if replay.response == reply("late"));
}

/// The window counts from the first claim of the operation, whatever runs come after, and past it all is in doubt, for
/// claims, lists and looks alike; catches a store that counts from the last run, or that counts as in doubt what only
/// waits for its retry.
pub async fn a_window_for_reruns_ends(store: &dyn Store, clock: &dyn Clock) {
    failed(store, "failed").await;
    let lost = Claim { lease: SECOND, ..rerunnable("lost") };
    own(store, &lost).await;
    clock.pass(WINDOW / 2).await;
    assert_eq!(survey(store).await, [], "they wait for their retries");
    let shown = find(store, "lost").await;
    assert_eq!((shown.state, shown.reason), (State::Resumable, Some(Reason::LeaseExpired)));
    let again = rerunnable("failed");
    own(store, &again).await;
    found!(finish(store, &again, Outcome::Resumable(Reason::Timeout)).await, Finished::Stored { .. });
    clock.pass(WINDOW / 2 - SECOND * 60).await; // looks over so many hours take a while
    assert_eq!(survey(store).await, []);
    clock.pass(SECOND * 90).await;
    let told = store.claim(&[rerunnable("failed"), rerunnable("lost")]).await.unwrap();
    found!(
        told.as_slice(),
        [Claimed::Found(Found::InDoubt(Reason::Abandoned)), Claimed::Found(Found::InDoubt(Reason::LeaseExpired))]
    );
    for (key, reason) in [("failed", Reason::Abandoned), ("lost", Reason::LeaseExpired)] {
        let shown = find(store, key).await;
        assert_eq!((shown.state, shown.reason), (State::InDoubt, Some(reason)));
    }
    let doubts = survey(store).await;
    found!(&*doubts, [doubts] if doubts.count == 2 && (SECOND * 20..SECOND * 600).contains(&doubts.oldest));
    let of = async |state| {
        let filter = crate::store::Filter::default().state(state);
        store.list(&filter, crate::store::Page::first(10)).await.unwrap().len()
    };
    assert_eq!((of(State::InDoubt).await, of(State::Resumable).await, of(State::InFlight).await), (2, 0, 0));
    failed(store, "young").await;
    clock.pass(SECOND * 3).await;
    survey(store).await;
    assert_eq!((of(State::InDoubt).await, of(State::Resumable).await, of(State::InFlight).await), (2, 1, 0));
}

/// What waits for its retry is no recovery's, until its window is over, and from then on no owner is waited for that has
/// reported; catches a store that takes it away from its retry, or leaves it to nobody.
pub async fn a_recovery_takes_what_was_not_run_again_in_time(store: &dyn Store, clock: &dyn Clock) {
    let recover = Recover { ops: vec!["charge"], lease: TRY, grace: SECOND * 5, tries: 10, limit: 100 };
    failed(store, "failed").await;
    own(store, &rerunnable("lost")).await;
    clock.pass(LEASE * 2).await;
    survey(store).await;
    assert!(store.recover(&recover).await.unwrap().is_empty());
    clock.pass(WINDOW).await;
    survey(store).await;
    let mut taken = store.recover(&recover).await.unwrap();
    taken.sort_by_key(|taken| taken.record.reason.map(Reason::code));
    let reasons: Vec<_> = taken.iter().map(|taken| (taken.record.state, taken.record.reason)).collect();
    let doubt = |reason| (State::InDoubt, Some(reason));
    assert_eq!(reasons, [doubt(Reason::LeaseExpired), doubt(Reason::Abandoned)]);
    for taken in taken {
        let by = Audit { who: "hook".into(), why: "it happened".into() };
        let to = Resolution::Complete(reply("found"));
        let (record, seen) = (taken.record.id, taken.record.fence);
        let resolve = Resolve { record, seen, to, quarantine: QUARANTINE, rerun: WINDOW, reason: Reason::Recovery, by };
        assert!(store.resolve(&resolve).await.unwrap());
    }
    found!(claim_one(store, &rerunnable("lost")).await, Claimed::Found(Found::Replay(_)));

    let brief = Claim { rerun: SECOND * 5, ..rerunnable("brief") };
    own(store, &brief).await;
    found!(finish(store, &brief, Outcome::Resumable(Reason::Status)).await, Finished::Stored { .. });
    clock.pass(SECOND * 6).await;
    survey(store).await;
    let patient = Recover { grace: TRY, ..recover };
    assert_eq!(store.recover(&patient).await.unwrap().len(), 1, "it has reported");
}

/// An operator may settle what waits for its retry; but that nothing happened is to be believed at once of an only run
/// that has reported, and of several after the quarantine. Catches a store that believes the last one.
pub async fn an_operator_settles_what_may_be_run_again(store: &dyn Store, clock: &dyn Clock) {
    for (key, to) in [("complete", Resolution::Complete(reply("x"))), ("void", Resolution::Void)] {
        failed(store, key).await;
        let seen = find(store, key).await.fence;
        assert!(resolve(store, key, seen, to).await);
        assert_eq!(find(store, key).await.state, State::Done);
    }
    failed(store, "only").await;
    let seen = find(store, "only").await.fence;
    assert!(resolve(store, "only", seen, Resolution::Release).await);
    assert!(!own(store, &rerunnable("only")).await.continues());

    let silent = rerunnable("silent");
    own(store, &silent).await;
    clock.pass(LEASE).await;
    let second = rerunnable("silent");
    own(store, &second).await;
    found!(finish(store, &second, Outcome::Resumable(Reason::Status)).await, Finished::Stored { .. });
    let seen = find(store, "silent").await.fence;
    assert!(!resolve(store, "silent", seen, Resolution::Release).await, "the first may still act");
    clock.pass(QUARANTINE).await;
    assert!(resolve(store, "silent", seen, Resolution::Release).await);
    assert!(!own(store, &rerunnable("silent")).await.continues());
}

/// Somebody lets it be run again: whatever became of it, its operation goes on, in a window that begins anew; the run that
/// was under way comes too late. What is never run again stays in doubt. Catches a store that takes the word of whoever
/// decides for the operation's, leaves the window over, or begins another operation.
pub async fn what_is_resumed_is_run_again(store: &dyn Store, clock: &dyn Clock) {
    let first = rerunnable("reported");
    let epoch = own(store, &first).await.epoch;
    found!(finish(store, &first, Outcome::InDoubt(Reason::Timeout)).await, Finished::Stored { .. });
    let seen = find(store, "reported").await.fence;
    assert!(!resolve(store, "reported", Fence(seen.0 + 1), Resolution::Resume).await);
    assert!(resolve(store, "reported", seen, Resolution::Resume).await);
    let shown = find(store, "reported").await;
    assert_eq!((shown.state, shown.reason), (State::Resumable, Some(Reason::Operator)));
    assert!(shown.fence > seen && shown.attempt != first.attempt && shown.epoch == epoch);
    assert_eq!(finish(store, &first, Outcome::Done(reply("late"))).await, Finished::Lost);
    let again = own(store, &rerunnable("reported")).await;
    assert_eq!((again.attempts, again.epoch), (2, epoch));
    let seen = find(store, "reported").await.fence;
    assert!(!resolve(store, "reported", seen, Resolution::Resume).await, "it runs");

    failed(store, "failed").await;
    let lost = rerunnable("lost");
    own(store, &lost).await;
    run(store, "held", Outcome::InDoubt(Reason::Status)).await;
    clock.pass(WINDOW + SECOND).await;
    for key in ["failed", "lost"] {
        let seen = find(store, key).await.fence;
        assert!(resolve(store, key, seen, Resolution::Resume).await, "{key}: its window is over");
        assert_eq!(find(store, key).await.state, State::Resumable, "{key}: it begins anew");
    }
    assert_eq!(finish(store, &lost, Outcome::Done(reply("late"))).await, Finished::Lost);
    clock.pass(WINDOW - SECOND * 60).await;
    assert!(own(store, &rerunnable("lost")).await.continues());
    clock.pass(SECOND * 90).await;
    found!(claim_one(store, &rerunnable("failed")).await, Claimed::Found(Found::InDoubt(Reason::Abandoned)));
    let seen = find(store, "held").await.fence;
    assert!(!resolve(store, "held", seen, Resolution::Resume).await, "it is never run again");
    let shown = find(store, "held").await;
    assert_eq!((shown.state, shown.fence), (State::InDoubt, seen));
}

/// What may be run again, or could have been, is never removed, and a retry never begins it anew; catches a store that
/// purges by age or by state alone.
pub async fn what_was_not_run_again_is_never_purged(store: &dyn Store, clock: &dyn Clock) {
    failed(store, "failed").await;
    clock.pass(GUARD * 100).await;
    let limit = 100;
    let purge = Purge { limit, ..Purge::at_any_time(limit) };
    assert_eq!(store.purge(&purge).await.unwrap().records, 0);
    found!(claim_one(store, &rerunnable("failed")).await, Claimed::Found(Found::InDoubt(Reason::Abandoned)));
}
