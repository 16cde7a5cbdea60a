//! What waits in a batch for its turn, while time passes or the store takes no renewals.

use std::time::Duration;

use axum::Router;
use idem_runtime::{Error, ErrorKind, idempotent, state::State as Stands};

use super::{Desk, capture, claim, desk, ids, open};
use crate::support::{Fault, Meters, Shop, Verb, eventually};

/// Done at a provider that dedupes, for a day. The first run fails.
#[idempotent(function, runtime = desk.idem, scope = desk.tenant, op = "batches.deduped", key = id, in_doubt = rerun_deduped)]
async fn deduped(desk: &Desk, id: &str) -> Result<usize, Error> {
    desk.probe.effect(id);
    if desk.probe.effects() == 1 {
        desk.idem.find("batches.deduped", "acme", "").await?; // an empty key: it fails
    }
    Ok(desk.probe.effects())
}

/// Each renewal comes a third of a lease after the one before, or later.
async fn renewed(shop: &Shop, times: usize) {
    let before = shop.store.calls(Verb::Renew);
    eventually(async || shop.store.calls(Verb::Renew) >= before + times).await;
}

#[tokio::test]
async fn clause_26_what_has_waited_for_a_day_is_not_run_again() {
    let (shop, desk) = open().await;
    deduped(&desk, "job 0").await.unwrap_err();
    let batch = shop.runtime.claim_many("batches.deduped", [("acme", "job 0")]).await.unwrap();
    assert_eq!(batch.owned(), 1);
    renewed(&shop, 4).await; // for longer than a lease
    shop.pass(Duration::from_secs(24 * 60 * 60)).await;
    let told = batch.run(deduped(&desk, "job 0")).await.unwrap_err();
    assert_eq!((told.kind(), shop.probe.effects()), (ErrorKind::InDoubt, 1), "the provider may have forgotten it");
    assert_eq!(shop.record("batches.deduped", "job 0").await.state, Stands::InDoubt);
}

#[tokio::test]
async fn clause_26_what_has_waited_in_its_window_is_run_again() {
    let meters = Meters::collect();
    let (shop, desk) = open().await;
    deduped(&desk, "job 0").await.unwrap_err();
    let batch = shop.runtime.claim_many("batches.deduped", [("acme", "job 0"), ("acme", "job 1")]).await.unwrap();
    let claims = shop.store.calls(Verb::Claim);
    renewed(&shop, 4).await;
    meters.newly("idem_requests_total");
    assert_eq!(batch.run(deduped(&desk, "job 0")).await.unwrap(), 2);
    let counted = meters.newly("idem_requests_total");
    assert_eq!(
        counted,
        [("idem_requests_total{op=batches.deduped,outcome=executed}".to_owned(), 1.0)],
        "by its own end"
    );
    assert_eq!(shop.record("batches.deduped", "job 0").await.attempts, 3, "given back, and claimed by its own call");
    assert_eq!(batch.run(deduped(&desk, "job 1")).await.unwrap(), 3);
    assert_eq!(shop.store.calls(Verb::Claim), claims + 1, "what begins afresh needs no claim of its own");
}

#[tokio::test]
async fn clause_20_a_body_does_not_start_on_a_lease_that_is_about_to_end() {
    let (shop, desk) = open().await;
    let messages = ids(0..2);
    let batch = claim(&desk, &messages).await.unwrap();
    shop.store.tell(Verb::Renew, Fault::Down);
    eventually(async || shop.store.calls(Verb::Renew) >= 4).await; // the fourth try: five sixths of the lease are over
    let told = batch.run(capture(&desk, &messages[0])).await.unwrap_err();
    assert!(matches!(told.kind(), ErrorKind::Unavailable { .. }), "{told:?}");
    assert_eq!(shop.probe.started(), 0);
    shop.store.heal();
    eventually(async || shop.record("batches.capture", "job 0").await.state == Stands::Released).await;
    capture(&desk, &messages[0]).await.unwrap();
}

#[tokio::test]
async fn clause_20_a_body_does_not_start_on_a_lease_that_is_known_to_be_lost() {
    let (shop, desk_here) = open().await;
    let other = Shop::open_on(shop.place.clone(), Router::new(), |builder| builder).await;
    let there = Desk { idem: other.runtime.clone(), ..desk(&shop) };
    deduped(&there, "job 0").await.unwrap_err();
    let batch = shop.runtime.claim_many("batches.deduped", [("acme", "job 0")]).await.unwrap();
    shop.freeze().await;
    deduped(&there, "job 0").await.unwrap();
    shop.store.heal();
    renewed(&shop, 2).await; // the first one has told it
    let told = batch.run(deduped(&desk_here, "job 0")).await.unwrap_err();
    assert!(matches!(told.kind(), ErrorKind::Unavailable { .. }), "{told:?}");
    assert_eq!(shop.probe.effects(), 2);
    assert_eq!(deduped(&desk_here, "job 0").await.unwrap(), 2, "what the other run came to");
}
