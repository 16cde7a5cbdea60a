//! What operators find without knowing a key.

use super::{steps::*, *};
use crate::store::{Filter, Page};

const SECOND: Duration = Duration::from_secs(1);

/// The ids of all that the filter asks for, in pages of this length.
async fn ids(store: &dyn Store, filter: &Filter, limit: u32) -> Vec<RecordId> {
    ids_from(store, filter, Page::first(limit), limit).await
}

/// From this page on.
async fn ids_from(store: &dyn Store, filter: &Filter, mut page: Page, limit: u32) -> Vec<RecordId> {
    let mut ids = Vec::new();
    for _ in 0..20 {
        let records = store.list(filter, page).await.unwrap();
        assert!(records.len() <= limit as usize);
        ids.extend(records.iter().map(|record| record.id));
        match records.last() {
            Some(last) if records.len() == limit as usize => page = page.after(last.id),
            _ => return ids,
        }
    }
    panic!("the pages never end");
}

/// Those of these keys, in the order of a list.
fn of(keys: &[&str]) -> Vec<RecordId> {
    let mut ids: Vec<RecordId> = keys.iter().map(|key| record(key)).collect();
    ids.sort_by_key(|id| *id.as_bytes());
    ids
}

/// Each filter gives what it says; catches a store that ignores one, or takes a run that has lost its lease for one that
/// is under way.
pub async fn a_list_shows_what_is_asked_for(store: &dyn Store, clock: &dyn Clock) {
    own(store, &claim("silent")).await;
    run(store, "held", Outcome::InDoubt(Reason::Status)).await;
    run(store, "done", Outcome::Done(reply("x"))).await;
    clock.pass(LEASE + SECOND * 5).await;
    own(store, &Claim { scope: "globex".into(), ..claim("live") }).await;
    own(store, &Claim { op: "refund", ..claim("refund") }).await;
    clock.pass(SECOND * 3).await;
    survey(store).await;
    let all = Filter::default();
    assert_eq!(ids(store, &all, 100).await, of(&["silent", "held", "done", "live", "refund"]));
    let doubts = all.clone().state(State::InDoubt);
    assert_eq!(ids(store, &doubts, 100).await, of(&["silent", "held"]));
    assert_eq!(ids(store, &all.clone().state(State::InFlight), 100).await, of(&["live", "refund"]));
    assert_eq!(ids(store, &all.clone().state(State::Done), 100).await, of(&["done"]));
    assert_eq!(ids(store, &all.clone().op("refund"), 100).await, of(&["refund"]));
    assert_eq!(ids(store, &all.clone().scope("globex"), 100).await, of(&["live"]));
    assert_eq!(ids(store, &all.clone().older_than(LEASE), 100).await, of(&["silent", "held", "done"]));
    assert_eq!(ids(store, &doubts.op("refund"), 100).await, []);
    let silent = store.list(&all.state(State::InDoubt), Page::default()).await.unwrap();
    let silent = silent.iter().find(|shown| shown.id == record("silent")).unwrap();
    assert_eq!((silent.state, silent.reason), (State::InDoubt, Some(Reason::LeaseExpired)));
}

/// What is there all the time is listed once, whatever comes and goes between two pages; catches a store that begins
/// anew with every page, or counts from its beginning.
pub async fn pages_neither_repeat_nor_miss(store: &dyn Store, clock: &dyn Clock) {
    let keys = ["a", "b", "c", "d", "e"];
    for key in keys {
        run(store, key, Outcome::InDoubt(Reason::Status)).await;
    }
    clock.pass(SECOND * 3).await;
    survey(store).await;
    for filter in [Filter::default(), Filter::default().state(State::InDoubt)] {
        assert_eq!(ids(store, &filter, 2).await, of(&keys));
        assert_eq!(ids(store, &filter, 5).await, of(&keys));
    }
    let sorted = of(&keys);
    let filter = Filter::default().state(State::InDoubt);
    let first = store.list(&filter, Page::first(2)).await.unwrap();
    let gone = &first[0];
    let by = Audit { who: "ops".into(), why: "asked the provider".into() };
    let resolve = Resolve {
        record: gone.id,
        seen: gone.fence,
        to: Resolution::Void,
        quarantine: QUARANTINE,
        rerun: Duration::ZERO,
        reason: Reason::Operator,
        by,
    };
    assert!(store.resolve(&resolve).await.unwrap());
    let letters: Vec<String> = ('f'..='z').map(String::from).collect();
    let (came, mark): (Vec<&str>, _) = (letters.iter().map(String::as_str).collect(), first[1].id);
    for key in &came {
        run(store, key, Outcome::InDoubt(Reason::Status)).await;
    }
    clock.pass(SECOND * 3).await;
    survey(store).await;
    let behind: Vec<RecordId> = of(&came).into_iter().filter(|id| id.as_bytes() > mark.as_bytes()).collect();
    assert!(!behind.is_empty() && behind.len() < came.len(), "some come before the mark, some behind it");
    for filter in [filter, Filter::default()] {
        let rest = ids_from(store, &filter, Page::first(2).after(mark), 2).await;
        let (new, old): (Vec<RecordId>, Vec<RecordId>) = rest.into_iter().partition(|id| behind.contains(id));
        assert_eq!((old, new), (sorted[2..].to_vec(), behind.clone()));
    }
}

/// A provider's id finds all that it was recorded with; catches a store that looks at the id alone, or forgets what an
/// earlier run left.
pub async fn a_providers_id_finds_its_records(store: &dyn Store, clock: &dyn Clock) {
    let link = |claim: &Claim, epoch: Fence, provider: &str| Link {
        record: claim.record,
        epoch,
        attempt: claim.attempt,
        provider: provider.into(),
        id: "ch_1".into(),
    };
    let (one, other, elsewhere) = (claim("a"), claim("b"), claim("c"));
    let mut links = Vec::new();
    for (claim, provider) in [(&one, "stripe"), (&other, "stripe"), (&elsewhere, "adyen")] {
        links.push(link(claim, own(store, claim).await.epoch, provider));
    }
    store.link(&links).await.unwrap();
    let found = store.linked("stripe", "ch_1").await.unwrap();
    assert_eq!(found.iter().map(|shown| shown.id).collect::<Vec<_>>(), of(&["a", "b"]));
    assert_eq!(found[0].links, [("stripe".to_owned(), "ch_1".to_owned())]);
    assert!(store.linked("stripe", "ch_2").await.unwrap().is_empty());
    clock.pass(SECOND).await;
    finish(store, &one, Outcome::Released(Reason::Status)).await;
    own(store, &claim("a")).await;
    let found = store.linked("stripe", "ch_1").await.unwrap();
    let afresh = found.iter().find(|shown| shown.id == one.record).unwrap();
    assert_eq!((afresh.epoch, afresh.links.len()), (afresh.fence, 0), "a chargeback may still come");
}
