//! Two processes over one database.

use std::{collections::HashSet, time::Duration};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{
    problem,
    process::{ACME, Disk, GLOBEX, card, slow},
};

#[tokio::test]
async fn scenario_10_parallel_equal_requests_to_two_processes_have_one_effect() {
    have_one_effect(50).await;
}

#[tokio::test]
async fn case_01_forty_duplicates_over_two_processes_have_one_effect() {
    have_one_effect(40).await;
}

async fn have_one_effect(duplicates: usize) {
    let disk = Disk::new().await;
    let both = [disk.start().await, disk.start().await];
    let payment = slow(Duration::from_millis(300));
    let send = |n: usize| both[n % 2].post("/charges", "k1", &payment).send();
    let mut paid = HashSet::new();
    for response in join_all((0..duplicates).map(send)).await {
        let response = response.unwrap();
        match response.status().as_u16() {
            201 => drop(paid.insert(response.text().await.unwrap())),
            409 => {
                let told = problem(response).await;
                assert_eq!(told.slug, "idempotency-in-progress");
                assert!(told.retry_after.unwrap() >= 1);
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!((paid.len(), disk.effects().await), (1, 1), "{paid:?}");
    let paid = paid.into_iter().next().unwrap();
    for n in 0..6 {
        let retry = both[n % 2].pay("/charges", "k1", &payment).await;
        assert_eq!((retry.status, retry.replayed, &retry.body), (201, true, &paid));
    }
    for process in &both {
        let paid: Value = serde_json::from_str(&paid).unwrap();
        assert_eq!(process.listing("/charges", ACME).await, [paid]);
    }
}

/// As scenario 100 has it, over HTTP: the database's locks never reach a client.
#[tokio::test]
async fn scenario_100_many_keys_in_two_processes_and_no_database_is_locked() {
    let disk = Disk::new().await;
    let both = [disk.start().await, disk.start().await];
    let client = async |client: usize| {
        for key in 0..50 {
            let key = format!("client-{client}-key-{key}");
            let first = both[client % 2].pay("/charges", &key, &card("tok_visa")).await;
            assert_eq!((first.status, first.replayed), (201, false), "{first:?}");
            let retry = both[(client + 1) % 2].pay("/charges", &key, &card("tok_visa")).await;
            assert_eq!((retry.status, retry.replayed, retry.body), (201, true, first.body));
        }
    };
    join_all((0..8).map(client)).await;
    assert_eq!(disk.effects().await, 400);
    for process in &both {
        // Not "nothing": a busy machine is warned of.
        let log = process.log();
        assert!(!log.contains("database is locked") && !log.contains("deadlock") && !log.contains("ERROR"), "{log}");
    }
}

#[tokio::test]
async fn scenario_24_tenants_share_a_database_but_no_keys() {
    let disk = Disk::new().await;
    let both = [disk.start().await, disk.start().await];
    let payment = json!({"amount": 5, "currency": "CHF", "card": "tok_visa"});
    let acme = both[0].pay("/charges", "k1", &payment).await;
    let globex = both[1].pay_as(GLOBEX, "/charges", "k1", &payment).await;
    assert!(!globex.replayed);
    assert_ne!(acme.body, globex.body);
    for (token, own) in [(ACME, acme), (GLOBEX, globex)] {
        let own: Value = serde_json::from_str(&own.body).unwrap();
        assert_eq!(both[0].listing("/charges", token).await, [own]);
        assert!(both[0].listing("/payouts", token).await.is_empty(), "a charge is no payout");
    }
}

/// Each makes the tables if they are not there.
#[tokio::test]
async fn clause_23_processes_may_start_together() {
    let disk = Disk::new().await;
    let all = join_all((0..4).map(|_| disk.start())).await;
    for payments in &all {
        let paid = payments.pay("/charges", "k1", &card("tok_visa")).await;
        assert_eq!((paid.status, disk.effects().await), (201, 1));
    }
}
