//! Events of one object that come in any order: none is applied after one that stands as high, or higher.
//!
//! For a store whose [`transactions`](Store::transactions) are not `None`.

use super::{steps::*, *};
use crate::{
    key::OrderId,
    store::{Committed, OpenTransaction, Order},
};

const SECOND: Duration = Duration::from_secs(1);
/// How much longer than it must be known a note stays.
const GRACE: Duration = Duration::from_secs(60);

/// An event of this object, which stands there.
fn event(claim: &Claim, object: u8, sequence: i64) -> Begin {
    let order = Order { id: OrderId::from([object; 16]), sequence, keep: GUARD };
    Begin { claim: Some(claim.clone()), limit: Duration::from_secs(5), savepoint: false, order: Some(order) }
}

fn end(claim: &Claim, outcome: Outcome) -> Commit {
    let finish = Finish { record: claim.record, attempt: claim.attempt, outcome };
    Commit { finish: Some(finish), keeps_rows: true, links: Vec::new() }
}

async fn commit(store: &dyn Store, transaction: OpenTransaction, commit: &Commit) {
    found!(store.commit(transaction, commit).await.unwrap(), Committed::Stored { .. });
}

/// An event that is applied.
async fn applies(store: &dyn Store, key: &str, object: u8, sequence: i64) {
    let claim = claim(key);
    let begun = store.begin(&event(&claim, object, sequence)).await.unwrap();
    let transaction = found!(begun, Begun::Open(_, transaction) => transaction);
    commit(store, transaction, &end(&claim, Outcome::Done(reply("applied")))).await;
}

/// An event that is passed over.
async fn passes_over(store: &dyn Store, key: &str, object: u8, sequence: i64) {
    let claim = claim(key);
    let begun = store.begin(&event(&claim, object, sequence)).await.unwrap();
    let transaction = found!(begun, Begun::Stale(_, transaction) => transaction);
    commit(store, transaction, &end(&claim, Outcome::Done(reply("stale")))).await;
}

/// Whether an event would be applied; nothing is left of this.
async fn would_apply(store: &dyn Store, object: u8, sequence: i64) -> bool {
    let claim = claim("would");
    let (would, transaction) = match store.begin(&event(&claim, object, sequence)).await.unwrap() {
        Begun::Open(_, transaction) => (true, transaction),
        Begun::Stale(_, transaction) => (false, transaction),
        Begun::Found(found) => panic!("found {found:?}"),
    };
    commit(store, transaction, &end(&claim, Outcome::Released(Reason::Status))).await;
    would
}

/// Later events are applied, earlier ones are not; catches a store that looks at no order.
pub async fn an_older_event_is_stale(store: &dyn Store, _: &dyn Clock) {
    applies(store, "first", 1, -5).await;
    applies(store, "third", 1, 7).await;
    passes_over(store, "second", 1, 6).await;
    applies(store, "fourth", 1, i64::MAX).await;
    passes_over(store, "oldest", 1, i64::MIN).await;
}

/// Which of two came first cannot be told, so the second is not applied; catches a store that compares with `<=`.
pub async fn an_equal_event_is_stale(store: &dyn Store, _: &dyn Clock) {
    applies(store, "a", 1, 7).await;
    passes_over(store, "b", 1, 7).await;
}

/// It changes nothing of its order; catches a store that notes what came last.
pub async fn a_stale_event_lowers_nothing(store: &dyn Store, _: &dyn Clock) {
    applies(store, "a", 1, 7).await;
    passes_over(store, "b", 1, 3).await;
    passes_over(store, "c", 1, 5).await;
}

/// Its record is committed, so it is a replay from then on, as the newest one is; catches a store that asks the order first.
pub async fn a_stale_event_is_done(store: &dyn Store, _: &dyn Clock) {
    applies(store, "new", 1, 7).await;
    passes_over(store, "old", 1, 3).await;
    for (key, sequence, body) in [("new", 7, "applied"), ("old", 3, "stale"), ("old", 9, "stale")] {
        let again = store.begin(&event(&claim(key), 1, sequence)).await.unwrap();
        found!(again, Begun::Found(Found::Replay(replay)) if replay.response == reply(body));
    }
    assert_eq!(find(store, "old").await.state, State::Done);
}

/// One object's events are nothing to another's; catches a store that has one order for all.
pub async fn another_object_has_an_order_of_its_own(store: &dyn Store, _: &dyn Clock) {
    applies(store, "a", 1, 7).await;
    applies(store, "b", 2, 3).await;
    passes_over(store, "c", 2, 2).await;
}

/// What is undone has not been applied; catches a store that notes outside of the transaction.
pub async fn an_order_is_undone_with_its_run(store: &dyn Store, _: &dyn Clock) {
    for outcome in [Outcome::Released(Reason::Status), Outcome::InDoubt(Reason::Panic)] {
        let claim = claim("new");
        let begun = store.begin(&event(&claim, 1, 7)).await.unwrap();
        let transaction = found!(begun, Begun::Open(_, transaction) => transaction);
        commit(store, transaction, &end(&claim, outcome)).await;
        assert!(would_apply(store, 1, 3).await);
    }
    applies(store, "old", 1, 3).await;
    applies(store, "new", 1, 7).await;
}

