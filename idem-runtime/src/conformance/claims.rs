//! Claims and peeks.

use super::{steps::*, *};

/// The first claim of a record owns it, and fences grow across records; catches a store that counts fences per record.
pub async fn first_claim_owns(store: &dyn Store) {
    let first = own(store, &claim("a")).await;
    assert_eq!((first.attempts, first.epoch), (1, first.fence));
    assert!(!first.continues());
    let other = own(store, &claim("b")).await;
    assert_eq!((other.attempts, other.epoch), (1, other.fence));
    assert!(other.fence > first.fence);
}

/// While one attempt runs, another is told so and writes nothing, not even where it may be run again; catches a store that hands a
/// live lease to the next who asks.
pub async fn second_claim_is_in_flight(store: &dyn Store) {
    let owned = own(store, &rerunnable("a")).await;
    found!(retry(store, "a").await, Claimed::Found(Found::InFlight { age }) if age < LEASE);
    found!(claim_one(store, &rerunnable("a")).await, Claimed::Found(Found::InFlight { .. }));
    let found = find(store, "a").await;
    assert_eq!((found.fence, found.attempts), (owned.fence, 1), "a refused claim writes nothing");
}

/// A claim whose reply was lost is granted again, as the same attempt; catches a store that shuts an owner out of its
/// own record.
pub async fn a_claim_sent_again_is_still_the_owners(store: &dyn Store) {
    let claim = claim("a");
    let first = own(store, &claim).await;
    assert_eq!(own(store, &claim).await, first);
    assert_eq!(find(store, "a").await.attempts, 1);
    finish(store, &claim, Outcome::Done(reply("x"))).await;
    found!(claim_one(store, &claim).await, Claimed::Found(Found::Replay(_)));
}

/// Another payload is a mismatch in every state that binds one; catches a store that compares no fingerprint, and so
/// gives one payload's answer to another.
pub async fn a_mismatch_is_told_before_anything_else(store: &dyn Store) {
    own(store, &claim("in-flight")).await;
    run(store, "done", Outcome::Done(reply("x"))).await;
    run(store, "in-doubt", Outcome::InDoubt(Reason::Panic)).await;
    for key in ["in-flight", "done", "in-doubt"] {
        let other = Claim { fingerprint: payload(2), ..claim(key) };
        found!(claim_one(store, &other).await, Claimed::Found(Found::Mismatch));
    }
}

/// A fingerprint of another algorithm counts as a match, and the algorithm is kept; catches a store that compares
/// digests without [`Fingerprint::matches`].
pub async fn digests_of_another_algorithm_are_not_compared(store: &dyn Store) {
    run(store, "a", Outcome::Done(reply("x"))).await;
    let newer = Claim { fingerprint: Fingerprint::from_parts(2, [7; 32]), ..claim("a") };
    let replay = found!(claim_one(store, &newer).await, Claimed::Found(Found::Replay(replay)) => replay);
    assert_eq!((replay.fingerprint.algorithm(), replay.fingerprint.digest()), (1, &[1; 32]), "of what was answered");
}

