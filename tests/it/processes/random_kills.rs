//! `kill -9` at random moments.

use std::{env, time::Duration};

use fastrand::Rng;
use serde_json::{Value, json};

use super::PAST_THE_LEASE;
use crate::support::{
    Seen,
    process::{ACME, Disk},
};

const KEYS: u64 = 30;

/// The amount tells the effects of one key from those of another.
fn charge(key: u64, delay: u64) -> Value {
    json!({"amount": 1000 + key, "currency": "EUR", "card": "tok_visa", "delay_ms": delay})
}

/// Scenarios 41 … 43 without a choice of the moment. `SEED=… tests/run` repeats one run's moments.
#[tokio::test]
async fn scenario_41_killed_at_random_moments() {
    let seed = env::var("SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    let mut random = Rng::with_seed(seed);
    let disk = Disk::new().await;
    let mut answered: Vec<Option<Seen>> = Vec::new();
    let mut delays = Vec::new();
    for key in 0..KEYS {
        let payments = disk.start().await;
        let delay = random.u64(0..15);
        let caller = payments.pay_meanwhile("/charges", &format!("k{key}"), &charge(key, delay));
        tokio::time::sleep(Duration::from_micros(random.u64(0..40_000))).await; // the kill, not a wait
        payments.kill().await;
        answered.push(caller.await.unwrap());
        delays.push(delay);
    }
    disk.the_killed_are_gone().await;
    disk.pass(PAST_THE_LEASE).await;

    let payments = disk.start().await;
    let (mut replayed, mut unknown, mut afresh) = (0, 0, 0);
    for (key, (first, delay)) in (0..KEYS).zip(answered.iter().zip(delays)) {
        let before = effects(&payments.listing("/charges", ACME).await, key);
        let retry = payments.pay("/charges", &format!("k{key}"), &charge(key, delay)).await;
        let after = effects(&payments.listing("/charges", ACME).await, key);
        match (retry.status, retry.replayed) {
            (201, true) => {
                replayed += 1;
                assert_eq!((before, after), (1, 1), "key {key}: an answer without its effect");
            }
            (201, false) => {
                afresh += 1;
                assert_eq!((before, after), (0, 1), "key {key}: it ran although something had happened");
            }
            (409, false) => {
                unknown += 1;
                assert!(retry.body.contains("#idempotency-outcome-unknown"), "key {key} is stuck: {}", retry.body);
                assert!(before == after && after <= 1, "key {key}: {before} effects, then {after}");
            }
            _ => panic!("key {key}: {retry:?}"),
        }
        if let Some(first) = first {
            assert_eq!((first.status, retry.replayed, &first.body), (201, true, &retry.body), "key {key}");
        }
    }
    println!("{replayed} replayed, {unknown} in doubt, {afresh} ran afresh");
    assert!([replayed, unknown, afresh].iter().filter(|&&n| n > 0).count() >= 2, "the kills hit one place only");
}

fn effects(listing: &[Value], key: u64) -> usize {
    listing.iter().filter(|effect| effect["amount"] == 1000 + key).count()
}
