//! What an operator does, from another process, about a payout whose process was killed.

use std::time::Duration;

use axum::{
    Json,
    http::{StatusCode, header},
};
use idem_runtime::{
    Audit, ErrorKind, Resolution, StoredResponse,
    state::{Reason, State},
};
use serde_json::{Value, json};

use super::{FOREVER, PAST_THE_LEASE, killed_in, refused};
use crate::support::{
    Backend,
    process::{ACME, Disk, card, slow},
};

fn by() -> Audit {
    Audit { who: "alice".to_owned(), why: "asked the bank".to_owned() }
}

/// What the payout would have answered, had it lived.
async fn paid_out(receipt: &Value) -> Resolution {
    let location = format!("/payouts/{}", receipt["id"].as_str().unwrap());
    let answer = (StatusCode::CREATED, [(header::LOCATION, location)], Json(receipt.clone()));
    Resolution::Complete(StoredResponse::http(answer).await.unwrap())
}

/// Also case 34: the record says whose it was and for how long.
#[tokio::test]
async fn scenario_43_an_operator_finds_what_was_lost_and_settles_it() {
    let payment = card("tok_visa");
    let (disk, payments) = killed_in(Backend::of_this_run().answering(), "/payouts", &payment).await; // effect and link are there
    disk.pass(PAST_THE_LEASE).await;
    let operator = disk.operator().await;
    assert!(operator.find("payout", "globex", "k1").await.unwrap().is_none(), "another tenant's key");
    let lost = operator.find("payout", "acme", "k1").await.unwrap().unwrap();
    assert_eq!((lost.state, lost.reason), (State::InDoubt, Some(Reason::LeaseExpired)));
    assert_eq!((lost.attempts, lost.lease_left), (1, Duration::ZERO));
    assert!(lost.age >= PAST_THE_LEASE);

    let effects = payments.listing("/payouts", ACME).await;
    let id = effects[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(lost.links, [("gateway".to_owned(), id.clone())], "the way to the gateway's books");
    let told = refused(&payments, "/payouts", "k1", &payment).await;
    assert_eq!(told.body["operation"], lost.id.to_string(), "what the customer can quote");

    let settled = operator.resolve(lost.id, lost.fence, paid_out(&effects[0]).await, by()).await.unwrap();
    assert_eq!(settled.state, State::Done);
    let again = operator.resolve(lost.id, lost.fence, Resolution::Void, by()).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);

    let retry = payments.pay("/payouts", "k1", &payment).await;
    assert_eq!((retry.status, retry.replayed), (201, true));
    assert_eq!((retry.location.unwrap(), retry.body), (format!("/payouts/{id}"), effects[0].to_string()));
    let other =
        refused(&payments, "/payouts", "k1", &json!({"amount": 1, "currency": "EUR", "card": "tok_visa"})).await;
    assert_eq!(other.status, 422, "what was settled is bound to its payload");
    assert_eq!(disk.effects().await, 1);
    assert_eq!(disk.count("select count(*) from idem_audit where who = 'alice' and from_state = 5").await, 1);
}

#[tokio::test]
async fn clause_33_a_killed_payout_is_released_only_after_quarantine() {
    let disk = Disk::new().await;
    let payments = disk.start().await;
    let payment = slow(FOREVER);
    let caller = payments.pay_meanwhile("/payouts", "k1", &payment);
    disk.reaches(1).await;
    payments.kill().await;
    assert!(caller.await.unwrap().is_none());
    disk.pass(PAST_THE_LEASE).await;

    let operator = disk.operator().await;
    let lost = operator.find("payout", "acme", "k1").await.unwrap().unwrap();
    let early = operator.resolve(lost.id, lost.fence, Resolution::Release, by()).await.unwrap_err();
    assert_eq!(early.kind(), ErrorKind::Conflict, "the other machine may only be frozen");
    disk.pass(Duration::from_secs(11 * 60)).await;
    operator.resolve(lost.id, lost.fence, Resolution::Release, by()).await.unwrap();

    let payments = disk.start().await;
    let retry = payments.pay("/payouts", "k1", &card("tok_visa")).await; // even with another payload
    assert_eq!((retry.status, retry.replayed, disk.effects().await), (201, false, 1));
}
