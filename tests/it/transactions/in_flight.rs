//! Duplicates while a body runs, clients that leave, and shutdown.

use std::{sync::Arc, time::Duration};

use serde_json::json;

use super::shop::{open, open_with, router};
use crate::support::{Backend, Fault, Shop, Verb, eventually, problem, refusal, seen};

#[tokio::test]
async fn clause_04_a_duplicate_in_this_process_is_refused_without_a_claim() {
    let shop = open().await;
    let held = shop.probe.hold().await;
    let steps = [json!("gate"), shop.write("book")];
    let (first, ()) = tokio::join!(shop.order("/orders", "k", &steps), async {
        eventually(async || shop.probe.started() == 1).await;
        let asked = shop.store.calls(Verb::Begin);
        let told = problem(shop.order("/orders", "k", &steps).await).await;
        assert_eq!((told.status, told.slug.as_str()), (409, "idempotency-in-progress"));
        assert_eq!(told.retry_after, Some(1));
        let (status, slug) = refusal(shop.order("/orders", "k", &[]).await).await;
        assert_eq!((status, slug.as_str()), (422, "idempotency-key-reused"));
        assert_eq!(shop.store.calls(Verb::Begin), asked);
        drop(held);
    });
    assert!(seen(first).await.ran());
    assert_eq!(shop.orders().await, 1);
}

#[tokio::test]
async fn clause_04_a_duplicate_in_another_process_never_runs_beside_the_first() {
    let shop = open().await;
    let other = Shop::open_on(Arc::clone(&shop.place), router(shop.place.backend()), |builder| {
        builder.store_timeout(Duration::from_secs(1))
    })
    .await;
    let held = shop.probe.hold().await;
    let steps = [json!("gate"), shop.write("book")];
    let (first, ()) = tokio::join!(shop.order("/orders", "k", &steps), async {
        eventually(async || shop.probe.started() == 1).await;
        let told = problem(other.order("/orders", "k", &steps).await).await;
        match shop.place.backend() {
            Backend::Sqlite => assert_eq!((told.status, told.slug.as_str()), (503, "idempotency-store-unavailable")),
            _ => assert_eq!((told.status, told.slug.as_str()), (409, "idempotency-in-progress")),
        }
        drop(held);
    });
    let first = seen(first).await;
    assert!(first.ran());
    let again = seen(other.order("/orders", "k", &steps).await).await;
    assert!(again.replayed && again.body == first.body, "{again:?}");
    assert_eq!((shop.orders().await, other.probe.started()), (1, 0));
}

/// A call that has no claim yet knows nothing of another process' answer.
#[tokio::test]
async fn clause_02_a_call_that_waits_for_its_claim_hides_no_answer() {
    let shop = open().await;
    let other = Shop::open_on(Arc::clone(&shop.place), router(shop.place.backend()), |builder| builder).await;
    other.store.tell(Verb::Begin, Fault::Slow(Duration::from_secs(2)));
    let steps = [shop.write("book")];
    let (waits, answer) = tokio::join!(other.order("/orders", "k", &steps), async {
        eventually(async || other.store.calls(Verb::Begin) == 1).await;
        // Nor does it bind its payload.
        assert_eq!(refusal(other.order("/orders", "k", &[]).await).await, (409, "idempotency-in-progress".to_owned()));
        let first = seen(shop.order("/orders", "k", &steps).await).await;
        let retry = seen(other.order("/orders", "k", &steps).await).await;
        assert!(first.ran() && retry.replayed && retry.body == first.body, "{retry:?}");
        assert_eq!(refusal(other.order("/orders", "k", &[]).await).await.1, "idempotency-key-reused");
        first.body
    });
    assert_eq!(seen(waits).await.body, answer);
    assert_eq!(shop.orders().await, 1);
}