/// Where the scope is part of the fingerprint, another one is a mismatch even if the payloads cannot be compared; catches
/// a store that takes another algorithm for a match before it looks at the scope.
pub async fn another_scope_is_a_mismatch_by_any_algorithm(store: &dyn Store) {
    let by = |key, scope, algorithm| Claim { fingerprint: within(scope, algorithm, 1), ..claim(key) };
    for (key, outcome) in [
        ("in-flight", None),
        ("done", Some(Outcome::Done(reply("x")))),
        ("in-doubt", Some(Outcome::InDoubt(Reason::Panic))),
        ("rejected", Some(Outcome::Rejected(reply("declined"), TTL))),
    ] {
        let first = by(key, "acme", 4);
        own(store, &first).await;
        if let Some(outcome) = outcome {
            finish(store, &first, outcome).await;
        }
    }
    for key in ["in-flight", "done", "in-doubt"] {
        let unscoped = Claim { fingerprint: Fingerprint::unknown(), ..claim(key) };
        for foreign in [by(key, "globex", 4), by(key, "globex", 5), unscoped] {
            found!(store.peek(&[foreign.peek()]).await.unwrap().as_slice(), [Some(Found::Mismatch)]);
            found!(claim_one(store, &foreign).await, Claimed::Found(Found::Mismatch));
        }
    }
    found!(claim_one(store, &by("in-flight", "acme", 5)).await, Claimed::Found(Found::InFlight { .. }));
    found!(claim_one(store, &by("done", "acme", 5)).await, Claimed::Found(Found::Replay(_)));
    found!(claim_one(store, &by("in-doubt", "acme", 5)).await, Claimed::Found(Found::InDoubt(_)));
    found!(claim_one(store, &by("rejected", "acme", 5)).await, Claimed::Found(Found::Replay(_)));
    own(store, &by("rejected", "globex", 5)).await; // as any other payload
}

/// A slice is answered item by item, in order; catches a store that sorts a slice, or answers what it wrote before what
/// it refused.
pub async fn a_slice_is_answered_in_order(store: &dyn Store) {
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

fn peek(key: &str) -> Peek {
    claim(key).peek()
}

/// A peek says what a claim would be told; catches a store whose two looks differ.
pub async fn peek_finds_what_a_claim_would(store: &dyn Store) {
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

/// A peek writes nothing; catches a store that makes a record by looking for it.
pub async fn peek_takes_nothing(store: &dyn Store) {
    found!(store.peek(&[peek("a")]).await.unwrap().as_slice(), [None]);
    assert!(store.find(record("a")).await.unwrap().is_none());
    let owned = own(store, &claim("a")).await;
    assert_eq!(owned.attempts, 1);
}

/// A peek by somebody who knows the record and not the payload finds what any payload would; catches a store whose peek
/// compares digests without [`Fingerprint::matches`].
pub async fn peek_without_a_payload_finds_any(store: &dyn Store) {
    own(store, &claim("in-flight")).await;
    run(store, "done", Outcome::Done(reply("x"))).await;
    run(store, "rejected", Outcome::Rejected(reply("declined"), TTL)).await;
    run(store, "in-doubt", Outcome::InDoubt(Reason::Panic)).await;
    run(store, "released", Outcome::Released(Reason::Status)).await;
    let keys = ["in-flight", "done", "rejected", "in-doubt", "released", "absent"];
    let peeks = keys.map(|key| Peek { fingerprint: Fingerprint::unknown(), ..peek(key) });
    let [in_flight, done, rejected, in_doubt, released, absent] = store.peek(&peeks).await.unwrap().try_into().unwrap();
    found!(in_flight, Some(Found::InFlight { .. }));
    found!(done, Some(Found::Replay(replay)) if replay.response == reply("x"));
    found!(rejected, Some(Found::Replay(replay)) if replay.response == reply("declined"));
    found!(in_doubt, Some(Found::InDoubt(Reason::Panic)));
    found!((released, absent), (None, None));
}

/// A store has transactions or says that it has none; catches one whose word and deed differ. What they must hold is in
/// [`transactions`].
pub async fn a_store_has_the_transactions_that_it_says(store: &dyn Store) {
    let begin = Begin { claim: Some(claim("a")), limit: LEASE, savepoint: false, order: None };
    match (store.transactions(), store.begin(&begin).await) {
        (Some(_), Ok(Begun::Open(..))) => {}
        (None, Err(error)) => assert_eq!(error.kind, StoreErrorKind::Setup, "{error:?}"),
        (says, does) => panic!("it says {says:?}, and answers {does:?}"),
    }
    assert!(store.find(record("a")).await.unwrap().is_none());
    let nothing = Commit { finish: None, keeps_rows: true, links: Vec::new() };
    let error = store.commit(Box::new(()), &nothing).await.unwrap_err(); // another store's
    assert_eq!(error.kind, StoreErrorKind::Setup, "{error:?}");
}
