//! Stores that fail while steps run, clauses 21 and 22.

use std::time::Duration;

use idem_runtime::{Error, ErrorKind, Steps, idempotent, state::State as Stands};
use serde::{Deserialize, Serialize};

use super::workshop::{Do, name, open, open_with};
use crate::support::{Fault, Shop, Verb, refusal};

#[tokio::test]
async fn clause_21_a_lost_reply_to_a_begin_or_an_end_is_asked_for_again() {
    let shop = open().await;
    for verb in [Verb::StartSteps, Verb::EndSteps] {
        shop.store.tell(verb, Fault::ReplyLost(1));
    }
    let done = shop.work("/work", "k", &[vec![Do::Run(name("a")), Do::Once(name("fax"))]]).await;
    assert_eq!((done.status, &*done.body), (201, "a done; fax done"));
    assert_eq!(shop.effects_by_step(), ["a", "fax"]);
}

#[tokio::test]
async fn clause_21_a_step_that_cannot_be_noted_does_not_run() {
    let shop = open().await;
    shop.store.tell(Verb::StartSteps, Fault::Down);
    let told = shop.post("/work", "k").json(&shop.plan(&[vec![Do::Once(name("fax"))]])).send().await.unwrap();
    assert_eq!(refusal(told).await, (503, "idempotency-store-unavailable".to_owned()));
    assert_eq!(shop.probe.effects(), 0);
}

/// What has taken effect is worth more than one try.
#[tokio::test]
async fn clause_22_the_end_of_a_step_is_stored_as_soon_as_the_store_is_back() {
    let shop = open().await;
    shop.store.tell(Verb::EndSteps, Fault::Fails(4));
    let done = shop.work("/work", "k", &[vec![Do::Once(name("fax"))]]).await;
    assert_eq!((done.status, shop.probe.effects()), (201, 1));
}

/// Recorded steps must be known before the body runs.
#[tokio::test]
async fn clause_21_nothing_runs_where_earlier_steps_cannot_be_read() {
    let shop = open().await;
    let runs = [vec![Do::Run(name("a")), Do::Answer(500)], vec![Do::Run(name("a")), Do::Run(name("b"))]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 500);
    shop.store.tell(Verb::Steps, Fault::Down);
    let told = shop.post("/work", "k").json(&shop.plan(&runs)).send().await.unwrap();
    assert_eq!(refusal(told).await, (503, "idempotency-store-unavailable".to_owned()));
    shop.store.heal();
    let last = async || shop.work("/work", "k", &runs).await;
    crate::support::eventually(async || last().await.status == 201).await;
    assert_eq!(shop.effects_by_step(), ["a", "b"]);
}

/// What a worker has at hand.
struct Desk {
    shop: Shop,
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Measured {
    value: f64,
    #[serde(skip)]
    note: String,
}

#[idempotent(function, runtime = desk.shop.runtime, scope = global, op = "steps.measure", key = key)]
async fn measure(desk: &Desk, key: &str, value: f64, length: usize, #[idem] steps: Steps) -> Result<String, Error> {
    let measured: Measured =
        steps.run("measure", async |_| Ok::<_, Error>(Measured { value, note: "x".repeat(length) })).await?;
    let text: String = steps.run("text", async |_| Ok::<_, Error>("x".repeat(length))).await?;
    desk.shop.probe.effect("after");
    Ok(format!("{}{}{}", measured.value, measured.note, text.len()))
}

/// Case 84: the first run sees what every later one reads; and what cannot be stored is an error before the next step.
#[tokio::test]
async fn case_84_a_steps_result_is_what_is_read_back_or_an_error() {
    let desk = Desk { shop: open_with(|builder| builder.max_response(64)).await };
    assert_eq!(measure(&desk, "fits", 0.1 + 0.2, 3,).await.unwrap(), "0.300000000000000043");
    for (key, value, length) in [("NaN", f64::NAN, 3), ("long", 1.0, 100)] {
        let told = measure(&desk, key, value, length).await.unwrap_err();
        assert_eq!(told.kind(), ErrorKind::Step, "{told}");
        assert!(told.to_string().contains("cannot be stored"), "{told}");
    }
    assert_eq!(desk.shop.probe.effects(), 1);
}

#[tokio::test]
async fn clause_16a_a_function_whose_caller_leaves_is_continued() {
    let desk = Desk { shop: open().await };
    desk.shop.store.tell(Verb::EndSteps, Fault::Slow(Duration::from_millis(700)));
    let left = tokio::time::timeout(Duration::from_millis(200), measure(&desk, "left", 1.0, 1)).await;
    assert!(left.is_err());
    desk.shop.store.heal();
    let find = async || desk.shop.runtime.find("steps.measure", idem_runtime::Global, "left").await.unwrap().unwrap();
    crate::support::eventually(async || find().await.state == Stands::Resumable).await;
    assert_eq!(measure(&desk, "left", 1.0, 1).await.unwrap(), "11");
}
