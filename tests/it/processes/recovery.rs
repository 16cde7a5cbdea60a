//! Charges whose outcome is unknown settle themselves: the gateway is asked.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::{PAST_THE_LEASE, killed_in, refused};
use crate::support::{
    Backend, Seen, eventually,
    process::{ACME, Disk, Payments, card, slow},
};

/// Longer than a lease and the grace after it.
const PAST_THE_GRACE: Duration = Duration::from_secs(8);

/// The replay, when it is there.
async fn settled(payments: &Payments, payment: &Value) -> Seen {
    eventually(async || payments.pay("/charges", "k1", payment).await.status == 201).await;
    let replay = payments.pay("/charges", "k1", payment).await;
    assert!(replay.replayed);
    replay
}

fn receipt(answer: &Seen) -> Value {
    serde_json::from_str(&answer.body).unwrap()
}

#[tokio::test]
async fn scenario_60_a_charge_that_got_no_reply_ends_as_a_replayed_201_by_itself() {
    let disk = Disk::new().await;
    let payments = disk.start().await;
    let first = payments.pay("/charges", "k1", &card("tok_fail_after_charge")).await;
    assert_eq!(first.status, 502);
    let replay = settled(&payments, &card("tok_fail_after_charge")).await;
    let effects = payments.listing("/charges", ACME).await;
    assert_eq!(effects, [receipt(&replay)], "as if the reply had come");
    let id = effects[0]["id"].as_str().unwrap();
    assert_eq!(replay.location.as_deref(), Some(format!("/charges/{id}").as_str()));
    let operator = disk.operator().await;
    let found = operator.find_by_link("gateway", id).await.unwrap();
    assert_eq!((found.len(), found[0].op.as_str(), found[0].attempts), (1, "charge", 1));
}

#[tokio::test]
async fn scenario_62_of_two_processes_one_asks_the_gateway_once() {
    let disk = Disk::new().await;
    let both = [disk.start().await, disk.start().await];
    assert_eq!(both[0].pay("/charges", "k1", &card("tok_fail_after_charge")).await.status, 502);
    for payments in &both {
        settled(payments, &card("tok_fail_after_charge")).await;
    }
    assert_eq!(disk.count("select tries from idem_key").await, 1);
    assert_eq!(disk.count("select count(*) from idem_audit where who = 'recovery hook'").await, 1);
    assert_eq!(disk.effects().await, 1);
}

/// The effect is there, its process is gone: the next one finds it in the gateway's books.
#[tokio::test]
async fn scenario_60_what_a_killed_process_charged_is_found_by_another() {
    let (disk, payments) = killed_in(Backend::of_this_run().answering(), "/charges", &card("tok_visa")).await;
    let told = refused(&payments, "/charges", "k1", &card("tok_visa")).await;
    assert_eq!(told.status, 409);
    disk.pass(PAST_THE_GRACE).await;
    let replay = settled(&payments, &card("tok_visa")).await;
    assert_eq!(payments.listing("/charges", ACME).await, [receipt(&replay)]);
}

/// A process that is only frozen may still charge, so "no such charge" frees nothing; and when it is taken over and wakes,
/// everybody is told the same.
#[tokio::test]
async fn scenario_61_a_frozen_charge_is_not_released_before_its_quarantine() {
    let disk = Disk::new().await;
    let (payments, other) = (disk.start().await, disk.start().await);
    let payment = slow(Duration::from_secs(3));
    let caller = payments.pay_meanwhile("/charges", "k1", &payment);
    disk.reaches(1).await;
    disk.freeze(&payments).await;
    disk.pass(PAST_THE_LEASE).await;
    disk.pass(PAST_THE_GRACE).await;
    eventually(async || disk.count("select tries from idem_key").await > 0).await;
    let told = refused(&other, "/charges", "k1", &payment).await;
    assert_eq!((told.status, told.slug.as_str()), (409, "idempotency-outcome-unknown"));
    assert_eq!((told.body["retry"].as_str(), told.retry_after), (Some("same-key"), Some(5)));

    payments.signal(Signal::CONT); // it charges now, too late to say so
    let late = caller.await.unwrap().unwrap();
    assert_eq!(late.status, 409, "its own answer is not the one that counts: {late:?}");
    assert_eq!(disk.effects().await, 1);
    disk.pass(Duration::from_secs(60)).await;
    let replay = settled(&other, &payment).await;
    assert_eq!(other.listing("/charges", ACME).await, [receipt(&replay)]);
}
