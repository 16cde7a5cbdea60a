//! Removing what is over, and nothing else.

use futures_util::future::join;

use super::{steps::*, *};

const SECOND: Duration = Duration::from_secs(1);
/// How much longer than `guard_until` a record stays.
const GRACE: Duration = Duration::from_secs(60);
const ALL: u32 = 1_000;

async fn purge(store: &dyn Store, limit: u32) -> Purged {
    store.purge(&Purge::at_any_time(limit)).await.unwrap()
}

/// Until nothing is due, as a store may remove less than it was asked to.
async fn purge_all(store: &dyn Store) -> u32 {
    let mut removed = 0;
    loop {
        let purged = purge(store, ALL).await;
        removed += purged.records;
        if !purged.more {
            return removed;
        }
    }
}

async fn is_there(store: &dyn Store, key: &str) -> bool {
    store.find(record(key)).await.unwrap().is_some()
}

/// What ended is removed when its windows and a minute are over; catches a store that removes nothing, or only answers.
pub async fn what_is_over_is_purged(store: &dyn Store, clock: &dyn Clock) {
    run(store, "done", Outcome::Done(reply("x"))).await;
    run(store, "rejected", Outcome::Rejected(reply("no"), SECOND)).await;
    run(store, "released", Outcome::Released(Reason::Status)).await;
    clock.pass(GUARD + GRACE + SECOND * 5).await;
    assert_eq!(purge_all(store).await, 3);
    for key in ["done", "rejected", "released"] {
        assert!(!is_there(store, key).await, "{key}");
    }
    assert_eq!(purge_all(store).await, 0);
}

/// What may still be asked for stays, and a minute longer; catches a store that purges by `expires_at`, or at once.
pub async fn a_purge_waits_for_the_windows_and_a_minute(store: &dyn Store, clock: &dyn Clock) {
    run(store, "a", Outcome::Done(reply("x"))).await;
    assert_eq!(purge_all(store).await, 0);
    found!(retry(store, "a").await, Claimed::Found(Found::Replay(_)));
    clock.pass(GUARD - SECOND * 5).await;
    assert_eq!(purge_all(store).await, 0);
    found!(retry(store, "a").await, Claimed::Found(Found::Expired));
    clock.pass(GRACE).await;
    assert_eq!(purge_all(store).await, 0);
    assert!(is_there(store, "a").await, "within the minute");
    clock.pass(SECOND * 10).await;
    assert_eq!(purge_all(store).await, 1);
}

/// What runs, fell silent or is in doubt is never removed; catches a store that purges by age alone.
pub async fn runs_and_doubts_are_never_purged(store: &dyn Store, clock: &dyn Clock) {
    run(store, "held", Outcome::InDoubt(Reason::Panic)).await;
    own(store, &claim("silent")).await;
    clock.pass(GUARD * 100).await;
    let renewed = claim("live");
    own(store, &renewed).await;
    clock.pass(GUARD * 100).await;
    let renewal = Renewal { record: renewed.record, attempt: renewed.attempt };
    assert_eq!(store.renew(&[renewal], LEASE).await.unwrap(), [Renewed::Held]);
    assert_eq!(purge_all(store).await, 0);
    found!(retry(store, "held").await, Claimed::Found(Found::InDoubt(Reason::Panic)));
    found!(retry(store, "silent").await, Claimed::Found(Found::InDoubt(Reason::LeaseExpired)));
    found!(retry(store, "live").await, Claimed::Found(Found::InFlight { .. }));
}

/// A purge is as small as it was asked to be, and says when there is more; catches a store that holds its locks for all
/// that is due, or stops half way.
pub async fn a_purge_removes_at_most_its_limit(store: &dyn Store, clock: &dyn Clock) {
    for key in ["a", "b", "c", "d", "e"] {
        run(store, key, Outcome::Done(reply("x"))).await;
    }
    clock.pass(GUARD * 2).await;
    assert_eq!(purge(store, 2).await, Purged { records: 2, more: true, refused: false });
    assert_eq!(purge(store, 2).await, Purged { records: 2, more: true, refused: false });
    assert_eq!(purge(store, 2).await, Purged { records: 1, more: false, refused: false });
}

