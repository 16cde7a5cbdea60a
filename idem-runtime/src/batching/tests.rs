//! What waits together goes together, and nobody pays for a neighbour.

mod failures;
mod gated;

use tokio::task::JoinHandle;

use self::gated::Gated;
use super::*;
use crate::{
    MemoryStore,
    conformance::steps::{claim, found, own, payload, record, reply},
    state::Reason,
    store::Outcome,
};

const LIMITS: Limits = Limits { rows: 128, queue: 10_000, store_timeout: Duration::from_secs(5) };

/// A store as the runtime would use it, for suites.
pub(crate) fn batched(store: impl Store) -> Arc<dyn Store> {
    around(Arc::new(store), LIMITS, TaskTracker::new())
}

struct Place {
    gated: Arc<Gated>,
    store: Arc<dyn Store>,
    tasks: TaskTracker,
}

impl Place {
    fn new() -> Self {
        Self::with(LIMITS)
    }

    fn with(limits: Limits) -> Self {
        Self::over(Gated::new(), limits)
    }

    fn over(gated: Arc<Gated>, limits: Limits) -> Self {
        let tasks = TaskTracker::new();
        let store = around(Arc::clone(&gated) as Arc<dyn Store>, limits, tasks.clone());
        Self { gated, store, tasks }
    }

    /// Asks on a task of its own, and gets as far as it can.
    async fn ask(&self, claim: &Claim) -> JoinHandle<Result<Claimed, StoreError>> {
        let (store, claim) = (Arc::clone(&self.store), claim.clone());
        let asking = tokio::spawn(async move {
            let mut claimed = store.claim(std::slice::from_ref(&claim)).await?;
            assert_eq!(claimed.len(), 1);
            Ok(claimed.remove(0))
        });
        settle().await;
        asking
    }

    async fn ask_all(&self, claims: &[Claim]) -> Vec<JoinHandle<Result<Claimed, StoreError>>> {
        let mut asking = Vec::new();
        for claim in claims {
            asking.push(self.ask(claim).await);
        }
        asking
    }

    /// Nothing is on its way, and no task is left.
    async fn is_quiet(&self) {
        settle().await;
        assert!(self.tasks.is_empty());
    }
}

/// Lets all other tasks of this test go as far as they can.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn claims(keys: std::ops::Range<usize>) -> Vec<Claim> {
    keys.map(|key| claim(&key.to_string())).collect()
}

fn done(claim: &Claim) -> Finish {
    Finish { record: claim.record, attempt: claim.attempt, outcome: Outcome::Done(reply("ok")) }
}

