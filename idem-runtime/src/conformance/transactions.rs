//! Runs that are one transaction: what the body wrote, the outcome, the answer and the links appear together or not at all.
//!
//! For a store whose [`transactions`](Store::transactions) are not `None`. What such a run is told of time (its windows, its
//! quarantine) is that of any run, and stands in the other groups.

use super::{steps::*, *};
use crate::store::{Begin, Begun, Commit, Committed, OpenTransaction};

/// What a body does with a transaction of the store's. One body, one table: the cases count its rows.
#[async_trait::async_trait]
pub trait Body: Send + Sync {
    /// Writes a row in the transaction.
    async fn write(&self, transaction: &mut OpenTransaction);

    /// How many rows there are, as anybody else sees them.
    async fn written(&self) -> u64;

    /// Sends a COMMIT of its own, as no body may. Whether the database took it.
    async fn commit(&self, transaction: &mut OpenTransaction) -> bool;

    /// Sends a ROLLBACK of its own.
    async fn roll_back(&self, transaction: &mut OpenTransaction);

    /// Ends the session from the other side, as a restart of the server does. `false` where there is no other side.
    async fn cut_off(&self, transaction: &mut OpenTransaction) -> bool;
}

fn begin_of(claim: &Claim) -> Begin {
    Begin { claim: Some(claim.clone()), limit: Duration::from_secs(5), savepoint: false, order: None }
}

async fn open(store: &dyn Store, begin: &Begin) -> (Owned, OpenTransaction) {
    found!(store.begin(begin).await.unwrap(), Begun::Open(owned, transaction) => (owned, transaction))
}

/// What a new attempt with the same payload finds, which wants to run in a transaction.
async fn begin_again(store: &dyn Store, key: &str) -> Begun {
    store.begin(&begin_of(&claim(key))).await.unwrap()
}

fn end(claim: &Claim, outcome: Outcome) -> Commit {
    let finish = Finish { record: claim.record, attempt: claim.attempt, outcome };
    Commit { finish: Some(finish), keeps_rows: true, links: Vec::new() }
}

fn done(claim: &Claim) -> Commit {
    end(claim, Outcome::Done(reply("x")))
}

/// Nothing is there of the claim, nor of a body.
async fn nothing_is_left(store: &dyn Store, body: &dyn Body, key: &str) {
    assert_eq!(body.written().await, 0, "rows of `{key}`");
    assert!(store.find(record(key)).await.unwrap().is_none(), "the record of `{key}`");
}

/// A whole run of `key`; there are `rows` after it.
async fn runs(store: &dyn Store, body: &dyn Body, key: &str, rows: u64) {
    let claim = claim(key);
    let (_, mut transaction) = open(store, &begin_of(&claim)).await;
    body.write(&mut transaction).await;
    found!(store.commit(transaction, &done(&claim)).await.unwrap(), Committed::Stored { .. });
    assert_eq!(body.written().await, rows);
    found!(begin_again(store, key).await, Begun::Found(Found::Replay(_)));
}

/// Claim, rows and answer appear with the commit; catches a store that claims in another transaction than it gives away.
pub async fn nothing_is_seen_before_its_commit(store: &dyn Store, body: &dyn Body) {
    let first = claim("a");
    let (owned, mut transaction) = open(store, &begin_of(&first)).await;
    assert_eq!((owned.attempts, owned.epoch), (1, owned.fence));
    body.write(&mut transaction).await;
    nothing_is_left(store, body, "a").await;
    assert!(store.peek(&[first.peek()]).await.unwrap()[0].is_none());
    let committed = store.commit(transaction, &done(&first)).await.unwrap();
    found!(committed, Committed::Stored { ttl_left } if ttl_left <= TTL && ttl_left > TTL / 2);
    assert_eq!(body.written().await, 1);
    let found = find(store, "a").await;
    assert_eq!((found.state, found.attempt, found.fence), (State::Done, first.attempt, owned.fence));
    found!(begin_again(store, "a").await, Begun::Found(Found::Replay(replay)) if replay.response == reply("x"));
    found!(retry(store, "a").await, Claimed::Found(Found::Replay(replay)) if replay.is_final);
}

