//! One span per call, and who is in it.

use std::collections::BTreeMap;

use axum::{Json, Router, extract::State, response::Response, routing::post};
use idem_runtime::{Error, Runtime, idempotent};
use serde_json::json;
use tracing::Instrument;

use crate::support::{App, Logs, Plan, Probe, Shop, Tenant, eventually};

#[idempotent(scope = "tenant", op = "observing.spoken")]
async fn spoken(tenant: Tenant, State(probe): State<Probe>, Json(plan): Json<Plan>) -> Response {
    tracing::info!(target: "idem_tests", "the body speaks");
    probe.perform(&plan).await
}

#[idempotent(function, runtime = runtime, scope = global, op = "observing.spoken-job", key = id)]
async fn job(runtime: &Runtime, id: &str) -> Result<u32, Error> {
    tracing::info!(target: "idem_tests", "the body speaks");
    Ok(1)
}

/// What the only span since the last look says, once it is over: the database driver's thread may still be in it.
async fn the_span(logs: &Logs, seen: &mut usize) -> BTreeMap<&'static str, String> {
    eventually(async || logs.spans().iter().all(|span| span.closed)).await;
    let spans = logs.spans();
    let [span] = &spans[*seen..] else { panic!("{:?}", &spans[*seen..]) };
    *seen += 1;
    assert_eq!(span.target, "idem::call");
    span.fields.clone()
}

fn where_the_body_spoke(logs: &Logs) -> Vec<Vec<&'static str>> {
    logs.all().into_iter().filter(|line| line.target == "idem_tests").map(|line| line.within).collect()
}

#[tokio::test]
async fn case_104_a_call_is_one_span_that_says_what_it_came_to() {
    let shop = Shop::open(Router::<App>::new().route("/spoken", post(spoken))).await;
    let (logs, mut seen) = (Logs::collect(), 0);
    let send = async |key: &str, body: serde_json::Value| {
        shop.post("/spoken", key).json(&body).send().await.unwrap();
    };
    send("k1", json!({})).await;
    let first = the_span(&logs, &mut seen).await;
    let record = shop.record("observing.spoken", "k1").await;
    let id = record.id.to_string();
    assert_eq!(first["op"], "observing.spoken");
    assert_eq!((first["outcome"].as_str(), first["replayed"].as_str()), ("executed", "false"));
    assert_eq!((first["record"].as_str(), first["attempts"].as_str()), (&id[..8], "1"));
    assert_eq!(first["attempt"].len(), 36, "a UUID");
    assert_eq!(where_the_body_spoke(&logs), [["idem"]], "detached, but in its caller's span");

    send("k1", json!({})).await;
    let replay = the_span(&logs, &mut seen).await;
    assert_eq!((replay["outcome"].as_str(), replay["replayed"].as_str()), ("replayed", "true"));
    assert!(!replay.contains_key("attempt"), "nothing ran");
    for (key, body, outcome) in [
        ("k1", json!({"amount": 2}), "mismatch"),
        ("k2", json!({"status": 500}), "held"),
        ("k2", json!({"status": 500}), "in_doubt"),
        ("k3", json!("no plan"), "rejected"),
        ("", json!({}), "invalid_key"),
    ] {
        send(key, body).await;
        assert_eq!(the_span(&logs, &mut seen).await["outcome"], outcome);
    }
    let about = |text: &str| logs.alarming().into_iter().filter(|line| line.text.contains(text)).count();
    assert_eq!(about("whose outcome is unknown"), 0, "people are told once, not at each retry");
    assert_eq!(about("the outcome is unknown"), 1);
    assert_eq!(about("outcome=\"held\""), 1, "and in the span's word");
    send("k4", json!({"status": 422})).await;
    send("k4", json!({})).await;
    assert_eq!(logs.spans().last().unwrap().fields["attempts"], "2");
}

#[tokio::test]
async fn case_104_a_function_s_body_is_in_the_span_of_its_call_and_that_in_its_caller_s() {
    let shop = Shop::open(Router::new()).await;
    let logs = Logs::collect();
    let call = job(&shop.runtime, "j1").instrument(tracing::info_span!("worker"));
    assert_eq!(call.await.unwrap(), 1);
    assert_eq!(where_the_body_spoke(&logs), [["idem", "worker"]]);
    let settled = logs.all().into_iter().rev().find(|line| line.target == "idem::engine").unwrap();
    assert_eq!(settled.within, ["idem", "worker"], "what our own tasks say is in it, too");
}