/// A purged key begins a new life in which nothing of the old one is left, and the old owner can write no more; catches
/// a store that leaves links or answers lying, repeats its fences or epochs, or finishes by record.
pub async fn a_purged_key_is_claimed_afresh(store: &dyn Store, clock: &dyn Clock) {
    let first = claim("a");
    let Owned { fence, epoch, .. } = own(store, &first).await;
    let link = Link { record: first.record, epoch, attempt: first.attempt, provider: "p".into(), id: "1".into() };
    store.link(&[link]).await.unwrap();
    found!(finish(store, &first, Outcome::Done(reply("old"))).await, Finished::Stored { .. });
    clock.pass(GUARD * 2).await;
    assert_eq!(purge_all(store).await, 1);
    let second = Claim { fingerprint: payload(2), ..claim("a") };
    let owned = own(store, &second).await;
    assert_eq!((owned.attempts, owned.epoch), (1, owned.fence));
    assert!(
        owned.epoch > epoch,
        "{:?} after {epoch:?}: a provider key that comes back meets an old memory",
        owned.epoch
    );
    assert!(owned.fence > fence, "{:?} after {fence:?}", owned.fence);
    assert!(find(store, "a").await.links.is_empty(), "they are the old life's");
    assert!(store.linked("p", "1").await.unwrap().is_empty(), "they went with it");
    assert_eq!(finish(store, &first, Outcome::Done(reply("old"))).await, Finished::Lost);
    found!(finish(store, &second, Outcome::InDoubt(Reason::Status)).await, Finished::Stored { .. });
    let seen = find(store, "a").await.fence;
    assert!(resolve(store, "a", seen, Resolution::Void).await);
    let again = Claim { fingerprint: payload(2), ..claim("a") };
    found!(claim_one(store, &again).await, Claimed::Found(Found::NotRetained { status: None }));
}

/// The time of a purge is kept, and what is due is counted; catches a store that notes nothing, which would let a clock
/// that jumped go unnoticed.
pub async fn a_purge_notes_its_time(store: &dyn Store, clock: &dyn Clock) {
    let due = store.due().await.unwrap();
    assert!(due.since_purge < SECOND * 30, "a new store counts from when it was made: {due:?}");
    assert_eq!(due.records, 0);
    run(store, "a", Outcome::Done(reply("x"))).await;
    run(store, "b", Outcome::InDoubt(Reason::Panic)).await;
    clock.pass(GUARD * 2).await;
    let due = store.due().await.unwrap();
    assert!(due.since_purge >= GUARD * 2, "{due:?}");
    assert_eq!(due.records, 1);
    assert!(due.of >= 1);
    purge_all(store).await;
    let due = store.due().await.unwrap();
    assert!(due.since_purge < SECOND * 30, "{due:?}");
    assert_eq!(due.records, 0);
    clock.pass(SECOND * 60).await;
    assert_eq!(purge_all(store).await, 0);
    assert!(store.due().await.unwrap().since_purge < SECOND * 30, "also one that found nothing");
}

/// Of a record that only refuses the answer goes and the record stays; catches a store that drops nothing, drops what is
/// still due, or removes the record.
pub async fn an_answer_is_dropped_when_its_record_only_refuses(store: &dyn Store, clock: &dyn Clock) {
    run(store, "old", Outcome::Done(reply("x"))).await;
    run(store, "held", Outcome::InDoubt(Reason::Panic)).await;
    clock.pass(SECOND * 600).await;
    run(store, "new", Outcome::Done(reply("y"))).await;
    // Looks at all records, also at those whose answers are due.
    let all = Strip { late: GUARD, back: GUARD, after: None, limit: 100 };
    assert_eq!(store.strip(&all).await.unwrap().answers, 0);
    found!(retry(store, "old").await, Claimed::Found(Found::Replay(_)));
    clock.pass(TTL - SECOND * 300).await;
    assert_eq!(store.strip(&all).await.unwrap(), Stripped { answers: 1, next: None });
    assert_eq!(store.strip(&all).await.unwrap(), Stripped { answers: 0, next: None });
    found!(retry(store, "old").await, Claimed::Found(Found::Expired));
    found!(retry(store, "new").await, Claimed::Found(Found::Replay(replay)) if replay.response == reply("y"));
    found!(retry(store, "held").await, Claimed::Found(Found::InDoubt(Reason::Panic)));
    assert_eq!(find(store, "old").await.state, State::Done);
}