/// An outcome without an answer undoes all, and the key is free; catches a store that commits whatever it is given.
pub async fn an_outcome_without_an_answer_undoes_all(store: &dyn Store, body: &dyn Body) {
    for outcome in [Outcome::Released(Reason::Status), Outcome::InDoubt(Reason::Panic)] {
        let claim = claim("a");
        let (owned, mut transaction) = open(store, &begin_of(&claim)).await;
        assert_eq!(owned.attempts, 1, "of the tries before there is nothing");
        body.write(&mut transaction).await;
        let committed = store.commit(transaction, &end(&claim, outcome)).await.unwrap();
        found!(committed, Committed::Stored { ttl_left: Duration::ZERO });
        nothing_is_left(store, body, "a").await;
    }
    runs(store, body, "a", 1).await;
}

/// A transaction that is dropped leaves nothing, not even in the next one on its connection; catches a store that keeps
/// the claim, or gives a connection back with something open on it.
pub async fn what_is_dropped_leaves_nothing(store: &dyn Store, body: &dyn Body) {
    for _ in 0..5 {
        let (_, mut transaction) = open(store, &begin_of(&claim("a"))).await;
        body.write(&mut transaction).await;
        drop(transaction);
    }
    nothing_is_left(store, body, "a").await;
    for (rows, key) in ["a", "b", "c"].into_iter().enumerate() {
        runs(store, body, key, rows as u64 + 1).await;
    }
}

/// Whoever comes while a transaction is open does not run: it is told so at once, or where one transaction excludes all
/// others waits for its end. Catches a store whose attempts do not see each other before the commit.
pub async fn a_second_attempt_meanwhile_does_not_run(store: &dyn Store, body: &dyn Body) {
    let first = claim("a");
    let (_, mut transaction) = open(store, &begin_of(&first)).await;
    body.write(&mut transaction).await;
    if !store.transactions().unwrap().exclusive {
        found!(begin_again(store, "a").await, Begun::Found(Found::InFlight { .. }));
        drop(open(store, &begin_of(&claim("other"))).await); // that one is nobody's concern
    }
    let (second, done) = (begin_of(&claim("a")), done(&first));
    let ends = futures_util::future::join(store.begin(&second), store.commit(transaction, &done));
    let (second, committed) = ends.await;
    found!(committed.unwrap(), Committed::Stored { .. });
    found!(second.unwrap(), Begun::Found(Found::Replay(_) | Found::InFlight { .. }));
    assert_eq!(body.written().await, 1);
    found!(begin_again(store, "a").await, Begun::Found(Found::Replay(_)));
}

/// Of many attempts at once one commits; catches a store that looks first and opens then.
pub async fn one_of_many_transactions_runs(store: &dyn Store, body: &dyn Body) {
    let attempt = async || {
        let claim = claim("a");
        match store.begin(&begin_of(&claim)).await.unwrap() {
            Begun::Open(_, mut transaction) => {
                body.write(&mut transaction).await;
                matches!(store.commit(transaction, &done(&claim)).await.unwrap(), Committed::Stored { .. })
            }
            Begun::Stale(..) => panic!("there is no order"),
            Begun::Found(found) => {
                found!(found, Found::InFlight { .. } | Found::Replay(_));
                false
            }
        }
    };
    let ran = futures_util::future::join_all((0..8).map(|_| attempt())).await;
    assert_eq!(ran.iter().filter(|ran| **ran).count(), 1);
    assert_eq!(body.written().await, 1);
}

