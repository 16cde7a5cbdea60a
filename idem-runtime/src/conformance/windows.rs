//! What the passing of time changes.

use super::{steps::*, *};

const SECOND: Duration = Duration::from_secs(1);

/// A lease that ends leaves a doubt, seen by all and run by none; catches a store that frees, or overwrites, what has
/// been silent.
pub async fn an_expired_lease_is_in_doubt(store: &dyn Store, clock: &dyn Clock) {
    let owned = own(store, &claim("a")).await;
    clock.pass(LEASE - SECOND * 5).await;
    found!(retry(store, "a").await, Claimed::Found(Found::InFlight { age }) if age >= LEASE - SECOND * 5);
    clock.pass(SECOND * 5).await;
    found!(retry(store, "a").await, Claimed::Found(Found::InDoubt(Reason::LeaseExpired)));
    found!(claim_one(store, &Claim { fingerprint: payload(2), ..claim("a") }).await, Claimed::Found(Found::Mismatch));
    let found = find(store, "a").await;
    assert_eq!((found.state, found.reason), (State::InDoubt, Some(Reason::LeaseExpired)));
    assert_eq!((found.lease_left, found.attempts, found.fence), (Duration::ZERO, 1, owned.fence));
    assert!(found.age >= LEASE);
}

/// An owner that comes back late may still finish, if the record is still its own; catches a store that compares the
/// lease where it must compare the attempt.
pub async fn a_late_owner_completes_if_nobody_took_over(store: &dyn Store, clock: &dyn Clock) {
    let claim = claim("a");
    own(store, &claim).await;
    clock.pass(LEASE * 2).await;
    found!(retry(store, "a").await, Claimed::Found(Found::InDoubt(Reason::LeaseExpired)));
    found!(finish(store, &claim, Outcome::Done(reply("late"))).await, Finished::Stored { .. });
    found!(retry(store, "a").await, Claimed::Found(Found::Replay(replay)) if replay.response == reply("late"));
}

/// Where a second run is allowed, it takes over in the same epoch and fences the first one off; catches a completion
/// that is not fenced, and a take-over by another payload.
pub async fn a_rerun_takes_over_an_expired_lease(store: &dyn Store, clock: &dyn Clock) {
    let first = rerunnable("a");
    let owned = own(store, &first).await;
    clock.pass(LEASE).await;
    let other = Claim { fingerprint: payload(2), ..rerunnable("a") };
    found!(claim_one(store, &other).await, Claimed::Found(Found::Mismatch));
    let second = rerunnable("a");
    let taken = own(store, &second).await;
    assert_eq!((taken.attempts, taken.epoch), (2, owned.epoch), "the same operation goes on: its provider keys stay");
    assert!(taken.fence > owned.fence);
    found!(retry(store, "a").await, Claimed::Found(Found::InFlight { age }) if age < LEASE);
    let renewal = Renewal { record: first.record, attempt: first.attempt };
    assert_eq!(store.renew(&[renewal], LEASE).await.unwrap(), [Renewed::Lost]);
    for outcome in [Outcome::Done(reply("zombie")), Outcome::InDoubt(Reason::Status), Outcome::Released(Reason::Status)]
    {
        assert_eq!(finish(store, &first, outcome).await, Finished::Lost);
    }
    found!(finish(store, &second, Outcome::Done(reply("second"))).await, Finished::Stored { .. });
    found!(retry(store, "a").await, Claimed::Found(Found::Replay(replay)) if replay.response == reply("second"));
}

/// A second run is for the same scope only; catches a store that takes over what it cannot compare.
pub async fn a_rerun_by_another_scope_takes_nothing_over(store: &dyn Store, clock: &dyn Clock) {
    let by = |scope, algorithm| Claim { fingerprint: within(scope, algorithm, 1), ..rerunnable("a") };
    let owned = own(store, &by("acme", 4)).await;
    clock.pass(LEASE).await;
    for algorithm in [4, 5] {
        found!(claim_one(store, &by("globex", algorithm)).await, Claimed::Found(Found::Mismatch));
    }
    assert_eq!(find(store, "a").await.fence, owned.fence);
    assert_eq!(own(store, &by("acme", 5)).await.attempts, 2);
}