/// Answers are looked for between two ends and in slices, each going on where the last one stopped; catches a store that
/// reads all, or the same slice for ever.
pub async fn answers_are_dropped_in_slices(store: &dyn Store, clock: &dyn Clock) {
    run(store, "long over", Outcome::Done(reply("x"))).await;
    clock.pass(SECOND * 3600).await;
    let keys = ["a", "b", "c", "d", "e"];
    for key in keys {
        run(store, key, Outcome::Done(reply("x"))).await;
    }
    clock.pass(TTL + SECOND * 60).await;
    let mut strip = Strip { late: GUARD - TTL, back: SECOND * 600, after: None, limit: 2 };
    let mut dropped = Vec::new();
    loop {
        let stripped = store.strip(&strip).await.unwrap();
        dropped.push(stripped.answers);
        assert!(dropped.len() < 10, "{dropped:?}");
        strip.after = stripped.next;
        if strip.after.is_none() {
            break;
        }
    }
    assert_eq!(dropped, [2, 2, 1], "none twice, and not the one that was over before");
}

/// A claim that takes a record which is due keeps it; catches a store that removes what it selected a moment ago.
pub async fn a_record_that_is_claimed_again_survives_a_purge(store: &dyn Store, clock: &dyn Clock) {
    const KEYS: usize = 12;
    for round in 0..4 {
        let key = |n: usize| format!("{round}-{n}");
        for n in 0..KEYS {
            run(store, &key(n), Outcome::Done(reply("x"))).await;
        }
        clock.pass(GUARD * 2).await;
        let claims: Vec<Claim> = (0..KEYS).map(|n| claim(&key(n))).collect();
        let claiming = futures_util::future::join_all(claims.iter().map(|claim| claim_one(store, claim)));
        let purging = purge_all(store);
        let claimed = match round % 2 {
            0 => join(purging, claiming).await.1,
            _ => join(claiming, purging).await.0,
        };
        purge_all(store).await;
        assert!(claimed.iter().all(is_owner), "{claimed:?}");
        for claim in &claims {
            let found = store.find(claim.record).await.unwrap().expect("a live record was removed");
            assert_eq!((found.state, found.attempt), (State::InFlight, claim.attempt));
            found!(finish(store, claim, Outcome::Done(reply("y"))).await, Finished::Stored { .. });
        }
        found!(retry(store, &key(0)).await, Claimed::Found(Found::Replay(replay)) if replay.response == reply("y"));
    }
}

/// A purge whose clock went further than its caller allows removes nothing and does not count as one; catches a store that
/// looks at its clock only when it is asked what is due.
pub async fn a_purge_after_too_long_removes_nothing(store: &dyn Store, clock: &dyn Clock) {
    run(store, "a", Outcome::Done(reply("x"))).await;
    purge_all(store).await;
    clock.pass(GUARD + GRACE * 2).await;
    for _ in 0..2 {
        let purged = store.purge(&Purge { limit: ALL, within: GUARD }).await.unwrap();
        assert_eq!(purged, Purged { refused: true, ..Purged::default() });
    }
    assert!(is_there(store, "a").await);
    let purged = store.purge(&Purge { limit: ALL, within: GUARD + GRACE * 4 }).await.unwrap();
    assert_eq!((purged.records, purged.refused), (1, false));
    assert!(!store.purge(&Purge { limit: ALL, within: GRACE }).await.unwrap().refused, "it was a moment ago");
}