/// A wish to run in a transaction is told what any claim is, and leaves nothing open; catches a store that decides by
/// another rule there.
pub async fn a_transaction_is_refused_as_a_claim_is(store: &dyn Store, body: &dyn Body) {
    own(store, &claim("held")).await;
    run(store, "doubt", Outcome::InDoubt(Reason::Panic)).await;
    run(store, "done", Outcome::Done(reply("x"))).await;
    found!(begin_again(store, "held").await, Begun::Found(Found::InFlight { .. }));
    found!(begin_again(store, "doubt").await, Begun::Found(Found::InDoubt(Reason::Panic)));
    found!(begin_again(store, "done").await, Begun::Found(Found::Replay(replay)) if replay.response == reply("x"));
    for key in ["held", "doubt", "done"] {
        let other = begin_of(&Claim { fingerprint: payload(2), ..claim(key) });
        found!(store.begin(&other).await.unwrap(), Begun::Found(Found::Mismatch));
    }
    runs(store, body, "a", 1).await;
}

/// It takes what a claim may take, and carries its numbers on; catches a store that counts from one in a transaction.
pub async fn a_released_key_starts_afresh_in_a_transaction(store: &dyn Store, body: &dyn Body) {
    run(store, "a", Outcome::Released(Reason::Status)).await;
    let before = find(store, "a").await.fence;
    let claim = claim("a");
    let (owned, transaction) = open(store, &begin_of(&claim)).await;
    assert_eq!((owned.attempts, owned.epoch), (2, owned.fence));
    assert!(owned.fence > before);
    drop(transaction);
    assert_eq!(find(store, "a").await.fence, before, "undone, it is as it was");
    runs(store, body, "a", 1).await;
    let after = find(store, "a").await;
    assert_eq!((after.attempts, after.epoch > before), (2, true));
}

/// Providers' ids are committed with the outcome; catches a store that forgets them, or keeps those of what was undone.
pub async fn links_are_committed_with_the_outcome(store: &dyn Store, _: &dyn Body) {
    let with_link = |claim: &Claim, owned: &Owned, commit: Commit, id: &str| {
        let (record, attempt, epoch) = (claim.record, claim.attempt, owned.epoch);
        let link = Link { record, epoch, attempt, provider: "stripe".into(), id: id.into() };
        Commit { links: vec![link], ..commit }
    };
    let undone = claim("a");
    let (owned, transaction) = open(store, &begin_of(&undone)).await;
    let released = with_link(&undone, &owned, end(&undone, Outcome::Released(Reason::Status)), "undone");
    store.commit(transaction, &released).await.unwrap();
    let kept = claim("a");
    let (owned, transaction) = open(store, &begin_of(&kept)).await;
    let linked = with_link(&kept, &owned, done(&kept), "kept");
    found!(store.commit(transaction, &linked).await.unwrap(), Committed::Stored { .. });
    assert_eq!(find(store, "a").await.links, [("stripe".into(), "kept".into())]);
    assert!(store.linked("stripe", "undone").await.unwrap().is_empty());
}

/// An answer may be kept without the rows; catches a store that keeps both or neither.
pub async fn an_answer_is_kept_without_its_rows(store: &dyn Store, body: &dyn Body) {
    let refused = claim("a");
    let (_, mut transaction) = open(store, &Begin { savepoint: true, ..begin_of(&refused) }).await;
    body.write(&mut transaction).await;
    let commit = Commit { keeps_rows: false, ..end(&refused, Outcome::Rejected(reply("no"), LEASE)) };
    found!(store.commit(transaction, &commit).await.unwrap(), Committed::Stored { ttl_left } if ttl_left <= LEASE);
    assert_eq!(body.written().await, 0);
    found!(begin_again(store, "a").await, Begun::Found(Found::Replay(replay)) if replay.response == reply("no"));
    let kept = claim("b");
    let (_, mut transaction) = open(store, &Begin { savepoint: true, ..begin_of(&kept) }).await;
    body.write(&mut transaction).await;
    found!(store.commit(transaction, &done(&kept)).await.unwrap(), Committed::Stored { .. });
    assert_eq!(body.written().await, 1, "the savepoint alone undoes nothing");
}

