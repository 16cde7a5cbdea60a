//! Scenario 55: a process that is told to stop finishes what it has begun.

use std::time::Duration;

use rustix::process::Signal;

use super::{FOREVER, PAST_THE_LEASE, TRIES, assert_outcome_unknown, had_begun};
use crate::support::process::{ACME, Disk, slow};

const A_CHARGE: Duration = Duration::from_millis(600);

#[tokio::test]
async fn scenario_55_a_charge_in_progress_is_answered_and_stored() {
    for signal in [Signal::TERM, Signal::INT] {
        let disk = Disk::new().await;
        let mut payments = disk.start().await;
        let caller = payments.pay_meanwhile("/charges", "k1", &slow(A_CHARGE));
        disk.reaches(1).await;
        payments.signal(signal);
        let first = caller.await.unwrap().unwrap();
        assert_eq!((first.status, first.replayed), (201, false));
        assert!(payments.ended().await.success(), "{}", payments.log());
        assert_eq!(disk.count("select count(*) from idem_key where state = 2").await, 1, "stored before it ended");

        let payments = disk.start().await;
        let retry = payments.pay("/charges", "k1", &slow(A_CHARGE)).await;
        assert_eq!((retry.status, retry.replayed, &retry.body), (201, true, &first.body));
        assert_eq!(disk.effects().await, 1);
    }
}

/// Also case 34's second half: a deploy in the middle of a run leaves nothing to be settled.
#[tokio::test]
async fn scenario_55_a_charge_whose_client_has_left_is_finished_too() {
    for _ in 0..TRIES {
        let disk = Disk::new().await;
        let mut payments = disk.start().await;
        let caller = payments.pay_meanwhile("/charges", "k1", &slow(A_CHARGE));
        disk.reaches(1).await;
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        payments.signal(Signal::TERM);
        assert!(payments.ended().await.success(), "{}", payments.log());
        let in_progress = disk.count("select count(*) from idem_key where state in (1, 5)").await;
        assert_eq!(in_progress, 0, "it ended without its charge:\n{}", payments.log());
        if had_begun(&disk).await {
            let payments = disk.start().await;
            let retry = payments.pay("/charges", "k1", &slow(A_CHARGE)).await;
            assert_eq!((retry.status, retry.replayed, disk.effects().await), (201, true, 1));
            assert_eq!(payments.listing("/charges", ACME).await.len(), 1);
            return;
        }
    }
    panic!("no charge outlived its client");
}

/// A supervisor that loses patience: what it leaves is what `kill -9` always leaves.
#[tokio::test]
async fn case_34_killed_while_it_drains() {
    let disk = Disk::new().await;
    let payments = disk.start().await;
    let caller = payments.pay_meanwhile("/payouts", "k1", &slow(FOREVER));
    disk.reaches(1).await;
    payments.signal(Signal::TERM);
    payments.kill().await;
    assert!(caller.await.unwrap().is_none());
    disk.pass(PAST_THE_LEASE).await;
    let payments = disk.start().await;
    assert_outcome_unknown(&payments, "/payouts", "k1", &slow(FOREVER)).await;
    assert_eq!(disk.effects().await, 0);
}
