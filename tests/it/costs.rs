//! What each path costs: calls of the store, writes of the database, connections, renewals, memory.

use std::time::{Duration, Instant};

use axum::{Router, routing::post};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::support::{App, Shop, Verb, eventually, handler, seen};

handler!(charge, op = "costs.charge");
handler!(kept, op = "costs.kept", client_errors = keep("1h"));

fn router() -> Router<App> {
    Router::new().route("/charge", post(charge)).route("/kept", post(kept))
}

fn send(shop: &Shop, key: &str) -> JoinHandle<reqwest::Response> {
    let request = shop.post("/charge", key).json(&json!({}));
    tokio::spawn(async { request.send().await.unwrap() })
}

/// This many bodies, all in flight.
async fn in_flight(shop: &Shop, count: usize) -> Vec<JoinHandle<reqwest::Response>> {
    let requests = (0..count).map(|n| send(shop, &n.to_string())).collect();
    eventually(async || shop.probe.started() == count).await;
    requests
}

/// (claim, peek, finish, renew, link)
fn calls(shop: &Shop) -> [usize; 5] {
    [Verb::Claim, Verb::Peek, Verb::Finish, Verb::Renew, Verb::Link].map(|verb| shop.store.calls(verb))
}

#[tokio::test]
async fn a_first_request_is_one_claim_and_one_finish() {
    let shop = Shop::open(router()).await;
    send(&shop, "k1").await.unwrap();
    assert_eq!(calls(&shop), [1, 0, 1, 0, 0]);
}

#[tokio::test]
async fn a_replay_is_one_read_and_writes_nothing() {
    let shop = Shop::open(router()).await;
    send(&shop, "k1").await.unwrap();
    let kept = || shop.post("/kept", "k1").json(&json!({"status": 404})).send();
    kept().await.unwrap();
    let (before, asked) = (shop.place.version().await, calls(&shop));
    for _ in 0..100 {
        assert!(seen(send(&shop, "k1").await.unwrap()).await.replayed);
        assert!(seen(kept().await.unwrap()).await.replayed);
        let other = shop.post("/charge", "k1").json(&json!({"amount": 2})).send().await.unwrap();
        assert_eq!(other.status(), 422, "a refusal writes nothing, either");
    }
    assert_eq!(calls(&shop), [asked[0] + 300, asked[1], asked[2], asked[3], asked[4]]);
    assert_eq!(shop.place.version().await, before);
    send(&shop, "k2").await.unwrap();
    assert_ne!(shop.place.version().await, before, "it would have been seen");
}

#[tokio::test]
async fn a_hot_replay_does_not_ask_the_store() {
    let shop = Shop::open_with(router(), |builder| builder.cache_bytes(1 << 20)).await;
    send(&shop, "k1").await.unwrap();
    shop.store.down();
    for _ in 0..20 {
        assert!(seen(send(&shop, "k1").await.unwrap()).await.replayed);
        let other = shop.post("/charge", "k1").json(&json!({"amount": 2})).send().await.unwrap();
        assert_eq!(other.status(), 422, "the payload is compared all the same");
    }
    assert_eq!(calls(&shop), [1, 0, 1, 0, 0]);
}

/// The store has eleven connections at most. Scenario 101 as well: completions do not starve behind bodies.
#[tokio::test]
async fn no_connection_is_held_while_a_body_runs() {
    // Each by itself, so that all of them want a connection; what they share is counted in `sharing`.
    let shop = Shop::open_with(router(), |builder| builder.lease(Duration::from_secs(60)).batch(1)).await;
    let held = shop.probe.hold().await;
    let requests = in_flight(&shop, 64).await;
    let record = shop.record("costs.charge", "0").await;
    assert_eq!(record.attempts, 1, "the store still answers");
    drop(held);
    for request in requests {
        let answer = request.await.unwrap();
        assert_eq!(answer.status(), 201);
        assert!(!answer.headers().contains_key("idempotency-status"));
    }
    assert_eq!(shop.count("select count(*) from idem_key where state = 2").await, 64);
    assert_eq!(calls(&shop), [64, 0, 64, 0, 0]);
}

/// How many tasks and leases the runtime keeps account of.
fn accounted(shop: &Shop) -> [usize; 2] {
    let debug = format!("{:?}", shop.runtime);
    ["bodies: ", "leases: "].map(|name| {
        let count = debug.split(name).nth(1).unwrap().split(',').next().unwrap();
        count.parse().unwrap()
    })
}

/// Real seconds pass in these two, since renewals are what is counted.
#[tokio::test]
async fn renewals_of_all_bodies_are_one_call_and_bodies_do_not_grow_with_age() {
    let shop = Shop::open_with(router(), |builder| builder.lease(Duration::from_secs(1))).await;
    let held = shop.probe.hold().await;
    let started = Instant::now();
    let requests = in_flight(&shop, 30).await;
    let young = accounted(&shop);
    assert_eq!(young[1], 30, "an entry each");
    let long = shop.place.span(Duration::from_millis(2500));
    let renewed = format!("select count(*) from idem_key where lease_until >= created_at + {long}");
    eventually(async || shop.count(&renewed).await == 30).await; // four times at least
    // At most one call for all of them per tick, and there are six ticks a lease.
    let ticks = started.elapsed().as_millis() / 166 + 2;
    assert!(shop.store.calls(Verb::Renew) as u128 <= ticks, "{} calls", shop.store.calls(Verb::Renew));
    assert_eq!(accounted(&shop), young, "nothing piles up");
    drop(held);
    for request in requests {
        assert_eq!(request.await.unwrap().status(), 201);
    }
    assert_eq!(accounted(&shop), [0, 0]);
    let renewals = shop.store.calls(Verb::Renew);
    tokio::time::sleep(Duration::from_millis(600)).await; // more than a tick, more than a third of a lease
    assert_eq!(shop.store.calls(Verb::Renew), renewals, "nobody is left to be renewed");
}

#[tokio::test]
async fn clause_20_a_lease_is_renewed_every_third_of_it_and_not_before() {
    let shop = Shop::open_with(router(), |builder| builder.lease(Duration::from_secs(1))).await;
    let _held = shop.probe.hold().await;
    let started = Instant::now();
    let _request = in_flight(&shop, 1).await;
    eventually(async || shop.store.calls(Verb::Renew) >= 3).await;
    assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());
}