/// An answer is replayed for `ttl`, refused until `guard`, then the key is free; catches a store that runs a late retry
/// or keeps the old record's times.
pub async fn an_answer_is_replayed_then_refused_then_runs_afresh(store: &dyn Store, clock: &dyn Clock) {
    let first = run(store, "a", Outcome::Done(reply("x"))).await;
    let fence = find(store, "a").await.fence;
    clock.pass(TTL - SECOND * 5).await;
    found!(retry(store, "a").await, Claimed::Found(Found::Replay(replay)) if replay.ttl_left <= SECOND * 5);
    clock.pass(SECOND * 5).await;
    found!(retry(store, "a").await, Claimed::Found(Found::Expired));
    found!(claim_one(store, &Claim { fingerprint: payload(2), ..claim("a") }).await, Claimed::Found(Found::Mismatch));
    clock.pass(GUARD - TTL - SECOND * 5).await;
    found!(retry(store, "a").await, Claimed::Found(Found::Expired));
    assert_eq!(find(store, "a").await.fence, fence, "refusals write nothing");
    clock.pass(SECOND * 5).await;
    let owned = own(store, &Claim { fingerprint: payload(2), ..claim("a") }).await;
    found!(owned.attempts, 2 | 1); // the latter where it has been purged meanwhile
    assert!(!owned.continues());
    assert_eq!(finish(store, &first, Outcome::Done(reply("x"))).await, Finished::Lost);
    assert!(find(store, "a").await.lease_left > LEASE / 2);
}

/// Of many claims of an expired record one runs; catches a store that deletes and inserts in two steps.
pub async fn one_of_many_runs_an_expired_record_afresh(store: &dyn Store, clock: &dyn Clock) {
    run(store, "a", Outcome::Done(reply("x"))).await;
    clock.pass(GUARD).await;
    let claimed = futures_util::future::join_all((0..20).map(|_| retry(store, "a"))).await;
    assert_eq!(claimed.iter().filter(|claimed| matches!(claimed, Claimed::Owner(_))).count(), 1, "{claimed:?}");
    assert_eq!(claimed.iter().filter(|claimed| matches!(claimed, Claimed::Found(Found::InFlight { .. }))).count(), 19);
}

/// A kept client error is replayed as long as its outcome says; catches a store that keeps it for `ttl`.
pub async fn a_rejection_lasts_as_long_as_it_says(store: &dyn Store, clock: &dyn Clock) {
    run(store, "a", Outcome::Rejected(reply("no"), SECOND * 60)).await;
    clock.pass(SECOND * 50).await;
    found!(retry(store, "a").await, Claimed::Found(Found::Replay(replay)) if replay.ttl_left <= SECOND * 10);
    clock.pass(SECOND * 10).await;
    let owned = own(store, &claim("a")).await;
    assert_eq!((owned.attempts, owned.epoch), (2, owned.fence));
}

/// A kept client error ends with the `ttl` of its claim; catches a store that takes the outcome's word alone.
pub async fn a_rejection_does_not_outlast_its_ttl(store: &dyn Store, clock: &dyn Clock) {
    let claim = Claim { ttl: SECOND * 60, guard: SECOND * 60, ..claim("a") };
    own(store, &claim).await;
    let finished = finish(store, &claim, Outcome::Rejected(reply("no"), TTL)).await;
    found!(finished, Finished::Stored { ttl_left } if ttl_left <= SECOND * 60);
    clock.pass(SECOND * 60).await;
    own(store, &steps::claim("a")).await;
}

/// What runs or is in doubt never expires by `ttl`; catches a store that purges, or overwrites, live records.
pub async fn what_is_in_doubt_never_expires(store: &dyn Store, clock: &dyn Clock) {
    run(store, "held", Outcome::InDoubt(Reason::Panic)).await;
    own(store, &claim("silent")).await;
    clock.pass(GUARD * 100).await;
    found!(retry(store, "held").await, Claimed::Found(Found::InDoubt(Reason::Panic)));
    found!(retry(store, "silent").await, Claimed::Found(Found::InDoubt(Reason::LeaseExpired)));
}

