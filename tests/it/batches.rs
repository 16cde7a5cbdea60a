//! Clause 46: a consumer that takes many messages at once claims all of them in one statement.

mod leases;

use std::time::Duration;

use axum::Router;
use idem_runtime::{Batch, Error, ErrorKind, Global, Runtime, idempotent, state::State as Stands};

use crate::support::{Fault, Probe, Shop, Verb, eventually};

#[derive(Clone)]
struct Desk {
    idem: Runtime,
    tenant: &'static str,
    probe: Probe,
}

#[idempotent(function, runtime = desk.idem, scope = desk.tenant, op = "batches.capture", key = id)]
async fn capture(desk: &Desk, id: &str) -> Result<usize, Error> {
    desk.probe.pass().await;
    desk.probe.effect(id);
    Ok(desk.probe.effects())
}

#[idempotent(function, runtime = desk.idem, scope = tenant, op = "batches.shared", key = id, foreign_scope = reject)]
async fn shared(desk: &Desk, tenant: &str, id: &str) -> Result<usize, Error> {
    desk.probe.effect(format!("{tenant} {id}"));
    Ok(desk.probe.effects())
}

async fn open() -> (Shop, Desk) {
    let shop = Shop::open(Router::new()).await;
    let desk = desk(&shop);
    (shop, desk)
}

fn desk(shop: &Shop) -> Desk {
    Desk { idem: shop.runtime.clone(), tenant: "acme", probe: shop.probe.clone() }
}

fn ids(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers.into_iter().map(|n| format!("job {n}")).collect()
}

async fn claim(desk: &Desk, ids: &[String]) -> Result<Batch, Error> {
    desk.idem.claim_many("batches.capture", ids.iter().map(|id| ("acme", id))).await
}

async fn claim_kind(desk: &Desk, ids: &[String]) -> ErrorKind {
    claim(desk, ids).await.unwrap_err().kind()
}

#[tokio::test]
async fn scenario_94_a_batch_with_duplicates_is_one_claim() {
    let (shop, desk) = open().await;
    for id in ids(0..10) {
        capture(&desk, &id).await.unwrap();
    }
    let mut messages = ids(0..97);
    messages.extend(ids([20, 50, 96]));
    let (claims, log) = (shop.store.calls(Verb::Claim), shop.probe.log());

    let batch = claim(&desk, &messages).await.unwrap();
    assert_eq!((batch.owned(), shop.store.calls(Verb::Claim)), (87, claims + 1));
    let mut values = Vec::new();
    for id in &messages[..97] {
        values.push(batch.run(capture(&desk, id)).await.unwrap());
    }
    assert_eq!((batch.owned(), shop.store.calls(Verb::Claim)), (0, claims + 1), "none of them asked for itself");
    assert_eq!(&shop.probe.log()[10..], &messages[10..97], "what was done was not done again");
    assert_eq!(&shop.probe.log()[..10], log);
    assert_eq!(values, (1..=97).collect::<Vec<_>>(), "each has the value of its own run, or of the one before");

    for (id, first) in [(97, 20), (98, 50), (99, 96)] {
        assert_eq!(batch.run(capture(&desk, &messages[id])).await.unwrap(), values[first], "the second is a retry");
    }
    assert_eq!((shop.probe.effects(), shop.store.calls(Verb::Claim)), (97, claims + 4));
}

/// A function compares no payloads: the second message is a retry of the first, whatever else it says.
#[tokio::test]
async fn case_74_two_messages_with_one_key_in_a_batch_are_one_effect() {
    let (shop, desk) = open().await;
    let messages = ["k1", "k2", "k1", "k1"].map(str::to_owned);
    let batch = claim(&desk, &messages).await.unwrap();
    let mut values = Vec::new();
    for id in &messages {
        values.push(batch.run(capture(&desk, id)).await.unwrap());
    }
    assert_eq!(values, [1, 2, 1, 1]);
    assert_eq!(shop.probe.log(), ["k1", "k2"]);
}

