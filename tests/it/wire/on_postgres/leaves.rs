//! Case 03: a caller who leaves while BEGIN, claim, finish or COMMIT are on their way. The wire is so slow that the moments
//! fall before, within and after each.

use std::time::Duration;

use super::{Wire, on_both};
use crate::support::Backend;

const EACH_WAY: Duration = Duration::from_millis(2);

/// About twice as long as a request takes, on a machine that has nothing else to do; as many times longer as it is slow.
fn moments(slow: u64) -> impl Iterator<Item = u64> {
    (0..80).step_by(4).map(move |ms| ms * slow)
}

/// Leaves at each moment, then tries again, until callers have left both before their body ran and since. Returns how many
/// keys that took; each of them has run by now.
async fn leave(wire: &Wire, send: impl AsyncFn(&str) -> reqwest::Response) -> i64 {
    let (mut keys, mut before, mut since) = (0, 0, 0);
    for slow in 1..=5 {
        let key = |ms: u64| format!("left{ms}-{slow}");
        let mut left = Vec::new();
        for ms in moments(slow) {
            left.push(tokio::time::timeout(Duration::from_millis(ms), send(&key(ms))).await.is_err());
            let fresh = send(&format!("fresh{ms}-{slow}")).await;
            assert_eq!(fresh.status(), 201, "after {ms} ms");
            keys += 2;
        }
        for (ms, left) in moments(slow).zip(left) {
            let retry = wire.insist(async || send(&key(ms)).await).await;
            assert_eq!(retry.status, 201, "{ms}: {retry:?}");
            before += u32::from(left && retry.ran());
            since += u32::from(left && !retry.ran());
        }
        if before > 0 && since > 0 {
            return keys;
        }
    }
    panic!("{before} left before their body ran, {since} since: no moment fell within a request");
}

async fn leave_transactions(backend: Backend) {
    for connections in [1, 2] {
        let wire = Wire::open(backend, connections).await;
        wire.proxy.slow(EACH_WAY);
        let keys = leave(&wire, async |key| wire.order(key).await).await;
        assert_eq!((wire.shop.orders().await, wire.shop.records().await), (keys, keys), "one each");
        wire.is_sound().await;
    }
}

async fn leave_leases(backend: Backend) {
    for connections in [1, 2] {
        let wire = Wire::open(backend, connections).await;
        wire.proxy.slow(EACH_WAY);
        let keys = leave(&wire, async |key| wire.charge(key).await).await;
        let effects = i64::try_from(wire.shop.probe.effects()).unwrap();
        assert_eq!((effects, wire.shop.records().await), (keys, keys), "one each");
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