/// An answer that comes late in its windows, or after them, gets them anew; catches a store that counts them from the
/// claim only, so that the next retry runs again.
pub async fn an_answer_that_comes_late_is_not_run_again_by_the_next_retry(store: &dyn Store, clock: &dyn Clock) {
    let slow = claim("slow");
    own(store, &slow).await;
    run(store, "settled", Outcome::InDoubt(Reason::Panic)).await;
    run(store, "voided", Outcome::InDoubt(Reason::Panic)).await;
    clock.pass(GUARD * 2).await; // a run longer than its windows, and doubts older than them
    found!(finish(store, &slow, Outcome::Done(reply("slow"))).await, Finished::Stored { ttl_left } if ttl_left > TTL / 2);
    let seen = find(store, "settled").await.fence;
    assert!(resolve(store, "settled", seen, Resolution::Complete(reply("settled"))).await);
    let seen = find(store, "voided").await.fence;
    assert!(resolve(store, "voided", seen, Resolution::Void).await);
    found!(retry(store, "slow").await, Claimed::Found(Found::Replay(replay)) if replay.response == reply("slow"));
    found!(retry(store, "settled").await, Claimed::Found(Found::Replay(replay)) if replay.response == reply("settled"));
    found!(retry(store, "voided").await, Claimed::Found(Found::NotRetained { status: None }));
    clock.pass(TTL).await;
    found!(retry(store, "slow").await, Claimed::Found(Found::Expired));
}

/// A silent run is released only after its quarantine, and is then shut out for good; catches a completion that is not
/// fenced, and a store that ignores the quarantine.
pub async fn a_zombie_of_a_released_run_is_shut_out(store: &dyn Store, clock: &dyn Clock) {
    let zombie = claim("a");
    let seen = own(store, &zombie).await.fence;
    clock.pass(LEASE + QUARANTINE - SECOND * 5).await;
    assert!(!resolve(store, "a", seen, Resolution::Release).await, "it may still act");
    clock.pass(SECOND * 5).await;
    assert!(resolve(store, "a", seen, Resolution::Release).await);
    for outcome in [Outcome::Done(reply("zombie")), Outcome::Released(Reason::Status)] {
        assert_eq!(finish(store, &zombie, outcome).await, Finished::Lost, "released, not by itself");
    }
    let second = claim("a");
    let owned = own(store, &second).await;
    assert_eq!((owned.attempts, owned.epoch), (2, owned.fence));
    assert_eq!(finish(store, &zombie, Outcome::Done(reply("zombie"))).await, Finished::Lost);
    let renewal = Renewal { record: zombie.record, attempt: zombie.attempt };
    assert_eq!(store.renew(&[renewal], LEASE).await.unwrap(), [Renewed::Lost]);
    found!(finish(store, &second, Outcome::Done(reply("second"))).await, Finished::Stored { .. });
}

/// A doubt that was settled guards its key for as long as its first body may act, however short its windows; catches a
/// store that lets the next retry run beside it, and one that shortens a window.
pub async fn a_settled_doubt_guards_its_quarantine(store: &dyn Store, clock: &dyn Clock) {
    let short = |key| Claim { ttl: SECOND * 60, guard: SECOND * 60, ..claim(key) };
    for key in ["voided", "completed", "silent"] {
        own(store, &short(key)).await;
    }
    own(store, &claim("long")).await;
    clock.pass(LEASE).await;
    for (key, to) in [
        ("voided", Resolution::Void),
        ("completed", Resolution::Complete(reply("x"))),
        ("long", Resolution::Complete(reply("x"))),
    ] {
        let seen = find(store, key).await.fence;
        assert!(resolve(store, key, seen, to).await);
    }
    found!(retry(store, "completed").await, Claimed::Found(Found::Replay(_)));
    clock.pass(SECOND * 120).await;
    for key in ["voided", "completed"] {
        found!(retry(store, key).await, Claimed::Found(Found::Expired));
    }
    clock.pass(QUARANTINE - SECOND * 125).await;
    let seen = find(store, "silent").await.fence;
    assert!(!resolve(store, "silent", seen, Resolution::Release).await);
    for key in ["voided", "completed"] {
        found!(retry(store, key).await, Claimed::Found(Found::Expired));
    }
    clock.pass(SECOND * 5).await;
    for key in ["voided", "completed"] {
        own(store, &claim(key)).await;
    }
    clock.pass(TTL - QUARANTINE - LEASE * 2).await;
    found!(retry(store, "long").await, Claimed::Found(Found::Replay(_)));
    clock.pass(LEASE * 2).await;
    found!(retry(store, "long").await, Claimed::Found(Found::Expired));
}

