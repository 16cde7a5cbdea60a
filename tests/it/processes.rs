//! Real processes of the example `payments`, over one database: raced, killed, frozen, stopped.

mod api;
mod crashes;
mod freezes;
mod frozen_orders;
mod hang_ups;
mod jobs;
mod metrics;
mod on_postgres;
mod operator;
mod orders;
mod races;
mod random_kills;
mod recovery;
mod stops;

use std::time::Duration;

use serde_json::Value;

use crate::support::{
    Problem, Seen, eventually, problem,
    process::{Disk, Payments},
};

/// Longer than any lease here.
const PAST_THE_LEASE: Duration = Duration::from_secs(3);
/// Longer than any test.
const FOREVER: Duration = Duration::from_secs(60);

/// A retry that is refused.
async fn refused(payments: &Payments, path: &str, key: &str, payment: &Value) -> Problem {
    problem(payments.post(path, key, payment).send().await.unwrap()).await
}

/// A retry is told that nobody knows, and what to do about it.
async fn assert_outcome_unknown(payments: &Payments, path: &str, key: &str, payment: &Value) {
    let told = refused(payments, path, key, payment).await;
    assert_eq!((told.status, told.slug.as_str()), (409, "idempotency-outcome-unknown"));
    assert_eq!((&told.body["safe_new_key"], &told.body["retry"]), (&Value::Bool(false), &Value::from("operator")));
    assert_eq!(told.retry_after, None, "nothing changes by waiting");
}

/// The answer, once nobody else is at it any more: a server needs a moment to see that a client was killed.
async fn settled(payments: &Payments, path: &str, key: &str, payment: &Value) -> Seen {
    let settled = async || payments.pay(path, key, payment).await.status != 409;
    let last = payments.pay(path, key, payment).await;
    if last.status != 409 {
        return last;
    }
    eventually(settled).await;
    payments.pay(path, key, payment).await
}

/// The disk after its process was killed while held in such a write (as a trigger names it), and a process started afterwards.
async fn killed_in(write: &str, path: &str, payment: &Value) -> (Disk, Payments) {
    let disk = Disk::new().await;
    let payments = disk.start().await;
    disk.hold(write).await;
    let caller = payments.pay_meanwhile(path, "k1", payment);
    disk.somebody_is_held().await;
    payments.kill().await;
    assert!(caller.await.unwrap().is_none(), "nobody was answered");
    disk.hold_no_more().await;
    let restarted = disk.start().await;
    (disk, restarted)
}

/// Whether a charge had begun before its client left, and then is done. If not, nothing has happened and its key is
/// free: the client was too early, or the machine too slow, and the test tries again.
async fn had_begun(disk: &Disk) -> bool {
    eventually(async || disk.count("select count(*) from idem_key where state = 1").await == 0).await;
    let done = disk.count("select count(*) from idem_key where state = 2").await;
    assert_eq!(done, disk.effects().await);
    done == 1
}

/// How often a test tries to meet a moment before it gives up.
const TRIES: u32 = 20;
