//! Ends of runs, and their leases.

use super::{steps::*, *};

/// An answer comes back as it was stored, every time; catches a store that forgets it, or takes its bytes for text.
pub async fn done_is_replayed_byte_for_byte(store: &dyn Store) {
    let response = StoredResponse {
        status: Some(402),
        headers: Bytes::from_static(b"\x00\xff headers"),
        body: Some(Bytes::from_static(b"{\"a\":1}\n\x00\xc3\x28")),
    };
    let claim = claim("a");
    own(store, &claim).await;
    let finished = finish(store, &claim, Outcome::Done(response.clone())).await;
    found!(finished, Finished::Stored { ttl_left } if about(ttl_left, TTL));
    for _ in 0..2 {
        let replay = found!(retry(store, "a").await, Claimed::Found(Found::Replay(replay)) => replay);
        assert_eq!(replay.response, response);
        assert!(replay.is_final);
        assert!(about(replay.ttl_left, TTL), "{:?}", replay.ttl_left);
    }
    assert_eq!(find(store, "a").await.state, State::Done);
}

/// At most 5 s less.
fn about(left: Duration, whole: Duration) -> bool {
    left <= whole && left + Duration::from_secs(5) > whole
}

/// An empty body is a body; catches a store that keeps it as none.
pub async fn an_empty_body_is_kept(store: &dyn Store) {
    let response = StoredResponse { status: Some(204), headers: Bytes::new(), body: Some(Bytes::new()) };
    run(store, "a", Outcome::Done(response.clone())).await;
    found!(retry(store, "a").await, Claimed::Found(Found::Replay(replay)) if replay.response == response);
}

/// A body that was not retained leaves the note that there was one; catches a store that replays an empty one.
pub async fn a_body_that_is_not_kept_leaves_its_status(store: &dyn Store) {
    run(store, "a", Outcome::Done(StoredResponse { body: None, ..reply("") })).await;
    found!(retry(store, "a").await, Claimed::Found(Found::NotRetained { status: Some(201) }));
    run(store, "b", Outcome::Done(StoredResponse { status: None, body: None, ..reply("") })).await;
    found!(retry(store, "b").await, Claimed::Found(Found::NotRetained { status: None }));
}

/// The value of a plain function has no status; catches a store that makes one up.
pub async fn a_plain_value_has_no_status(store: &dyn Store) {
    let value = StoredResponse { status: None, headers: Bytes::new(), body: Some("42".into()) };
    run(store, "a", Outcome::Done(value.clone())).await;
    found!(retry(store, "a").await, Claimed::Found(Found::Replay(replay)) if replay.response == value);
}

fn every_outcome() -> [Outcome; 4] {
    [
        Outcome::Done(reply("x")),
        Outcome::Rejected(reply("x"), LEASE),
        Outcome::Released(Reason::Status),
        Outcome::InDoubt(Reason::Panic),
    ]
}

/// A finish whose reply was lost succeeds again and changes nothing; catches a store that fences an owner off by its
/// own earlier finish.
pub async fn a_finish_sent_again_is_stored(store: &dyn Store) {
    for (key, outcome) in ["done", "rejected", "released", "in-doubt"].into_iter().zip(every_outcome()) {
        let claim = run(store, key, outcome.clone()).await;
        let before = find(store, key).await;
        found!(finish(store, &claim, outcome.clone()).await, Finished::Stored { .. });
        let after = find(store, key).await;
        assert_eq!(after.state, outcome.state());
        assert_eq!(after.reason, outcome.reason());
        assert_eq!((after.fence, after.attempts), (before.fence, before.attempts));
    }
}

/// An attempt ends once; catches a store that lets an owner change its answer.
pub async fn another_end_by_the_same_attempt_is_lost(store: &dyn Store) {
    let claim = run(store, "a", Outcome::Done(reply("first"))).await;
    for outcome in every_outcome().into_iter().skip(1) {
        assert_eq!(finish(store, &claim, outcome).await, Finished::Lost);
    }
    found!(retry(store, "a").await, Claimed::Found(Found::Replay(replay)) if replay.response == reply("first"));
    let claim = run(store, "b", Outcome::Released(Reason::Status)).await;
    assert_eq!(finish(store, &claim, Outcome::Done(reply("x"))).await, Finished::Lost);
    own(store, &steps::claim("b")).await;
}

/// Only the record's attempt may end the run; catches a completion that is not fenced, or that makes the record it
/// misses.
pub async fn another_attempt_finishes_nothing(store: &dyn Store) {
    own(store, &claim("a")).await;
    for outcome in every_outcome() {
        assert_eq!(finish(store, &claim("a"), outcome.clone()).await, Finished::Lost);
        assert_eq!(finish(store, &claim("absent"), outcome).await, Finished::Lost);
    }
    found!(retry(store, "a").await, Claimed::Found(Found::InFlight { .. }));
    assert!(store.find(record("absent")).await.unwrap().is_none());
}

/// One lost finish in a slice leaves the others stored; catches a store that rolls the whole slice back.
pub async fn a_lost_record_does_not_fail_its_neighbours(store: &dyn Store) {
    let claims = [claim("a"), claim("b"), claim("c")];
    store.claim(&claims).await.unwrap();
    let records = [&claims[0], &claims[1], &claims[2], &claims[0]];
    let finishes: Vec<Finish> = [claims[0].attempt, Attempt::random(), claims[2].attempt, Attempt::random()]
        .into_iter()
        .zip(records)
        .map(|(attempt, claim)| Finish { record: claim.record, attempt, outcome: Outcome::Done(reply("x")) })
        .collect();
    let finished = store.finish(&finishes).await.unwrap();
    found!(finished.as_slice(), [Finished::Stored { .. }, Finished::Lost, Finished::Stored { .. }, Finished::Lost]);
    found!(retry(store, "a").await, Claimed::Found(Found::Replay(_)));
    found!(retry(store, "b").await, Claimed::Found(Found::InFlight { .. }));
    found!(retry(store, "c").await, Claimed::Found(Found::Replay(_)));
}