/// A key in its second life never answers from its first; catches a store that leaves the old answer lying under the
/// new run.
pub async fn a_voided_key_does_not_answer_from_an_earlier_epoch(store: &dyn Store, clock: &dyn Clock) {
    run(store, "a", Outcome::Done(reply("old"))).await;
    clock.pass(GUARD).await;
    run(store, "a", Outcome::InDoubt(Reason::Panic)).await;
    found!(retry(store, "a").await, Claimed::Found(Found::InDoubt(Reason::Panic)));
    let seen = find(store, "a").await.fence;
    assert!(resolve(store, "a", seen, Resolution::Void).await);
    found!(retry(store, "a").await, Claimed::Found(Found::NotRetained { status: None }));
}

/// A renewal moves the end of the lease, counted from now; catches a store that adds to the old end, or says `Held`
/// without writing.
pub async fn a_renewed_lease_ends_later(store: &dyn Store, clock: &dyn Clock) {
    let claim = claim("a");
    own(store, &claim).await;
    let renewal = Renewal { record: claim.record, attempt: claim.attempt };
    clock.pass(LEASE - SECOND * 5).await;
    assert_eq!(store.renew(&[renewal], LEASE).await.unwrap(), [Renewed::Held]);
    clock.pass(SECOND * 10).await;
    found!(retry(store, "a").await, Claimed::Found(Found::InFlight { .. }));
    clock.pass(LEASE).await;
    found!(retry(store, "a").await, Claimed::Found(Found::InDoubt(Reason::LeaseExpired)));
    // Nobody took over meanwhile, so the owner may go on.
    assert_eq!(store.renew(&[renewal], LEASE).await.unwrap(), [Renewed::Held]);
    found!(retry(store, "a").await, Claimed::Found(Found::InFlight { .. }));
}

/// A look for doubts counts what a run has reported and what has lost its lease, says how long, and leaves out what runs
/// or is settled; catches a store that counts by state alone.
pub async fn doubts_are_counted_by_operation(store: &dyn Store, clock: &dyn Clock) {
    assert_eq!(survey(store).await, []);
    own(store, &claim("lost")).await;
    run(store, "reported", Outcome::InDoubt(Reason::Panic)).await;
    run(store, "done", Outcome::Done(reply("x"))).await;
    own(store, &Claim { op: "payout", lease: LEASE * 10, ..claim("live") }).await;
    clock.pass(SECOND * 5).await;
    found!(&*survey(store).await, [doubts] if counted(doubts, 1, SECOND * 5..SECOND * 15));
    clock.pass(LEASE).await;
    found!(&*survey(store).await, [doubts] if doubts.record == record("reported"));
    found!(&*survey(store).await, [doubts] if counted(doubts, 2, LEASE + SECOND * 5..LEASE + SECOND * 20));
    let silent_for = find(store, "lost").await.silent_for;
    assert!((SECOND * 5..SECOND * 20).contains(&silent_for), "{silent_for:?}");
    for (key, left) in [("reported", 1), ("lost", 0)] {
        let seen = find(store, key).await.fence;
        assert!(resolve(store, key, seen, Resolution::Complete(reply("y"))).await);
        let doubts = survey(store).await;
        assert!(doubts.iter().map(|doubts| doubts.count).eq((left > 0).then_some(left)), "{doubts:?}");
        assert!(doubts.iter().all(|doubts| counted(doubts, left, SECOND * 5..SECOND * 20)), "{doubts:?}");
    }
}

fn counted(doubts: &Doubts, count: u64, oldest: std::ops::Range<Duration>) -> bool {
    doubts.op == "charge" && doubts.count == count && oldest.contains(&doubts.oldest)
}