async fn owned(asking: Vec<JoinHandle<Result<Claimed, StoreError>>>) {
    for asking in asking {
        found!(asking.await.unwrap(), Ok(Claimed::Owner(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn clause_46_what_waits_is_the_next_statement_in_the_order_of_its_records() {
    let place = Place::new();
    let asking = place.ask_all(&claims(0..10)).await;
    assert_eq!(place.gated.sizes(), [1], "a quiet one goes at once, by itself");
    place.gated.pass();
    settle().await;
    assert_eq!(place.gated.sizes(), [1, 9], "and all that came meanwhile together");
    assert!(place.gated.sent.lock().unwrap()[1].is_sorted());
    assert_eq!(place.tasks.len(), 1);
    place.gated.open();
    owned(asking).await;
    place.is_quiet().await;
    place.ask(&claim("later")).await.await.unwrap().unwrap();
    assert!(place.tasks.is_empty(), "a quiet caller needs no task");
}

#[tokio::test(start_paused = true)]
async fn clause_46_a_statement_carries_so_many_records_and_so_many_bytes() {
    let place = Place::with(Limits { rows: 4, ..LIMITS });
    let mut all = claims(0..10);
    all[6].input = Some(vec![0; 1_000_000].into());
    all[7].input = Some(vec![0; 1_000_000].into());
    let asking = place.ask_all(&all).await;
    place.gated.open();
    owned(asking).await;
    assert_eq!(place.gated.sizes(), [1, 4, 2, 3]);
}

/// 32 duplicates of a key: one becomes its owner, and what the others are told costs one statement.
#[tokio::test(start_paused = true)]
async fn clause_46_duplicates_are_told_by_one_row() {
    let place = Place::new();
    let first = claim("k");
    let mut asking = place.ask_all(&[claim("other")]).await;
    asking.extend(place.ask_all(std::slice::from_ref(&first)).await);
    let mut duplicates = Vec::new();
    for _ in 0..31 {
        duplicates.push(place.ask(&claim("k")).await);
    }
    place.gated.open();
    owned(asking).await;
    for duplicate in duplicates {
        found!(duplicate.await.unwrap(), Ok(Claimed::Found(Found::InFlight { age })) if age.is_zero());
    }
    assert_eq!(place.gated.sizes(), [1, 1]);

    place.store.finish(&[done(&first)]).await.unwrap();
    let replays = place.ask_all(&[claim("k"), claim("k"), claim("k")]).await;
    for replay in replays {
        found!(replay.await.unwrap(), Ok(Claimed::Found(Found::Replay(_))));
    }
}

/// Case 74, in this process: first, its duplicate, its mismatch, and a neighbour.
#[tokio::test(start_paused = true)]
async fn case_74_another_payload_of_a_key_goes_into_the_next_statement() {
    let place = Place::new();
    let blocker = place.ask(&claim("blocker")).await;
    let first = place.ask(&claim("k")).await;
    let same = place.ask(&claim("k")).await;
    let other = place.ask(&Claim { fingerprint: payload(9), ..claim("k") }).await;
    let promised = place.ask(&crate::conformance::steps::rerunnable("k")).await;
    let neighbour = place.ask(&claim("k2")).await;
    place.gated.open();
    owned(vec![blocker, first, neighbour]).await;
    found!(same.await.unwrap(), Ok(Claimed::Found(Found::InFlight { .. })));
    found!(other.await.unwrap(), Ok(Claimed::Found(Found::Mismatch)));
    found!(promised.await.unwrap(), Ok(Claimed::Found(Found::InFlight { .. })));
    assert_eq!(place.gated.sizes(), [1, 2, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn clause_46_looks_and_ends_have_lanes_of_their_own() {
    let place = Place::new();
    let claims = claims(0..4);
    place.gated.inner.claim(&claims).await.unwrap();
    let mut asking = Vec::new();
    for claim in claims.iter().chain(&claims[..1]) {
        let (store, peek) = (Arc::clone(&place.store), claim.peek());
        asking.push(tokio::spawn(async move { store.peek(&[peek]).await.map(|found| found.len()) }));
        settle().await;
    }
    for claim in &claims {
        let (store, finish) = (Arc::clone(&place.store), done(claim));
        asking.push(tokio::spawn(async move { store.finish(&[finish]).await.map(|finished| finished.len()) }));
        settle().await;
    }
    assert_eq!(place.gated.sizes(), [1, 1], "one of each");
    place.gated.open();
    for asked in asking {
        assert_eq!(asked.await.unwrap().unwrap(), 1);
    }
    assert_eq!(place.gated.sizes().iter().max(), Some(&4), "the first record's second look came with the others");
    for claim in &claims {
        found!(place.store.peek(&[claim.peek()]).await.unwrap().remove(0), Some(Found::Replay(_)));
    }
}

/// On SQLite a body with a `Tx` may hold the write lock for seconds, and all claims that are not answered by what is there.
#[tokio::test(start_paused = true)]
async fn clause_46_a_replay_does_not_wait_for_a_write_lock_beside_a_claim() {
    let gated = Gated::new();
    gated.one_writer.store(true, std::sync::atomic::Ordering::Relaxed);
    let first = claim("k");
    own(&gated.inner, &first).await;
    gated.inner.finish(&[done(&first)]).await.unwrap();
    let place = Place::over(gated, LIMITS);
    let waiting = place.ask_all(&claims(0..3)).await;
    let replay = place.ask(&claim("k")).await;
    found!(replay.await.unwrap(), Ok(Claimed::Found(Found::Replay(_))));
    assert_eq!(place.gated.sizes(), [1], "and nobody has got it yet");
    place.gated.open();
    owned(waiting).await;
    assert_eq!(place.gated.sizes(), [1, 2]);
}

/// A slice is one statement already.
#[tokio::test(start_paused = true)]
async fn a_slice_goes_by() {
    let place = Place::new();
    place.gated.open();
    let claims = claims(0..3);
    assert_eq!(place.store.claim(&claims).await.unwrap().len(), 3);
    assert_eq!(place.store.claim(&[]).await.unwrap().len(), 0);
    let finishes: Vec<Finish> = claims.iter().map(done).collect();
    assert_eq!(place.store.finish(&finishes).await.unwrap().len(), 3);
    assert_eq!(place.gated.sizes(), [3, 0, 3]);
}

#[tokio::test]
async fn a_batch_of_one_is_none_of_this() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::volatile());
    let limits = Limits { rows: 1, ..LIMITS };
    assert!(Arc::ptr_eq(&store, &around(Arc::clone(&store), limits, TaskTracker::new())));
}

/// What the store said to the one whose claim counted already, and to the one that asks beside it.
#[tokio::test(start_paused = true)]
async fn clause_21_an_attempt_that_went_unanswered_is_told_by_its_own_row() {
    let place = Place::new();
    let first = claim("k");
    place.gated.lost.store(1, std::sync::atomic::Ordering::Relaxed);
    place.gated.pass();
    place.store.claim(std::slice::from_ref(&first)).await.unwrap_err();

    let blocker = place.ask(&claim("blocker")).await;
    let duplicate = place.ask(&claim("k")).await;
    let again = place.ask(&first).await;
    place.gated.open();
    owned(vec![blocker, again]).await;
    found!(duplicate.await.unwrap(), Ok(Claimed::Found(Found::InFlight { .. })));
    assert_eq!(place.gated.sizes(), [1, 1, 1, 1], "two of one record cannot be in one statement");
}

#[tokio::test(start_paused = true)]
async fn the_same_attempt_gets_the_same_answer() {
    let place = Place::new();
    let blocker = place.ask(&claim("blocker")).await;
    let twice = claim("k");
    let asking = place.ask_all(&[twice.clone(), twice]).await;
    place.gated.open();
    owned(vec![blocker]).await;
    owned(asking).await;
    assert_eq!(place.gated.sizes(), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn what_ends_in_doubt_is_told_to_each_duplicate() {
    let place = Place::new();
    let first = claim("k");
    own(&place.gated.inner, &first).await;
    let finish = Finish { outcome: Outcome::InDoubt(Reason::Panic), ..done(&first) };
    place.gated.inner.finish(&[finish]).await.unwrap();
    let blocker = place.ask(&claim("blocker")).await;
    let asking = place.ask_all(&[claim("k"), claim("k")]).await;
    place.gated.open();
    owned(vec![blocker]).await;
    for asked in asking {
        found!(asked.await.unwrap(), Ok(Claimed::Found(Found::InDoubt(Reason::Panic))));
    }
    assert_eq!(place.gated.sent.lock().unwrap()[1], [record("k")]);
}
