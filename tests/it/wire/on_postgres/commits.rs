//! Scenario 54: the COMMIT of a body's transaction, or its reply, is lost.

use super::{Wire, on_both, unavailable};
use crate::support::{Backend, Cut, eventually, seen};

async fn reply_is_lost(backend: Backend) {
    let wire = Wire::open(backend, 1).await;
    wire.proxy.cut_next(Cut::After, Some(b"COMMIT"));
    let first = seen(wire.order("k").await).await;
    assert!(first.ran(), "{first:?}");
    assert_eq!(wire.proxy.counts().after, 1);
    let again = seen(wire.order("k").await).await;
    assert!(again.replayed && again.body == first.body, "{again:?}");
    assert_eq!((wire.shop.orders().await, wire.shop.probe.started()), (1, 1));
    wire.is_sound().await;
}

async fn does_not_arrive(backend: Backend) {
    let wire = Wire::open(backend, 1).await;
    wire.proxy.cut_next(Cut::Before, Some(b"COMMIT"));
    unavailable(wire.order("k").await).await;
    assert_eq!((wire.proxy.counts().before, wire.shop.orders().await, wire.shop.records().await), (1, 0, 0));
    let second = wire.insist(async || wire.order("k").await).await;
    assert!(second.ran(), "{second:?}");
    let again = seen(wire.order("k").await).await;
    assert!(again.replayed && again.body == second.body, "{again:?}");
    assert_eq!((wire.shop.orders().await, wire.shop.probe.started()), (1, 2));
    wire.is_sound().await;
}

on_both! {
    scenario_54_a_commit_whose_reply_is_lost_is_looked_up,
    scenario_54_a_commit_whose_reply_is_lost_before_pgbouncer_is_looked_up:
        reply_is_lost();

    scenario_54_a_commit_that_does_not_arrive_has_not_happened_and_a_retry_runs,
    scenario_54_a_commit_that_does_not_arrive_at_pgbouncer_has_not_happened_and_a_retry_runs:
        does_not_arrive();
}

/// And nobody can be asked: all other connections are cut, and new ones refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_54_a_commit_whose_reply_is_lost_with_the_server_is_decided_by_the_retry() {
    let wire = Wire::open(Backend::Postgres, 1).await;
    let held = wire.shop.probe.hold().await;
    let (told, ()) = tokio::join!(async { unavailable(wire.order("k").await).await }, async {
        eventually(async || wire.shop.probe.started() == 1).await;
        wire.proxy.refuse(true);
        let idle = "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity where state = 'idle'";
        wire.shop.count(&format!("{idle} and application_name = '{}'", wire.name)).await;
        wire.proxy.cut_next(Cut::After, Some(b"COMMIT"));
        drop(held);
    });
    assert_eq!(told.body["state"], "unknown");
    assert_eq!((wire.proxy.counts().after, wire.shop.orders().await), (1, 1));
    wire.proxy.refuse(false);
    let again = wire.insist(async || wire.order("k").await).await;
    assert!(again.replayed && again.status == 201, "{again:?}");
    assert_eq!((wire.shop.orders().await, wire.shop.probe.started()), (1, 1));
    wire.is_sound().await;
}
