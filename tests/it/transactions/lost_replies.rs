//! A COMMIT whose reply is lost, clause 22.

use std::time::Duration;

use super::shop::{open, open_with};
use crate::support::{Fault, Verb, eventually, problem, seen};

#[tokio::test]
async fn scenario_54_a_lost_reply_to_a_commit_is_looked_up() {
    let shop = open().await;
    shop.store.tell(Verb::Commit, Fault::ReplyLost(1));
    let first = seen(shop.order("/orders", "k", &[shop.write("book")]).await).await;
    assert!(first.ran(), "{first:?}");
    let again = seen(shop.order("/orders", "k", &[shop.write("book")]).await).await;
    assert!(again.replayed && again.body == first.body);
    assert_eq!(shop.orders().await, 1);
}

#[tokio::test]
async fn scenario_54_a_commit_that_did_not_happen_may_be_sent_again() {
    let shop = open().await;
    shop.store.tell(Verb::Commit, Fault::Fails(1));
    let told = problem(shop.order("/orders", "k", &[shop.write("book")]).await).await;
    assert_eq!((told.status, told.slug.as_str()), (503, "idempotency-store-unavailable"));
    assert_eq!((&told.body["retry"], &told.body["safe_new_key"]), (&"same-key".into(), &false.into()));
    assert!(seen(shop.order("/orders", "k", &[shop.write("book")]).await).await.ran());
    assert_eq!(shop.orders().await, 1);
}

/// It happened, and the re-read finds that before its reply comes.
#[tokio::test]
async fn scenario_54_a_commit_whose_reply_takes_too_long_is_looked_up() {
    let shop = open_with(|builder| builder.store_timeout(Duration::from_millis(500))).await;
    shop.store.tell(Verb::Commit, Fault::ReplySlow(Duration::from_secs(3)));
    let first = seen(shop.order("/orders", "k", &[shop.write("book")]).await).await;
    assert!(first.ran(), "{first:?}");
    let again = seen(shop.order("/orders", "k", &[shop.write("book")]).await).await;
    assert!(again.replayed && again.body == first.body);
    assert_eq!(shop.orders().await, 1);
}

/// The re-read finds nothing yet, and nothing is undone by that.
#[tokio::test]
async fn scenario_54_a_commit_that_is_under_way_at_the_re_read_is_decided_by_the_retry() {
    let shop = open_with(|builder| builder.store_timeout(Duration::from_millis(500))).await;
    shop.store.tell(Verb::Commit, Fault::Slow(Duration::from_millis(1500)));
    let told = problem(shop.order("/orders", "k", &[shop.write("book")]).await).await;
    assert_eq!((told.status, told.slug.as_str()), (503, "idempotency-store-unavailable"));
    assert_eq!((&told.body["retry"], &told.body["safe_new_key"]), (&"same-key".into(), &false.into()));
    assert_eq!(shop.orders().await, 0, "it is still under way");
    shop.store.heal();
    let replayed = async || seen(shop.order("/orders", "k", &[shop.write("book")]).await).await.replayed;
    eventually(replayed).await;
    assert_eq!(shop.orders().await, 1);
}

#[tokio::test]
async fn scenario_54_a_commit_that_cannot_be_looked_up_is_decided_by_the_retry() {
    let shop = open().await;
    shop.store.tell(Verb::Commit, Fault::ReplyLost(1));
    shop.store.tell(Verb::Find, Fault::Down);
    let told = problem(shop.order("/orders", "k", &[shop.write("book")]).await).await;
    assert_eq!((told.status, told.slug.as_str()), (503, "idempotency-store-unavailable"));
    assert_eq!(told.body["state"], "unknown");
    shop.store.heal();
    assert!(seen(shop.order("/orders", "k", &[shop.write("book")]).await).await.replayed);
    assert_eq!(shop.orders().await, 1);
}