/// Twenty rounds, in each of which both want all of it at the same moment.
#[tokio::test]
async fn scenario_95_two_workers_with_the_same_batch_do_not_wait_for_each_other() {
    let (shop, one) = open().await;
    let other_shop = Shop::open_on(shop.place.clone(), Router::new(), |builder| builder).await;
    let other = Desk { idem: other_shop.runtime.clone(), tenant: "acme", probe: shop.probe.clone() };
    for round in 0..20 {
        let messages = ids(round * 100..round * 100 + 100);
        let work = async |desk: &Desk| {
            let mut mine = messages.clone();
            fastrand::shuffle(&mut mine);
            let batch = claim(desk, &mine).await.unwrap();
            let (owned, mut done) = (batch.owned(), 0);
            for id in &mine {
                match batch.run(capture(desk, id)).await {
                    Ok(_) => done += 1,
                    Err(error) => assert!(matches!(error.kind(), ErrorKind::InProgress { .. }), "{error:?}"),
                }
            }
            assert!(owned <= done);
            owned
        };
        let (one, other) = tokio::join!(work(&one), work(&other));
        assert_eq!(one + other, 100, "each message has one owner");
    }
    let claims = [&shop, &other_shop].map(|shop| shop.store.calls(Verb::Claim));
    assert!(claims.iter().all(|&claims| claims >= 20));
    let mut log = shop.probe.log();
    log.sort_unstable();
    log.dedup();
    assert_eq!((log.len(), shop.probe.effects()), (2_000, 2_000));
}

#[tokio::test]
async fn clause_46_messages_of_a_batch_may_run_beside_each_other() {
    let (shop, desk) = open().await;
    let messages = ids(0..30);
    let batch = claim(&desk, &messages).await.unwrap();
    let held = shop.probe.hold().await;
    let work = messages.into_iter().map(|id| {
        let (batch, desk) = (batch.clone(), desk.clone());
        tokio::spawn(async move { batch.run(capture(&desk, &id)).await })
    });
    let work: Vec<_> = work.collect();
    eventually(async || shop.probe.started() == 30).await;
    drop(held);
    for worker in work {
        worker.await.unwrap().unwrap();
    }
    assert_eq!((shop.probe.effects(), shop.store.calls(Verb::Claim)), (30, 1));
}

#[tokio::test]
async fn clause_46_a_batch_that_is_dropped_gives_back_what_has_not_started() {
    let (shop, desk) = open().await;
    let messages = ids(0..50);
    let batch = claim(&desk, &messages).await.unwrap();
    let clone = batch.clone();
    batch.run(capture(&desk, &messages[0])).await.unwrap();
    drop(batch);
    let in_flight = async || shop.count("select count(*) from idem_key where state = 1").await;
    assert_eq!((clone.owned(), in_flight().await), (49, 49));
    let told = capture(&desk, &messages[1]).await.unwrap_err().kind();
    assert!(matches!(told, ErrorKind::InProgress { .. }), "without the batch it is somebody else's: {told:?}");
    drop(clone);
    eventually(async || in_flight().await == 0).await;
    assert_eq!(shop.record("batches.capture", "job 0").await.state, Stands::Done);
    assert_eq!(shop.record("batches.capture", "job 49").await.state, Stands::Released);
    capture(&desk, &messages[49]).await.unwrap();
    assert_eq!(shop.probe.effects(), 2);
}

/// Its leases are renewed while they wait for their turn.
#[tokio::test]
async fn clause_46_what_waits_in_a_batch_is_renewed() {
    let (shop, desk) = open().await;
    let messages = ids(0..3);
    let batch = claim(&desk, &messages).await.unwrap();
    eventually(async || shop.store.calls(Verb::Renew) >= 2).await;
    for id in &messages {
        batch.run(capture(&desk, id)).await.unwrap();
    }
    assert_eq!(shop.probe.effects(), 3);
}

#[tokio::test]
async fn clause_23_a_batch_starts_nothing_while_the_runtime_drains() {
    let (shop, desk) = open().await;
    capture(&desk, "job 0").await.unwrap();
    let messages = ids(0..10);
    let batch = claim(&desk, &messages).await.unwrap();
    batch.run(capture(&desk, &messages[1])).await.unwrap();
    shop.runtime.start_draining();
    for id in &messages[2..5] {
        assert_eq!(batch.run(capture(&desk, id)).await.unwrap_err().kind(), ErrorKind::Draining);
    }
    assert_eq!(batch.run(capture(&desk, &messages[0])).await.unwrap(), 1, "replays are still served");
    assert_eq!(claim_kind(&desk, &messages).await, ErrorKind::Draining);
    drop(batch);
    let drained = shop.runtime.shutdown(Duration::from_secs(10)).await;
    assert!(drained.completed, "{drained:?}");
    assert_eq!(shop.count("select count(*) from idem_key where state = 4").await, 8, "all of it is given back");
    assert_eq!(shop.probe.effects(), 2);
}

