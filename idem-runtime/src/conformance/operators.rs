//! What operators see and do.

use super::{steps::*, *};

/// An operator sees the record as it stands, in the wall clock's time; catches a store that shows its own clock's zero
/// or units.
pub async fn find_shows_the_record(store: &dyn Store) {
    assert!(store.find(record("a")).await.unwrap().is_none());
    let claim = claim("a");
    let owned = own(store, &claim).await;
    let found = find(store, "a").await;
    assert_eq!((found.id, &*found.op, found.attempt), (claim.record, "charge", claim.attempt));
    assert_eq!(found.scope, "acme");
    assert_eq!((found.state, found.reason), (State::InFlight, None));
    assert_eq!((found.fence, found.attempts, found.epoch), (owned.fence, 1, owned.fence));
    assert!(found.age < Duration::from_secs(5), "{:?}", found.age);
    assert!(found.lease_left <= LEASE && found.lease_left > LEASE / 2);
    let window = found.expires_at.duration_since(found.created_at).unwrap();
    assert!(window.abs_diff(TTL) < Duration::from_millis(2), "{window:?}");
    #[allow(clippy::disallowed_methods, reason = "what operators see is compared with the wall clock")]
    let off = SystemTime::now().duration_since(found.created_at).unwrap_or_default();
    assert!(off < Duration::from_secs(5), "{off:?}");
    assert!(found.links.is_empty());
}

/// A record is shown as that of whoever took it last; catches a store that keeps the first scope, or writes down that of
/// a refused claim. (One record may be claimed from several scopes: `foreign_scope = reject`.)
pub async fn find_shows_whose_record_it_is(store: &dyn Store) {
    let foreign = || Claim { scope: "globex".into(), ..claim("a") };
    let first = claim("a");
    own(store, &first).await;
    found!(claim_one(store, &foreign()).await, Claimed::Found(Found::InFlight { .. }));
    assert_eq!(find(store, "a").await.scope, "acme");
    finish(store, &first, Outcome::Released(Reason::Status)).await;
    assert_eq!(find(store, "a").await.scope, "acme");
    own(store, &foreign()).await;
    assert_eq!(find(store, "a").await.scope, "globex");
}

fn link(claim: &Claim, epoch: Fence, id: &str) -> Link {
    Link { record: claim.record, epoch, attempt: claim.attempt, provider: "stripe".into(), id: id.into() }
}

fn names(ids: &[&str]) -> Vec<(String, String)> {
    ids.iter().map(|id| (String::from("stripe"), String::from(*id))).collect()
}

/// Provider ids are kept once, oldest first, whoever sends them; catches a store that fences evidence off or sorts it.
pub async fn links_are_kept_once_and_in_order(store: &dyn Store) {
    let (claim, other) = (claim("a"), claim("b"));
    let epoch = own(store, &claim).await.epoch;
    let others = own(store, &other).await.epoch;
    store.link(&[link(&claim, epoch, "ch_2"), link(&claim, epoch, "ch_1")]).await.unwrap();
    store
        .link(&[link(&claim, epoch, "ch_2"), link(&other, others, "ch_2"), link(&claim, epoch, "ch_0")])
        .await
        .unwrap();
    assert_eq!(find(store, "a").await.links, names(&["ch_2", "ch_1", "ch_0"]));
    assert_eq!(find(store, "b").await.links, names(&["ch_2"]), "one id may belong to several operations");
    // Not fenced: what a run that has lost its record did is evidence all the same.
    let late = Link { attempt: Attempt::random(), ..link(&claim, epoch, "ch_late") };
    store.link(&[late, link(&steps::claim("absent"), epoch, "ch_3")]).await.unwrap();
    assert_eq!(find(store, "a").await.links.len(), 4);
}

/// A key that starts afresh shows no ids of its earlier life; catches a store that keeps links by record alone.
pub async fn links_belong_to_their_epoch(store: &dyn Store) {
    let first = claim("a");
    let old = own(store, &first).await.epoch;
    store.link(&[link(&first, old, "old"), link(&first, old, "both")]).await.unwrap();
    finish(store, &first, Outcome::Released(Reason::Status)).await;
    let second = claim("a");
    let new = own(store, &second).await.epoch;
    assert!(find(store, "a").await.links.is_empty());
    store.link(&[link(&second, new, "new"), link(&second, new, "both")]).await.unwrap();
    store.link(&[link(&first, old, "both"), link(&first, old, "late")]).await.unwrap();
    let mut links = find(store, "a").await.links;
    links.sort();
    assert_eq!(links, names(&["both", "new"]));
}

