//! `POST /orders`: one transaction of the payments database, scenario 45.

use std::{env, time::Duration};

use fastrand::Rng;
use serde_json::{Value, json};

use super::killed_in;
use crate::support::{
    Backend,
    process::{ACME, Disk, GLOBEX},
};

const KEYS: u64 = 30;

fn books(quantity: u64) -> Value {
    json!({"sku": "book", "quantity": quantity})
}

async fn orders(disk: &Disk) -> i64 {
    disk.count("select count(*) from orders").await
}

async fn taken(disk: &Disk) -> i64 {
    disk.count("select cast(1000000 - quantity as bigint) from stock where sku = 'book'").await
}

#[tokio::test]
async fn an_order_is_one_order_and_takes_from_the_stock_once() {
    let disk = Disk::new().await;
    let payments = disk.start().await;
    let first = payments.pay("/orders", "k1", &books(2)).await;
    let placed: Value = serde_json::from_str(&first.body).unwrap();
    assert_eq!((first.status, &placed["sku"], &placed["quantity"]), (201, &json!("book"), &json!(2)));
    let retry = payments.pay("/orders", "k1", &books(2)).await;
    assert_eq!((retry.status, retry.replayed, &retry.body), (201, true, &first.body));
    assert_eq!(payments.listing("/orders", ACME).await, [placed]);
    assert!(payments.listing("/orders", GLOBEX).await.is_empty());
    assert_eq!(taken(&disk).await, 2);
}

#[tokio::test]
async fn scenario_34_an_order_that_fails_leaves_nothing_and_its_retry_runs() {
    let disk = Disk::new().await;
    let payments = disk.start().await;
    for _ in 0..2 {
        let failed = payments.pay("/orders", "k1", &json!({"sku": "book", "quantity": 2, "fail": true})).await;
        assert_eq!((failed.status, failed.replayed), (500, false));
    }
    for (order, status) in [
        (json!({"sku": "unicorn", "quantity": 1}), 404),
        (json!({"sku": "lamp", "quantity": 4}), 409),
        (json!({"sku": "lamp", "quantity": 0}), 422),
    ] {
        assert_eq!(payments.pay("/orders", "k1", &order).await.status, status);
    }
    assert_eq!((orders(&disk).await, taken(&disk).await, disk.records().await), (0, 0, 0));
    let retry = payments.pay("/orders", "k1", &books(2)).await;
    assert_eq!((retry.status, orders(&disk).await, taken(&disk).await), (201, 1, 2));
}

#[tokio::test]
async fn scenario_45_killed_at_every_step_of_an_order_is_one_order_in_the_end() {
    for write in ["insert on idem_key", "insert on orders", Backend::of_this_run().answering()] {
        let (disk, payments) = killed_in(write, "/orders", &books(1)).await;
        assert_eq!((orders(&disk).await, taken(&disk).await, disk.records().await), (0, 0, 0), "{write}");
        let retry = payments.pay("/orders", "k1", &books(1)).await;
        assert_eq!((retry.status, retry.replayed), (201, false), "{write}: {}", retry.body);
        let again = payments.pay("/orders", "k1", &books(1)).await;
        assert_eq!((again.replayed, &again.body), (true, &retry.body), "{write}");
        assert_eq!((orders(&disk).await, taken(&disk).await), (1, 1), "{write}");
    }
}

/// `SEED=… tests/run` repeats one run's moments.
#[tokio::test]
async fn scenario_45_killed_at_random_moments_is_exactly_one_order_each() {
    let seed = env::var("SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    let mut random = Rng::with_seed(seed);
    let disk = Disk::new().await;
    let mut answered = Vec::new();
    for key in 0..KEYS {
        let payments = disk.start().await;
        let caller = payments.pay_meanwhile("/orders", &format!("k{key}"), &books(1));
        tokio::time::sleep(Duration::from_micros(random.u64(0..15_000))).await; // the kill, not a wait
        payments.kill().await;
        answered.push(caller.await.unwrap());
    }
    let payments = disk.start().await;
    let mut replayed = 0;
    for (key, first) in answered.iter().enumerate() {
        let retry = super::settled(&payments, "/orders", &format!("k{key}"), &books(1)).await;
        assert_eq!(retry.status, 201, "key {key}: {}", retry.body);
        replayed += usize::from(retry.replayed);
        if let Some(first) = first {
            assert_eq!((retry.replayed, &first.body), (true, &retry.body), "key {key}");
        }
    }
    println!("{replayed} replayed of {KEYS}");
    let placed = i64::try_from(KEYS).unwrap();
    assert_eq!((orders(&disk).await, taken(&disk).await), (placed, placed));
}