/// A kept client error is replayed to its payload, and a corrected one runs; catches a store that treats it as final,
/// or that compares no fingerprint.
pub async fn a_rejection_is_replayed_to_the_same_payload_only(store: &dyn Store) {
    let keep = Duration::from_secs(30);
    let claim = claim("a");
    own(store, &claim).await;
    let finished = finish(store, &claim, Outcome::Rejected(reply("no"), keep)).await;
    found!(finished, Finished::Stored { ttl_left } if about(ttl_left, keep));
    let replay = found!(retry(store, "a").await, Claimed::Found(Found::Replay(replay)) => replay);
    assert!(!replay.is_final, "a corrected payload may still run");
    assert!(about(replay.ttl_left, keep), "{:?}", replay.ttl_left);
    let corrected = Claim { fingerprint: payload(2), ..steps::claim("a") };
    let owned = own(store, &corrected).await;
    assert_eq!((owned.attempts, owned.epoch), (2, owned.fence));
    found!(retry(store, "a").await, Claimed::Found(Found::Mismatch));
}

/// A released record belongs to whoever comes next, with any payload and in a new epoch; catches a store that still
/// binds the old payload or lets the old attempt write.
pub async fn a_released_key_starts_afresh(store: &dyn Store) {
    let first = claim("a");
    let owned = own(store, &first).await;
    found!(finish(store, &first, Outcome::Released(Reason::Status)).await, Finished::Stored { .. });
    assert_eq!(find(store, "a").await.reason, Some(Reason::Status));
    let corrected = Claim { fingerprint: payload(2), ..claim("a") };
    let second = own(store, &corrected).await;
    assert!(second.fence > owned.fence);
    assert_eq!((second.attempts, second.epoch), (2, second.fence), "its provider key is another");
    let found = find(store, "a").await;
    assert_eq!((found.state, found.reason, found.attempt), (State::InFlight, None, corrected.attempt));
    assert_eq!(finish(store, &first, Outcome::Done(reply("x"))).await, Finished::Lost);
}

/// What is in doubt is not run again by itself, and its reason is kept; catches a store that takes a doubt for a
/// release.
pub async fn in_doubt_holds(store: &dyn Store) {
    let reasons = [
        Reason::Status,
        Reason::Panic,
        Reason::Cancelled,
        Reason::Timeout,
        Reason::Shutdown,
        Reason::Store,
        Reason::LeaseExpired,
    ];
    for (key, reason) in ["1", "2", "3", "4", "5", "6", "7"].into_iter().zip(reasons) {
        run(store, key, Outcome::InDoubt(reason)).await;
        for rerun in [Duration::ZERO, WINDOW] {
            let claim = Claim { rerun, ..claim(key) };
            found!(claim_one(store, &claim).await, Claimed::Found(Found::InDoubt(found)) if found == reason);
        }
        let found = find(store, key).await;
        assert_eq!((found.state, found.reason), (State::InDoubt, Some(reason)));
        assert_eq!(found.lease_left, Duration::ZERO, "nobody need wait for it");
    }
}

/// The attempt that left a doubt may still settle it, and nobody else's may; catches a store that ends only what is in
/// flight, or that does not fence the end of a doubt.
pub async fn a_late_end_settles_what_its_own_attempt_left_in_doubt(store: &dyn Store) {
    for (key, outcome) in ["done", "rejected", "released"].into_iter().zip(every_outcome()) {
        let claim = run(store, key, Outcome::InDoubt(Reason::Store)).await;
        assert_eq!(finish(store, &steps::claim(key), outcome.clone()).await, Finished::Lost, "of another attempt");
        found!(finish(store, &claim, outcome.clone()).await, Finished::Stored { .. });
        let found = find(store, key).await;
        assert_eq!((found.state, found.reason), (outcome.state(), outcome.reason()));
    }
    found!(retry(store, "done").await, Claimed::Found(Found::Replay(_)));
    own(store, &claim("released")).await;
}

/// Only the attempt that still runs may prolong its lease; catches a renewal that is not fenced, or that wakes what has
/// ended.
pub async fn a_lease_is_renewed_until_the_run_ends(store: &dyn Store) {
    let claims = [claim("held"), claim("foreign"), claim("done"), claim("in-doubt")];
    store.claim(&claims).await.unwrap();
    finish(store, &claims[2], Outcome::Done(reply("x"))).await;
    finish(store, &claims[3], Outcome::InDoubt(Reason::Panic)).await;
    let renewals = [
        Renewal { record: claims[0].record, attempt: claims[0].attempt },
        Renewal { record: claims[1].record, attempt: Attempt::random() },
        Renewal { record: claims[2].record, attempt: claims[2].attempt },
        Renewal { record: claims[3].record, attempt: claims[3].attempt },
        Renewal { record: record("absent"), attempt: Attempt::random() },
        Renewal { record: claims[0].record, attempt: Attempt::random() }, // was taken over by the first
    ];
    let renewed = store.renew(&renewals, 10 * LEASE).await.unwrap();
    assert_eq!(renewed[0], Renewed::Held);
    assert!(renewed[1..].iter().all(|renewed| *renewed == Renewed::Lost), "{renewed:?}");
    assert_eq!(renewed.len(), renewals.len());
    let left = find(store, "held").await.lease_left;
    assert!(about(left, 10 * LEASE), "{left:?}");
    assert!(find(store, "foreign").await.lease_left <= LEASE);
    assert_eq!(find(store, "in-doubt").await.lease_left, Duration::ZERO);
}