/// A decision counts only if nothing happened since the operator looked; catches a store that does not compare the
/// fence, or does not move it.
pub async fn resolve_compares_the_fence(store: &dyn Store) {
    run(store, "a", Outcome::InDoubt(Reason::Panic)).await;
    let seen = find(store, "a").await.fence;
    for stale in [Fence(seen.0 - 1), Fence(seen.0 + 1)] {
        assert!(!resolve(store, "a", stale, Resolution::Release).await);
    }
    assert!(!resolve(store, "absent", seen, Resolution::Release).await);
    assert_eq!(find(store, "a").await.state, State::InDoubt);
    assert!(resolve(store, "a", seen, Resolution::Complete(reply("x"))).await);
    assert!(!resolve(store, "a", seen, Resolution::Complete(reply("y"))).await, "the fence has moved");
    found!(retry(store, "a").await, Claimed::Found(Found::Replay(replay)) if replay.response == reply("x"));
}

/// Nobody settles a record under a live lease or one that is done; catches a store that overwrites them.
pub async fn resolve_leaves_a_live_run_alone(store: &dyn Store) {
    let claim = claim("live");
    let live = own(store, &claim).await.fence;
    run(store, "done", Outcome::Done(reply("x"))).await;
    let done = find(store, "done").await.fence;
    for to in [Resolution::Complete(reply("y")), Resolution::Void, Resolution::Release] {
        assert!(!resolve(store, "live", live, to.clone()).await);
        assert!(!resolve(store, "done", done, to).await, "done is final");
    }
    found!(finish(store, &claim, Outcome::Done(reply("z"))).await, Finished::Stored { .. });
    found!(retry(store, "done").await, Claimed::Found(Found::Replay(replay)) if replay.response == reply("x"));
}

/// A completed doubt replays the operator's answer and shuts its old attempt out; catches a store that settles without
/// changing the attempt.
pub async fn resolve_completes(store: &dyn Store) {
    let claim = run(store, "a", Outcome::InDoubt(Reason::Timeout)).await;
    let seen = find(store, "a").await.fence;
    assert!(resolve(store, "a", seen, Resolution::Complete(reply("settled"))).await);
    let found = find(store, "a").await;
    assert_eq!((found.state, found.reason), (State::Done, Some(Reason::Operator)));
    assert!(found.fence > seen);
    assert_ne!(found.attempt, claim.attempt);
    for outcome in [Outcome::Done(reply("zombie")), Outcome::InDoubt(Reason::Status)] {
        assert_eq!(finish(store, &claim, outcome).await, Finished::Lost);
    }
    let replay = found!(retry(store, "a").await, Claimed::Found(Found::Replay(replay)) => replay);
    assert_eq!(replay.response, reply("settled"));
    assert!(replay.is_final);
}

/// A voided record neither answers nor runs; catches a store that takes a missing answer for a free record.
pub async fn resolve_voids(store: &dyn Store) {
    run(store, "a", Outcome::InDoubt(Reason::Panic)).await;
    let seen = find(store, "a").await.fence;
    assert!(resolve(store, "a", seen, Resolution::Void).await);
    found!(retry(store, "a").await, Claimed::Found(Found::NotRetained { status: None }));
    let found = find(store, "a").await;
    assert_eq!((found.state, found.reason), (State::Done, Some(Reason::Operator)));
}

/// A doubt is released at once only if its body surely ended; catches a store that ignores the quarantine, or the
/// reason, or takes a body that was cut off in the middle of a call for one that has ended.
pub async fn resolve_releases_what_has_ended_by_its_own_report(store: &dyn Store) {
    let claim = run(store, "status", Outcome::InDoubt(Reason::Status)).await;
    let seen = find(store, "status").await.fence;
    assert!(resolve(store, "status", seen, Resolution::Release).await);
    assert_eq!(find(store, "status").await.state, State::Released);
    let owned = own(store, &steps::claim("status")).await;
    assert_eq!((owned.attempts, owned.epoch), (2, owned.fence));
    assert_eq!(finish(store, &claim, Outcome::Done(reply("x"))).await, Finished::Lost);

    for reason in [Reason::Shutdown, Reason::Timeout, Reason::Cancelled, Reason::LeaseExpired] {
        let key = format!("{reason:?}");
        run(store, &key, Outcome::InDoubt(reason)).await;
        let seen = find(store, &key).await.fence;
        assert!(!resolve(store, &key, seen, Resolution::Release).await, "{key}: what it has sent may still act");
        assert_eq!(find(store, &key).await.state, State::InDoubt);
    }
    for reason in [Reason::Panic, Reason::Store] {
        let key = format!("{reason:?}");
        run(store, &key, Outcome::InDoubt(reason)).await;
        let seen = find(store, &key).await.fence;
        assert!(resolve(store, &key, seen, Resolution::Release).await, "{key}: its body has ended");
    }
}
