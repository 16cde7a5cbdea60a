//! Claims and peeks.

use super::*;

pub(crate) async fn first_claim_owns(store: &dyn Store) {
    let first = own(store, &claim("a")).await;
    assert_eq!((first.attempts, first.epoch), (1, 0));
    let other = own(store, &claim("b")).await;
    assert_eq!((other.attempts, other.epoch), (1, 0));
    assert!(other.fence > first.fence);
}

pub(crate) async fn second_claim_is_in_flight(store: &dyn Store) {
    let owned = own(store, &claim("a")).await;
    found!(retry(store, "a").await, Claimed::Found(Found::InFlight { age }) if age < LEASE);
    let rerun = Claim { rerun: true, ..claim("a") };
    found!(claim_one(store, &rerun).await, Claimed::Found(Found::InFlight { .. }));
    let found = find(store, "a").await;
    assert_eq!((found.fence, found.attempts), (owned.fence, 1), "a refused claim writes nothing");
}

pub(crate) async fn scenario_53_a_claim_sent_again_is_still_the_owners(store: &dyn Store) {
    let claim = claim("a");
    let first = own(store, &claim).await;
    assert_eq!(own(store, &claim).await, first);
    assert_eq!(find(store, "a").await.attempts, 1);
    finish(store, &claim, Outcome::Done(reply("x"))).await;
    found!(claim_one(store, &claim).await, Claimed::Found(Found::Replay(_)));
}

pub(crate) async fn clause_03_a_mismatch_is_told_before_anything_else(store: &dyn Store) {
    own(store, &claim("in-flight")).await;
    run(store, "done", Outcome::Done(reply("x"))).await;
    run(store, "in-doubt", Outcome::InDoubt(Reason::Panic)).await;
    for key in ["in-flight", "done", "in-doubt"] {
        let other = Claim { fingerprint: payload(2), ..claim(key) };
        found!(claim_one(store, &other).await, Claimed::Found(Found::Mismatch));
    }
}

pub(crate) async fn digests_of_another_algorithm_are_not_compared(store: &dyn Store) {
    run(store, "a", Outcome::Done(reply("x"))).await;
    let newer = Claim { fingerprint: Fingerprint::from_parts(2, [7; 32]), ..claim("a") };
    let replay = found!(claim_one(store, &newer).await, Claimed::Found(Found::Replay(replay)) => replay);
    assert_eq!((replay.fingerprint.algorithm(), replay.fingerprint.digest()), (1, &[1; 32]), "of what was answered");
}

pub(crate) async fn a_slice_is_answered_in_order(store: &dyn Store) {
    own(store, &claim("in-flight")).await;
    run(store, "done", Outcome::Done(reply("x"))).await;
    run(store, "in-doubt", Outcome::InDoubt(Reason::Timeout)).await;
    let mismatch = Claim { fingerprint: payload(2), ..claim("done") };
    let claims = [claim("new-1"), claim("done"), claim("in-flight"), claim("new-2"), claim("in-doubt")];
    let claimed = store.claim(&claims).await.unwrap();
    let [first, done, in_flight, second, in_doubt] = claimed.try_into().unwrap();
    let first = found!(first, Claimed::Owner(owned) => owned);
    found!(done, Claimed::Found(Found::Replay(_)));
    found!(in_flight, Claimed::Found(Found::InFlight { .. }));
    let second = found!(second, Claimed::Owner(owned) => owned);
    found!(in_doubt, Claimed::Found(Found::InDoubt(Reason::Timeout)));
    assert_ne!(first.fence, second.fence);
    for claim in [&claims[0], &claims[3]] {
        assert_eq!(find_attempt(store, claim).await, claim.attempt);
    }
    let claimed = store.claim(&[mismatch, claim("new-3")]).await.unwrap();
    found!(claimed.as_slice(), [Claimed::Found(Found::Mismatch), Claimed::Owner(_)]);
    assert!(store.claim(&[]).await.unwrap().is_empty());
}

async fn find_attempt(store: &dyn Store, claim: &Claim) -> Attempt {
    store.find(claim.record).await.unwrap().unwrap().attempt
}

pub(crate) async fn scenario_10_one_of_many_claims_wins(store: &dyn Store) {
    let claims: Vec<Claim> = (0..20).map(|_| claim("a")).collect();
    let claimed = futures_util::future::join_all(claims.iter().map(|claim| claim_one(store, claim))).await;
    let winners: Vec<_> =
        claims.iter().zip(&claimed).filter(|(_, claimed)| matches!(claimed, Claimed::Owner(_))).collect();
    assert_eq!(winners.len(), 1, "{claimed:?}");
    assert_eq!(find(store, "a").await.attempt, winners[0].0.attempt);
    assert_eq!(claimed.iter().filter(|claimed| matches!(claimed, Claimed::Found(Found::InFlight { .. }))).count(), 19);
}

fn peek(key: &str) -> Peek {
    claim(key).peek()
}

pub(crate) async fn peek_finds_what_a_claim_would(store: &dyn Store) {
    own(store, &claim("in-flight")).await;
    run(store, "done", Outcome::Done(reply("x"))).await;
    run(store, "released", Outcome::Released(Reason::Status)).await;
    run(store, "in-doubt", Outcome::InDoubt(Reason::Panic)).await;
    let mismatch = Peek { fingerprint: payload(2), ..peek("done") };
    let peeks = [peek("in-flight"), peek("absent"), peek("done"), peek("released"), peek("in-doubt"), mismatch];
    let found = store.peek(&peeks).await.unwrap();
    let [in_flight, absent, done, released, in_doubt, mismatch] = found.try_into().unwrap();
    found!(in_flight, Some(Found::InFlight { .. }));
    found!(absent, None);
    found!(done, Some(Found::Replay(replay)) if replay.response == reply("x"));
    found!(released, None);
    found!(in_doubt, Some(Found::InDoubt(Reason::Panic)));
    found!(mismatch, Some(Found::Mismatch));
}

pub(crate) async fn peek_takes_nothing(store: &dyn Store) {
    found!(store.peek(&[peek("a")]).await.unwrap().as_slice(), [None]);
    assert!(store.find(record("a")).await.unwrap().is_none());
    let owned = own(store, &claim("a")).await;
    assert_eq!(owned.attempts, 1);
}