/// An answer that is kept without its rows is of an event that was refused; catches a store that notes before the savepoint.
pub async fn an_order_goes_with_the_rows(store: &dyn Store, _: &dyn Clock) {
    let refused = claim("refused");
    let begin = Begin { savepoint: true, ..event(&refused, 1, 7) };
    let transaction = found!(store.begin(&begin).await.unwrap(), Begun::Open(_, transaction) => transaction);
    let kept = Commit { keeps_rows: false, ..end(&refused, Outcome::Rejected(reply("no"), LEASE)) };
    commit(store, transaction, &kept).await;
    assert_eq!(find(store, "refused").await.state, State::Rejected);
    applies(store, "old", 1, 3).await;
    let applied = claim("applied");
    let begin = Begin { savepoint: true, ..event(&applied, 1, 9) };
    let transaction = found!(store.begin(&begin).await.unwrap(), Begun::Open(_, transaction) => transaction);
    commit(store, transaction, &end(&applied, Outcome::Done(reply("x")))).await;
    passes_over(store, "late", 1, 8).await;
}

/// While an event is being applied no other one of its object is begun, and nothing is left of the try; catches a store whose
/// events do not see each other before the commit.
pub async fn one_event_of_an_object_is_applied_at_a_time(store: &dyn Store, _: &dyn Clock) {
    let (first, second) = (claim("first"), claim("second"));
    let begun = store.begin(&event(&first, 1, 7)).await.unwrap();
    let transaction = found!(begun, Begun::Open(_, transaction) => transaction);
    if !store.transactions().unwrap().exclusive {
        for sequence in [6, 8] {
            let begun = store.begin(&event(&second, 1, sequence)).await.unwrap();
            found!(begun, Begun::Found(Found::InFlight { .. }));
            assert!(store.find(second.record).await.unwrap().is_none());
        }
        assert!(would_apply(store, 2, 1).await, "that one is nobody's concern");
    }
    commit(store, transaction, &end(&first, Outcome::Done(reply("x")))).await;
    passes_over(store, "second", 1, 6).await;
    applies(store, "third", 1, 8).await;
}

/// It counts as long as it must, a minute longer, and until it is removed; catches a store that forgets too early, or never.
pub async fn a_note_is_purged_when_its_time_is_over(store: &dyn Store, clock: &dyn Clock) {
    applies(store, "a", 1, 7).await;
    clock.pass(GUARD - SECOND * 5).await;
    purge_all(store).await;
    assert!(!would_apply(store, 1, 6).await);
    clock.pass(GRACE).await;
    purge_all(store).await;
    assert!(!would_apply(store, 1, 6).await, "within the minute");
    clock.pass(SECOND * 10).await;
    assert!(!would_apply(store, 1, 6).await, "while it is there, it counts");
    purge_all(store).await;
    assert!(would_apply(store, 1, 3).await);
}

/// A later event prolongs what is known of its object; catches a store that writes the time of the first one only.
pub async fn a_later_event_prolongs_its_note(store: &dyn Store, clock: &dyn Clock) {
    applies(store, "a", 1, 7).await;
    clock.pass(GUARD - SECOND * 5).await;
    applies(store, "b", 1, 9).await;
    clock.pass(GRACE + SECOND * 10).await;
    purge_all(store).await;
    assert!(!would_apply(store, 1, 8).await);
}

/// Notes are removed in batches, as records are, and not where the clock cannot be trusted; catches a store that removes all of
/// them at once, or stops when no record is left to remove.
pub async fn notes_are_purged_in_batches(store: &dyn Store, clock: &dyn Clock) {
    for object in 1..=3 {
        let claim = claim(&format!("k{object}"));
        let mut event = event(&claim, object, 7);
        event.order = event.order.map(|order| Order { keep: SECOND, ..order });
        let transaction = found!(store.begin(&event).await.unwrap(), Begun::Open(_, transaction) => transaction);
        commit(store, transaction, &end(&claim, Outcome::Done(reply("x")))).await;
    }
    clock.pass(GRACE + SECOND * 5).await;
    let known = async || {
        let mut known = 0;
        for object in 1..=3 {
            known += u8::from(!would_apply(store, object, 6).await);
        }
        known
    };
    let refused = store.purge(&Purge { limit: 10, within: SECOND }).await.unwrap();
    assert_eq!((refused.refused, known().await), (true, 3));
    let purged = store.purge(&Purge::at_any_time(1)).await.unwrap();
    assert_eq!((purged.records, purged.more, known().await), (0, true, 2));
    purge_all(store).await;
    assert_eq!(known().await, 0);
}

async fn purge_all(store: &dyn Store) {
    while store.purge(&Purge::at_any_time(1)).await.unwrap().more {}
}
