//! Errors of idem that a receiver passes on: what its sender is told of them, and what becomes of the event.

use axum::{Router, extract::State, http::StatusCode, routing::post};
use idem_runtime::{
    Audit, Error, ErrorKind, Final, Resolution, Runtime, Steps, idempotent,
    state::{Reason, State as Stands},
    webhook::{Stripe, Verified},
};
use serde_json::json;

use super::event;
use crate::support::{App, Probe, Shop, eventually, problem};

/// One thing that must not happen twice.
#[idempotent(scope = global, op = "webhook.faxes", key = event.id, webhook)]
async fn faxes(#[idem] steps: Steps, State(probe): State<Probe>, event: Verified<Stripe>) -> Result<StatusCode, Error> {
    let fax = async |_| {
        probe.effect(event.id.to_string());
        probe.pass().await;
        Ok::<_, Error>(())
    };
    steps.once("fax", fax).await?;
    Ok(StatusCode::OK)
}

#[idempotent(function, scope = global, op = "webhook.books", key = id, runtime = idem)]
async fn book(idem: &Runtime, probe: &Probe, id: &str) -> Result<(), Error> {
    probe.pass().await;
    idem.find("webhook.books", idem_runtime::Global, "").await.map(drop) // an empty key: it fails
}

/// Leaves the work to a function; and would keep what it answers, if it could be kept.
#[idempotent(scope = global, op = "webhook.books-later", key = event.id, client_errors = store, webhook)]
async fn books(State(app): State<App>, event: Verified<Stripe>) -> Result<StatusCode, Error> {
    app.probe.effect("asked");
    book(&app.idem, &app.probe, "book 1").await?;
    Ok(StatusCode::OK)
}

/// It has charged, and then cannot book: it says that all is over with this answer.
#[idempotent(scope = global, op = "webhook.charges", key = event.id, webhook)]
async fn charges(State(app): State<App>, event: Verified<Stripe>) -> Result<StatusCode, Final<Error>> {
    app.probe.effect(event.id.to_string());
    book(&app.idem, &app.probe, "book 1").await.map_err(Final)?;
    Ok(StatusCode::OK)
}

async fn open() -> Shop {
    let routes = Router::new().route("/faxes", post(faxes)).route("/books", post(books));
    Shop::open(routes.route("/charges", post(charges))).await
}

async fn told(shop: &Shop, path: &str) -> (u16, String, Option<u64>) {
    let told = problem(shop.stripe(path, &event("evt_1")).send().await.unwrap()).await;
    (told.status, told.slug, told.retry_after)
}

/// The run that finds the doubt says what each delivery after it is told.
#[tokio::test]
async fn clause_41_a_step_that_nobody_knows_of_is_come_back_for() {
    let shop = open().await;
    let held = shop.probe.hold().await;
    let lost = tokio::spawn(shop.stripe("/faxes", &event("evt_1")).send());
    eventually(async || shop.probe.started() == 1).await;
    shop.freeze().await;
    let found = problem(shop.stripe("/faxes", &event("evt_1")).send().await.unwrap()).await;
    let record = shop.runtime.find("webhook.faxes", idem_runtime::Global, "evt_1").await.unwrap().unwrap();
    assert_eq!((record.state, record.reason), (Stands::InDoubt, Some(Reason::StepUnknown)));
    assert_eq!((found.status, found.slug.as_str()), (503, "idempotency-outcome-unknown"));
    assert_eq!(found.retry_after, Some(60), "a person is needed");
    assert_eq!((&found.body["op"], &found.body["operation"]), (&json!("webhook.faxes"), &json!(record.id.to_string())));
    let after = (503, "idempotency-outcome-unknown".to_owned(), Some(60));
    assert_eq!((told(&shop, "/faxes").await, shop.probe.effects()), (after, 1));
    drop(held);
    lost.await.unwrap().unwrap();
}

/// What the function's key stands for says nothing of the event's, which a later delivery runs again.
#[tokio::test]
async fn clause_41_what_a_function_says_of_its_own_key_is_never_409_or_410() {
    let shop = open().await;
    let held = shop.probe.hold().await;
    let (idem, probe) = (shop.runtime.clone(), shop.probe.clone());
    let first = tokio::spawn(async move { book(&idem, &probe, "book 1").await });
    eventually(async || shop.probe.started() == 1).await;
    assert_eq!(told(&shop, "/books").await, (503, "idempotency-in-progress".to_owned(), Some(1)));
    drop(held);
    first.await.unwrap().unwrap_err();
    let doubt = problem(shop.stripe("/books", &event("evt_1")).send().await.unwrap()).await;
    assert_eq!((doubt.status, doubt.slug.as_str()), (503, "idempotency-outcome-unknown"));
    assert_eq!((&doubt.body["op"], doubt.retry_after), (&json!("webhook.books"), Some(60)), "whose it is");

    let record = shop.runtime.find("webhook.books", idem_runtime::Global, "book 1").await.unwrap().unwrap();
    let by = Audit { who: "ops".to_owned(), why: "looked".to_owned() };
    shop.runtime.resolve(record.id, record.fence, Resolution::Void, by).await.unwrap();
    assert_eq!(told(&shop, "/books").await, (503, "idempotency-result-unavailable".to_owned(), Some(60)));
    let event = shop.runtime.find("webhook.books-later", idem_runtime::Global, "evt_1").await.unwrap().unwrap();
    assert_eq!((event.state, shop.probe.log().len()), (Stands::Released, 3), "each delivery asked");
    assert_eq!(book(&shop.runtime, &shop.probe, "book 1").await.unwrap_err().kind(), ErrorKind::ResultUnavailable);
}

/// What a body declares of an error of ours that it passes on counts, as of any other answer; and nobody comes back for what
/// is over.
#[tokio::test]
async fn clause_41_an_error_that_is_final_is_acknowledged_and_not_run_again() {
    let shop = open().await;
    let held = shop.probe.hold().await;
    let (idem, probe) = (shop.runtime.clone(), shop.probe.clone());
    let first = tokio::spawn(async move { book(&idem, &probe, "book 1").await });
    eventually(async || shop.probe.started() == 1).await;
    for _ in 0..2 {
        let told = shop.stripe("/charges", &event("evt_1")).send().await.unwrap();
        assert_eq!((told.status().as_u16(), shop.probe.effects()), (200, 1));
    }
    let record = shop.runtime.find("webhook.charges", idem_runtime::Global, "evt_1").await.unwrap().unwrap();
    assert_eq!(record.state, Stands::Done);
    drop(held);
    first.await.unwrap().unwrap_err();
}