#[tokio::test]
async fn scenario_66_a_duplicate_waits_for_the_commit() {
    let shop = open().await;
    let held = shop.probe.hold().await;
    let steps = [json!("gate"), shop.write("book")];
    let (first, second, ()) =
        tokio::join!(shop.order("/waiting", "k", &steps), shop.order("/waiting", "k", &steps), async {
            eventually(async || shop.probe.started() == 1).await;
            drop(held);
        });
    let both = [seen(first).await, seen(second).await];
    assert_eq!(both.iter().filter(|seen| seen.replayed).count(), 1, "{both:?}");
    assert_eq!(both[0].body, both[1].body);
    assert_eq!(shop.orders().await, 1);
}

#[tokio::test]
async fn scenario_10_many_equal_requests_are_one_order() {
    let shop = open().await;
    let steps = [shop.write("book")];
    let all = futures_util::future::join_all((0..50).map(|_| shop.order("/orders", "k", &steps))).await;
    assert!(all.iter().any(|answer| answer.status() == 201));
    assert!(all.iter().all(|answer| [201, 409].contains(&answer.status().as_u16())));
    assert_eq!(shop.orders().await, 1);
}

#[tokio::test]
async fn case_03_clients_that_leave_at_any_moment_leave_the_pool_sound() {
    let shop = open().await;
    for n in 0..40 {
        let key = format!("left-{n}");
        let steps = [shop.write(&key), json!({ "sleep": 5 }), shop.write(&key)];
        let request = shop.order("/orders", &key, &steps);
        let _ = tokio::time::timeout(Duration::from_micros(500 * n), request).await;
    }
    for n in 0..40 {
        let key = format!("left-{n}");
        let steps = [shop.write(&key), json!({ "sleep": 5 }), shop.write(&key)];
        eventually(async || shop.order("/orders", &key, &steps).await.status() == 201).await;
    }
    let twice = format!(
        "select count(*) from (select sku from {} group by sku having count(*) = 2) as o",
        shop.place.table("orders")
    );
    assert_eq!((shop.count(&twice).await, shop.orders().await), (40, 80));
}

#[tokio::test]
async fn clause_23_shutdown_undoes_what_still_runs() {
    let shop = open().await;
    let held = shop.probe.hold().await;
    let steps = [shop.write("late"), json!("gate")];
    let (first, ()) = tokio::join!(shop.order("/orders", "k", &steps), async {
        eventually(async || shop.probe.started() == 1).await;
        let drained = shop.runtime.shutdown(Duration::from_millis(100)).await;
        assert_eq!((drained.completed, drained.released, drained.in_doubt), (false, 1, 0));
    });
    let told = problem(first).await;
    assert_eq!((told.status, told.slug.as_str()), (503, "idempotency-draining"));
    assert_eq!(told.body["state"], "released");
    drop(held);
    assert_eq!(shop.orders().await, 0);
}

/// Nobody can say of it that it is undone.
#[tokio::test]
async fn clause_23_a_commit_that_is_under_way_at_shutdown_is_not_counted_as_undone() {
    let shop = open().await;
    shop.store.tell(Verb::Commit, Fault::Slow(Duration::from_secs(1)));
    let steps = [shop.write("book")];
    let (first, ()) = tokio::join!(shop.order("/orders", "k", &steps), async {
        eventually(async || shop.store.calls(Verb::Commit) == 1).await;
        let drained = shop.runtime.shutdown(Duration::from_millis(50)).await;
        assert_eq!((drained.completed, drained.released, drained.in_doubt), (false, 0, 0));
    });
    assert!(seen(first).await.ran());
    assert_eq!((shop.orders().await, shop.state().await), (1, 2));
}

/// Given up by its caller, it would take the connection and the record's lock before those who are still waited for.
#[tokio::test]
async fn clause_23_a_begin_that_is_waited_for_no_more_is_given_up() {
    let shop = open_with(|builder| builder.store_timeout(Duration::from_millis(300))).await;
    shop.store.tell(Verb::Begin, Fault::Slow(Duration::from_secs(600)));
    for path in ["/orders", "/optional"] {
        let told = problem(shop.order(path, "k", &[shop.write("late")]).await).await;
        assert_eq!((told.status, told.slug.as_str()), (503, "idempotency-store-unavailable"));
    }
    assert!(shop.runtime.shutdown(Duration::from_secs(15)).await.completed, "it goes on");
    assert_eq!(shop.orders().await, 0);
}