/// Shutdown waits for a batch, and at its limit takes from it what has not started.
#[tokio::test]
async fn clause_23_a_batch_that_is_kept_over_the_shutdown_is_given_back_all_the_same() {
    let (shop, desk) = open().await;
    let messages = ids(0..10);
    let batch = claim(&desk, &messages).await.unwrap();
    let drained = shop.runtime.shutdown(Duration::from_millis(100)).await;
    assert_eq!((drained.completed, drained.in_doubt, drained.released), (false, 0, 10));
    assert_eq!(shop.count("select count(*) from idem_key where state = 4").await, 10);
    assert_eq!(batch.run(capture(&desk, &messages[0])).await.unwrap_err().kind(), ErrorKind::Draining);
    assert_eq!(shop.probe.effects(), 0);
}

#[tokio::test]
async fn clause_21_a_batch_whose_reply_is_lost_is_claimed_by_the_same_attempts() {
    let (shop, desk) = open().await;
    shop.store.tell(Verb::Claim, Fault::ReplyLost(1));
    let messages = ids(0..20);
    let batch = claim(&desk, &messages).await.unwrap();
    assert_eq!((batch.owned(), shop.store.calls(Verb::Claim)), (20, 2));
    for id in &messages {
        batch.run(capture(&desk, id)).await.unwrap();
    }
    assert_eq!((shop.probe.effects(), shop.store.calls(Verb::Claim)), (20, 2));
    assert_eq!(shop.record("batches.capture", "job 7").await.attempts, 1);
}

#[tokio::test]
async fn clause_21_a_batch_that_the_store_may_have_granted_is_given_back() {
    let (shop, desk) = open().await;
    shop.store.tell(Verb::Claim, Fault::ReplyLost(2));
    let messages = ids(0..20);
    assert!(matches!(claim_kind(&desk, &messages).await, ErrorKind::Unavailable { .. }));
    eventually(async || shop.count("select count(*) from idem_key where state = 4").await == 20).await;
    let batch = claim(&desk, &messages).await.unwrap();
    assert_eq!((batch.owned(), shop.probe.effects()), (20, 0));
}

/// Clause 17: the claim goes on, and what it gets goes back.
#[tokio::test]
async fn clause_17_a_consumer_that_leaves_leaves_nothing_claimed() {
    let (shop, desk) = open().await;
    shop.store.tell(Verb::Claim, Fault::Slow(Duration::from_millis(100)));
    let consumer = tokio::spawn(async move { claim(&desk, &ids(0..20)).await });
    eventually(async || shop.store.calls(Verb::Claim) == 1).await;
    consumer.abort();
    eventually(async || shop.count("select count(*) from idem_key where state = 4").await == 20).await;
}

/// With `foreign_scope = reject` two tenants' messages can name one record.
#[tokio::test]
async fn clause_05_another_scope_s_message_does_not_take_what_was_claimed_for_the_first() {
    let (shop, desk) = open().await;
    let batch = shop.runtime.claim_many("batches.shared", [("acme", "k1"), ("globex", "k1")]).await.unwrap();
    assert_eq!(batch.owned(), 1);
    assert_eq!(batch.run(shared(&desk, "globex", "k1")).await.unwrap_err().kind(), ErrorKind::Mismatch);
    assert_eq!(batch.run(shared(&desk, "acme", "k1")).await.unwrap(), 1);
    assert_eq!(shop.probe.log(), ["acme k1"]);
}

#[tokio::test]
async fn clause_46_a_batch_says_what_it_cannot_claim() {
    let (shop, desk) = open().await;
    let claims = shop.store.calls(Verb::Claim);
    assert_eq!(claim_kind(&desk, &ids(0..1_001)).await, ErrorKind::InvalidBatch);
    for (op, why) in [("no.such", "no such operation"), ("costs.charge", "handler"), ("tx.capture", "transaction")] {
        let error = shop.runtime.claim_many(op, [(Global, "k1")]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidBatch, "{op}");
        assert!(error.to_string().contains(why), "{op}: {error}");
    }
    let nobody: [(Global, &str); 0] = [];
    assert_eq!(shop.runtime.claim_many("batches.capture", nobody).await.unwrap().owned(), 0);
    assert_eq!(shop.store.calls(Verb::Claim), claims, "the store is not asked");

    let keys = ["k1".to_owned(), String::new(), "x".repeat(1_025), "k2".to_owned()];
    let batch = claim(&desk, &keys).await.unwrap();
    assert_eq!(batch.owned(), 2, "a bad message does not hold up the others");
    assert_eq!(batch.run(capture(&desk, &keys[1])).await.unwrap_err().kind(), ErrorKind::InvalidKey);
    batch.run(capture(&desk, &keys[0])).await.unwrap();
    let whole = ids(0..1_000);
    assert_eq!(claim(&desk, &whole).await.unwrap().owned(), 1_000);
}
