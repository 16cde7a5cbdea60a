//! A process that is frozen for longer than its lease, and thaws.

use std::time::Duration;

use axum::{Json, http::StatusCode};
use idem_runtime::{
    Audit, Resolution, StoredResponse,
    state::{Reason, State},
};
use rustix::process::Signal;
use serde_json::json;

use super::{PAST_THE_LEASE, assert_outcome_unknown, refused};
use crate::support::{
    eventually,
    process::{Disk, slow},
};

/// Time enough to freeze it before its effect.
const A_WHILE: Duration = Duration::from_secs(2);

#[tokio::test]
async fn scenario_47_a_late_completion_counts_if_nobody_took_over() {
    // Whether or not somebody wrote down that the lease has ended: then even the thawed run's renewals fail.
    for written_down in [false, true] {
        let disk = Disk::new().await;
        let (payments, other) = (disk.start().await, disk.start().await);
        let payment = slow(A_WHILE);
        let caller = payments.pay_meanwhile("/payouts", "k1", &payment);
        disk.reaches(1).await;
        disk.freeze(&payments).await;
        disk.pass(PAST_THE_LEASE).await;
        if written_down {
            disk.sql("update idem_key set state = 5, reason = 1").await;
        }
        assert_outcome_unknown(&other, "/payouts", "k1", &payment).await;
        assert_eq!(disk.effects().await, 0);

        payments.signal(Signal::CONT);
        let late = caller.await.unwrap().unwrap();
        assert_eq!((late.status, late.replayed), (201, false));
        for process in [&other, &payments] {
            let retry = process.pay("/payouts", "k1", &payment).await;
            assert_eq!((retry.status, retry.replayed, &retry.body), (201, true, &late.body));
        }
        assert_eq!((disk.effects().await, disk.count("select attempts from idem_key").await), (1, 1));
    }
}

/// The thawed run has its effect; but what it wants to answer does not count any more.
#[tokio::test]
async fn clause_19_a_thawed_run_answers_what_the_operator_settled() {
    let disk = Disk::new().await;
    let (payments, other) = (disk.start().await, disk.start().await);
    let payment = slow(A_WHILE);
    let caller = payments.pay_meanwhile("/payouts", "k1", &payment);
    disk.reaches(1).await;
    disk.freeze(&payments).await;
    let operator = disk.operator().await;
    let by = || Audit { who: "bob".to_owned(), why: "the process is gone".to_owned() };
    let answer = || StoredResponse::http((StatusCode::ACCEPTED, Json(json!({"settled": "by hand"}))));

    disk.prolong_leases(PAST_THE_LEASE).await;
    let running = operator.find("payout", "acme", "k1").await.unwrap().unwrap();
    assert_eq!(running.state, State::InFlight);
    let settled = Resolution::Complete(answer().await.unwrap());
    operator.resolve(running.id, running.fence, settled, by()).await.expect_err("it may still be running");

    disk.pass(2 * PAST_THE_LEASE).await;
    let lost = operator.find("payout", "acme", "k1").await.unwrap().unwrap();
    assert_eq!((lost.state, lost.reason), (State::InDoubt, Some(Reason::LeaseExpired)));
    let settled = Resolution::Complete(answer().await.unwrap());
    operator.resolve(lost.id, lost.fence, settled, by()).await.unwrap();
    let retry = other.pay("/payouts", "k1", &payment).await;
    assert_eq!((retry.status, retry.replayed, retry.body.as_str()), (202, true, r#"{"settled":"by hand"}"#));

    payments.signal(Signal::CONT);
    assert_eq!(caller.await.unwrap().unwrap(), retry, "two callers never get two answers");
    eventually(async || disk.effects().await == 1).await;
    assert_eq!(payments.pay("/payouts", "k1", &payment).await, retry);
    assert_eq!(disk.effects().await, 1);
}

/// Nobody may run beside a frozen process, however long it is frozen.
#[tokio::test]
async fn case_05_a_frozen_run_is_never_taken_over() {
    let disk = Disk::new().await;
    let (payments, other) = (disk.start().await, disk.start().await);
    let payment = slow(A_WHILE);
    let caller = payments.pay_meanwhile("/payouts", "k1", &payment);
    disk.reaches(1).await;
    disk.freeze(&payments).await;
    disk.pass(Duration::from_secs(40 * 24 * 3600)).await; // far beyond the ttl
    for _ in 0..2 {
        let told = refused(&other, "/payouts", "k1", &payment).await;
        assert_eq!((told.status, told.slug.as_str()), (409, "idempotency-outcome-unknown"));
    }
    payments.signal(Signal::KILL);
    assert!(caller.await.unwrap().is_none());
    assert_eq!((disk.effects().await, disk.count("select attempts from idem_key").await), (0, 1));
}