/// The database takes no COMMIT before the outcome; catches a store that lets a body make its rows durable by itself.
pub async fn a_commit_of_the_bodys_own_is_refused(store: &dyn Store, body: &dyn Body) {
    let (_, mut transaction) = open(store, &begin_of(&claim("a"))).await;
    body.write(&mut transaction).await;
    assert!(!body.commit(&mut transaction).await, "a body's own COMMIT counts");
    drop(transaction);
    nothing_is_left(store, body, "a").await;
    // What is left of the transaction after that is the database's affair; half of it may not be.
    let second = claim("a");
    let (_, mut transaction) = open(store, &begin_of(&second)).await;
    body.write(&mut transaction).await;
    assert!(!body.commit(&mut transaction).await);
    match store.commit(transaction, &done(&second)).await.unwrap() {
        Committed::Stored { .. } => {
            assert_eq!((body.written().await, find(store, "a").await.state), (1, State::Done));
        }
        Committed::Lost | Committed::Undone(_) => {
            nothing_is_left(store, body, "a").await;
            runs(store, body, "a", 1).await;
        }
    }
}

/// After a ROLLBACK of the body's own the claim is gone, and the commit says so, also one that would undo all; catches a store
/// that writes the answer outside of the transaction, or takes for undone what was written after its end.
pub async fn a_rollback_of_the_bodys_own_loses_the_claim(store: &dyn Store, body: &dyn Body) {
    let claim = claim("a");
    for commit in [done(&claim), end(&claim, Outcome::Released(Reason::Status))] {
        let (_, mut transaction) = open(store, &begin_of(&claim)).await;
        body.write(&mut transaction).await;
        body.roll_back(&mut transaction).await;
        found!(store.commit(transaction, &commit).await.unwrap(), Committed::Lost | Committed::Undone(_));
        nothing_is_left(store, body, "a").await;
    }
    runs(store, body, "a", 1).await;
}

/// A commit is the attempt's that began; catches a store that does not compare it there.
pub async fn a_commit_by_another_attempt_keeps_nothing(store: &dyn Store, body: &dyn Body) {
    let (_, mut transaction) = open(store, &begin_of(&claim("a"))).await;
    body.write(&mut transaction).await;
    found!(store.commit(transaction, &done(&claim("a"))).await.unwrap(), Committed::Lost);
    nothing_is_left(store, body, "a").await;
    runs(store, body, "a", 1).await;
}

/// Where the session is gone there was no commit, and nobody is told of one; catches a store that takes no answer for yes.
pub async fn a_session_that_is_gone_has_committed_nothing(store: &dyn Store, body: &dyn Body) {
    let claim = claim("a");
    let (_, mut transaction) = open(store, &begin_of(&claim)).await;
    body.write(&mut transaction).await;
    if body.cut_off(&mut transaction).await {
        found!(store.commit(transaction, &done(&claim)).await, Err(_) | Ok(Committed::Undone(_) | Committed::Lost));
    } else {
        drop(transaction);
    }
    nothing_is_left(store, body, "a").await;
    runs(store, body, "a", 1).await;
}

/// Without a key there is only what the body wrote, kept or not; catches a store that needs a claim to commit.
pub async fn without_a_claim_the_rows_alone_are_kept_or_undone(store: &dyn Store, body: &dyn Body) {
    for (keeps_rows, rows) in [(true, 1), (false, 1), (true, 2)] {
        let (_, mut transaction) = open(store, &Begin { claim: None, ..begin_of(&claim("a")) }).await;
        body.write(&mut transaction).await;
        let commit = Commit { finish: None, keeps_rows, links: Vec::new() };
        found!(store.commit(transaction, &commit).await.unwrap(), Committed::Stored { ttl_left: Duration::ZERO });
        assert_eq!(body.written().await, rows);
    }
    assert!(store.find(record("a")).await.unwrap().is_none());
}
