//! Case 03: a caller who leaves while BEGIN, claim, finish or COMMIT are on their way. The wire is so slow that the moments
//! fall before, within and after each.

use std::time::Duration;

use serde_json::json;

use super::{Wire, on_both};
use crate::support::{Backend, eventually};

const EACH_WAY: Duration = Duration::from_millis(2);

/// About twice as long as a request takes.
fn moments() -> impl Iterator<Item = u64> {
    (0..80).step_by(4)
}

fn all() -> i64 {
    i64::try_from(moments().count()).unwrap()
}

async fn leave_transactions(backend: Backend) {
    for connections in [1, 2] {
        let wire = Wire::open(backend, connections).await;
        wire.proxy.slow(EACH_WAY);
        let key = |ms: u64| format!("left{ms}");
        for ms in moments() {
            let _ = tokio::time::timeout(Duration::from_millis(ms), wire.order(&key(ms))).await;
            let fresh = wire.order(&format!("fresh{ms}")).await;
            assert_eq!(fresh.status(), 201, "after {ms} ms");
        }
        for ms in moments() {
            let retry = wire.insist(async || wire.order(&key(ms)).await).await;
            assert_eq!(retry.status, 201, "{ms}: {retry:?}");
        }
        assert_eq!((wire.shop.orders().await, wire.shop.records().await), (all() * 2, all() * 2), "one each");
        wire.is_sound().await;
    }
}

async fn leave_leases(backend: Backend) {
    for connections in [1, 2] {
        let wire = Wire::open(backend, connections).await;
        wire.proxy.slow(EACH_WAY);
        let post = |key: String| wire.shop.post("/charge", &key).json(&json!({})).send();
        for ms in moments() {
            let _ = tokio::time::timeout(Duration::from_millis(ms), post(format!("left{ms}"))).await;
            let fresh = post(format!("fresh{ms}")).await.unwrap();
            assert_eq!(fresh.status(), 201, "after {ms} ms");
        }
        let undecided = "select count(*) from idem_key where state not in (2, 4)";
        eventually(async || wire.shop.count(undecided).await == 0).await;
        for ms in moments() {
            let retry = wire.insist(async || post(format!("left{ms}")).await.unwrap()).await;
            assert_eq!(retry.status, 201, "{ms}: {retry:?}");
        }
        let effects = i64::try_from(wire.shop.probe.effects()).unwrap();
        assert_eq!((effects, wire.shop.records().await), (all() * 2, all() * 2), "one each");
        wire.is_sound().await;
    }
}

on_both! {
    case_03_callers_who_leave_a_transaction_poison_no_pool,
    case_03_callers_who_leave_a_transaction_before_pgbouncer_poison_no_pool:
        leave_transactions();

    case_03_callers_who_leave_a_claim_or_a_finish_poison_no_pool,
    case_03_callers_who_leave_a_claim_or_a_finish_before_pgbouncer_poison_no_pool:
        leave_leases();
}
