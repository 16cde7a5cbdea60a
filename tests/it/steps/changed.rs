//! Deploys between two runs of one operation.

use idem_runtime::state::{Reason, State as Stands};

use super::workshop::{Do, name, open};
use crate::support::{Shop, refusal};

const IN_DOUBT: (u16, &str) = (409, "idempotency-outcome-unknown");

/// The second run is another program's; it and every later retry are told that nobody knows.
async fn changed(shop: &Shop, runs: [Vec<Do>; 2]) {
    assert_eq!(shop.work("/work", "k", &runs).await.status, 500);
    for _ in 0..2 {
        let told = shop.post("/work", "k").json(&shop.plan(&runs)).send().await.unwrap();
        let (status, slug) = refusal(told).await;
        assert_eq!((status, &*slug), IN_DOUBT);
    }
    let shown = shop.worked("k").await;
    assert_eq!((shown.state, shown.reason), (Stands::InDoubt, Some(Reason::CodeChanged)));
}

#[tokio::test]
async fn clause_25_a_step_that_is_gone_or_renamed_is_a_doubt() {
    for renamed in [vec![Do::Run(name("b"))], vec![Do::Run(name("b")), Do::Run(name("a2"))]] {
        let first = vec![Do::Run(name("a")), Do::Run(name("b")), Do::Answer(500)];
        changed(&open().await, [first, renamed]).await;
    }
}

#[tokio::test]
async fn clause_25_a_step_that_became_another_kind_is_a_doubt() {
    let first = vec![Do::Run(name("a")), Do::Answer(500)];
    changed(&open().await, [first, vec![Do::Row(name("a"))]]).await;
}

#[tokio::test]
async fn clause_38_a_result_that_cannot_be_read_any_more_is_a_doubt() {
    let first = vec![Do::Run(name("a")), Do::Answer(500)];
    changed(&open().await, [first, vec![Do::Number(name("a"))]]).await;
}

#[tokio::test]
async fn case_96_a_step_that_is_given_something_else_is_a_doubt() {
    let shop = open().await;
    changed(
        &shop,
        [
            vec![Do::Given(name("quote"), 10), Do::Answer(500)],
            vec![Do::Given(name("quote"), 20), Do::Run(name("after"))],
        ],
    )
    .await;
    assert_eq!(shop.effects_by_step(), ["quote"], "no later step has run");
}

#[tokio::test]
async fn case_96_a_step_that_is_given_the_same_goes_on() {
    let shop = open().await;
    let runs = [vec![Do::Given(name("quote"), 10), Do::Answer(500)], vec![Do::Given(name("quote"), 10)]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 500);
    assert_eq!(shop.work("/work", "k", &runs).await.status, 201);
}

/// An error that names both places, and no effect of the second.
#[tokio::test]
async fn clause_25_a_name_is_one_step() {
    let shop = open().await;
    let runs = [vec![Do::Run(name("a")), Do::Run(name("a"))]];
    let told = shop.post("/work", "k").json(&shop.plan(&runs)).send().await.unwrap();
    assert_eq!(refusal(told).await, (500, "idempotency-step-failed".to_owned()));
    assert_eq!((shop.effects_by_step(), shop.worked("k").await.state), (vec![name("a")], Stands::Resumable));
}
