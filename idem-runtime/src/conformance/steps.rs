//! What the cases are made of.

use super::*;

/// Fails unless the value matches; otherwise gives what the pattern binds.
macro_rules! found {
    ($value:expr, $pattern:pat $(if $guard:expr)? $(=> $bound:expr)?) => {
        match $value {
            $pattern $(if $guard)? => { $($bound)? }
            other => panic!("expected {}, found {other:?}", stringify!($pattern $(if $guard)?)),
        }
    };
}
pub(crate) use found;

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const TTL: Duration = Duration::from_secs(24 * 3600);
pub(crate) const GUARD: Duration = Duration::from_secs(48 * 3600);
/// How long an operation may be run again.
pub(crate) const WINDOW: Duration = Duration::from_secs(12 * 3600);
pub(crate) const QUARANTINE: Duration = Duration::from_secs(600);

pub(crate) fn record(key: &str) -> RecordId {
    RecordId::new("test", &Scope::of("acme"), "charge", &Key::new(key).unwrap())
}

pub(crate) fn payload(n: u8) -> Fingerprint {
    Fingerprint::from_parts(1, [n; 32])
}

/// Of a payload by one of several algorithms, where the scope is part of it.
pub(crate) fn within(scope: &str, algorithm: i16, n: u8) -> Fingerprint {
    Fingerprint::from_parts(algorithm, [n; 32]).within(&Scope::of(scope))
}

/// A claim of `key` by a new attempt.
pub(crate) fn claim(key: &str) -> Claim {
    Claim {
        record: record(key),
        scope: "acme".into(),
        op: "charge",
        attempt: Attempt::random(),
        fingerprint: payload(1),
        lease: LEASE,
        ttl: TTL,
        guard: GUARD,
        rerun: Duration::ZERO,
        input: None,
    }
}

/// The same, of an operation that may be run again.
pub(crate) fn rerunnable(key: &str) -> Claim {
    Claim { rerun: WINDOW, ..claim(key) }
}

pub(crate) fn reply(body: &'static str) -> StoredResponse {
    StoredResponse { status: Some(201), headers: Bytes::from_static(b"location: /1"), body: Some(body.into()) }
}

pub(crate) async fn claim_one(store: &dyn Store, claim: &Claim) -> Claimed {
    let mut claimed = store.claim(std::slice::from_ref(claim)).await.unwrap();
    assert_eq!(claimed.len(), 1);
    claimed.remove(0)
}

pub(crate) async fn own(store: &dyn Store, claim: &Claim) -> Owned {
    found!(claim_one(store, claim).await, Claimed::Owner(owned) => owned)
}

/// What a new attempt with the same payload finds.
pub(crate) async fn retry(store: &dyn Store, key: &str) -> Claimed {
    claim_one(store, &claim(key)).await
}

pub(crate) async fn finish(store: &dyn Store, claim: &Claim, outcome: Outcome) -> Finished {
    let finish = Finish { record: claim.record, attempt: claim.attempt, outcome };
    let finished = store.finish(&[finish]).await.unwrap();
    assert_eq!(finished.len(), 1);
    finished[0]
}

/// Claims `key` and finishes it.
pub(crate) async fn run(store: &dyn Store, key: &str, outcome: Outcome) -> Claim {
    let claim = claim(key);
    own(store, &claim).await;
    found!(finish(store, &claim, outcome).await, Finished::Stored { .. });
    claim
}

pub(crate) async fn find(store: &dyn Store, key: &str) -> Record {
    store.find(record(key)).await.unwrap().unwrap()
}

pub(crate) async fn resolve(store: &dyn Store, key: &str, seen: Fence, to: Resolution) -> bool {
    let by = Audit { who: "ops".into(), why: "asked the provider".into() };
    store
        .resolve(&Resolve {
            record: record(key),
            seen,
            to,
            quarantine: QUARANTINE,
            rerun: WINDOW,
            reason: Reason::Operator,
            by,
        })
        .await
        .unwrap()
}

/// Claims `key`, ends its run in doubt by its own report, and gives the claim and its fence.
pub(crate) async fn doubt(store: &dyn Store, key: &str) -> (Claim, Fence) {
    let claim = run(store, key, Outcome::InDoubt(Reason::Status)).await;
    (claim, find(store, key).await.fence)
}

pub(crate) fn is_owner(claimed: &Claimed) -> bool {
    matches!(claimed, Claimed::Owner(_))
}

pub(crate) fn is_in_flight(claimed: &Claimed) -> bool {
    matches!(claimed, Claimed::Found(Found::InFlight { .. }))
}

/// A look for doubts that has come up to the present.
pub(crate) async fn survey(store: &dyn Store) -> Vec<Doubts> {
    for _ in 0..1000 {
        let survey = store.survey().await.unwrap();
        if !survey.behind {
            return survey.doubts;
        }
    }
    panic!("the look never comes up to the present");
}
