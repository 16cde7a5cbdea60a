//! `in_doubt = rerun_deduped`: scenario 44, clauses 13, 14, 19 and 26, at a provider that charges once per provider key.

mod changed;
mod cut_off;
mod resumed;

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use idem_runtime::{
    Audit, Execution, Final, NotApplied, Recovery, Resolution, StoredResponse, idempotent,
    state::{Reason, State as Stands},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{App, Fault, Place, Probe, Problem, Shop, Tenant, Verb, eventually, problem, seen};

/// How each run ends, in turn; the last one again and again.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Script {
    runs: Vec<String>,
}

/// Charges at a provider that dedupes, once per provider key, and ends as the script says.
async fn run(probe: &Probe, exec: &Execution, script: &Script) -> Response {
    probe.pass().await;
    let turn = usize::try_from(exec.attempts()).unwrap().min(script.runs.len());
    let end = turn.checked_sub(1).map_or("ok", |turn| script.runs[turn].as_str());
    if end == "422" || end == "not applied" {
        return refused(end, exec);
    }
    let charges = probe.log();
    let known = charges.iter().position(|key| key == exec.provider_key());
    let charge = known.unwrap_or_else(|| {
        probe.effect(exec.provider_key());
        charges.len()
    });
    match end {
        "panic" => panic!("the script says so"),
        "500" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        "late 422" => StatusCode::UNPROCESSABLE_ENTITY.into_response(),
        "final" => Final((StatusCode::PAYMENT_REQUIRED, exec.provider_key().to_owned())).into_response(),
        _ => (StatusCode::CREATED, format!("charge {charge}")).into_response(),
    }
}

/// Before anything is charged; tells the key that a charge would have had.
fn refused(end: &str, exec: &Execution) -> Response {
    let answer = (StatusCode::UNPROCESSABLE_ENTITY, exec.provider_key().to_owned());
    if end == "422" { answer.into_response() } else { NotApplied(answer).into_response() }
}

macro_rules! charges {
    ($name:ident, $($annotation:tt)*) => {
        #[idempotent(scope = "tenant", in_doubt = rerun_deduped, $($annotation)*)]
        async fn $name(
            tenant: Tenant,
            #[idem] exec: Execution,
            axum::extract::State(probe): axum::extract::State<Probe>,
            Json(script): Json<Script>,
        ) -> Response {
            run(&probe, &exec, &script).await
        }
    };
}

charges!(charge, op = "reruns.charge");
charges!(keep, op = "reruns.keep", client_errors = keep("30s"));
charges!(patient, op = "reruns.patient", in_flight = wait("10s"));
charges!(limited, op = "reruns.limited", timeout = "1s");
charges!(recovered, op = "reruns.recovered");

fn router() -> Router<App> {
    Router::new()
        .route("/charge", post(charge))
        .route("/keep", post(keep))
        .route("/patient", post(patient))
        .route("/limited", post(limited))
        .route("/recovered", post(recovered))
}

const HOUR: Duration = Duration::from_secs(3600);

async fn post_script(shop: &Shop, path: &str, key: &str, runs: &[&str]) -> reqwest::Response {
    shop.post(path, key).json(&json!({ "runs": runs })).send().await.unwrap()
}

/// Status, whether it is a replay, and the text.
async fn send(shop: &Shop, path: &str, key: &str, runs: &[&str]) -> (u16, bool, String) {
    let seen = seen(post_script(shop, path, key, runs).await).await;
    (seen.status, seen.replayed, seen.body)
}

async fn told(shop: &Shop, path: &str, key: &str, runs: &[&str]) -> Problem {
    problem(post_script(shop, path, key, runs).await).await
}

fn on_a_task(shop: &Shop, path: &str, key: &str) -> JoinHandle<reqwest::Response> {
    let request = shop.post(path, key).json(&json!({ "runs": [] }));
    tokio::spawn(async { request.send().await.unwrap() })
}

fn ran(body: &str) -> (u16, bool, String) {
    (201, false, body.to_owned())
}

fn replayed(body: &str) -> (u16, bool, String) {
    (201, true, body.to_owned())
}

/// What was lost between the effect and its record is run again, and the provider charges once. Clause 19: the run that
/// comes back from the dead serves what is stored.
#[tokio::test]
async fn scenario_44_a_lost_run_is_run_again_and_charged_once() {
    let shop = Shop::open(router()).await;
    let held = shop.probe.hold().await;
    let first = on_a_task(&shop, "/charge", "k1");
    eventually(async || shop.probe.started() == 1).await;
    shop.freeze().await;
    let shown = shop.record("reruns.charge", "k1").await;
    assert_eq!((shown.state, shown.reason), (Stands::Resumable, Some(Reason::LeaseExpired)));
    let second = on_a_task(&shop, "/charge", "k1");
    eventually(async || shop.probe.started() == 2).await;
    let taken = shop.record("reruns.charge", "k1").await;
    assert_eq!((taken.state, taken.attempts, taken.epoch), (Stands::InFlight, 2, shown.epoch));
    drop(held);
    let (first, second) = (seen(first.await.unwrap()).await, seen(second.await.unwrap()).await);
    assert_eq!((second.status, second.replayed, second.body.as_str()), (201, false, "charge 0"));
    if first.status == 201 {
        assert_eq!((first.replayed, &first.body), (true, &second.body), "not its own answer");
    } else {
        assert_eq!(first.status, 409, "the other one still ran");
    }
    assert_eq!(send(&shop, "/charge", "k1", &[]).await, replayed("charge 0"));
    assert_eq!((shop.probe.effects(), shop.state().await), (1, 2), "one charge, done");
}

/// The process is gone for good: nobody renews, nobody comes back.
#[tokio::test]
async fn scenario_44_an_abandoned_lease_is_taken_over_by_the_retry() {
    let place = Arc::new(Place::new());
    let (dying, next) = (
        Shop::open_on(Arc::clone(&place), router(), |builder| builder).await,
        Shop::open_on(place, router(), |builder| builder).await,
    );
    let held = dying.probe.hold().await;
    let first = on_a_task(&dying, "/charge", "k1");
    eventually(async || dying.probe.started() == 1).await;
    let told = problem(post_script(&next, "/charge", "k1", &[]).await).await;
    assert_eq!(told.slug, "idempotency-in-progress", "its lease lasts");
    dying.store.tell(Verb::Finish, Fault::Down);
    dying.freeze().await;
    assert_eq!(send(&next, "/charge", "k1", &[]).await, ran("charge 0"));
    assert_eq!(send(&next, "/charge", "k1", &[]).await, replayed("charge 0"));
    drop((held, first));
}

/// Clauses 14 and 15 as well.
#[tokio::test]
async fn clause_26_a_failed_run_is_run_again_with_the_same_provider_key() {
    let shop = Shop::open(router()).await;
    let script = ["500", "panic", "500", "ok"];
    assert_eq!(send(&shop, "/charge", "k1", &script).await, (500, false, String::new()), "its own answer");
    assert_eq!(shop.record("reruns.charge", "k1").await.state, Stands::Resumable);
    let panicked = told(&shop, "/charge", "k1", &script).await;
    assert_eq!((panicked.status, panicked.slug.as_str()), (500, "idempotency-body-panicked"));
    let says = |member: &str| panicked.body[member].clone();
    assert_eq!(
        (says("retry"), says("safe_new_key"), says("state")),
        (json!("same-key"), json!(false), json!("resumable"))
    );
    assert_eq!(send(&shop, "/charge", "k1", &script).await.0, 500);
    assert_eq!(send(&shop, "/charge", "k1", &script).await, ran("charge 0"));
    assert_eq!(send(&shop, "/charge", "k1", &script).await, replayed("charge 0"));
    assert_eq!((shop.probe.effects(), shop.probe.started()), (1, 4), "four runs, one charge");
    assert_eq!(shop.record("reruns.charge", "k1").await.provider_key(), shop.probe.log()[0], "what operators ask for");
    assert_eq!(shop.record("reruns.charge", "k1").await.attempts, 4);
}

#[tokio::test]
async fn clause_26_the_provider_key_is_another_one_after_a_release() {
    let shop = Shop::open(router()).await;
    let script = ["422", "422", "ok"];
    let first = send(&shop, "/charge", "k1", &script).await;
    assert_eq!((first.0, shop.state().await), (422, 4), "nothing was before it, so it is released");
    let second = send(&shop, "/charge", "k1", &script).await;
    assert_ne!(first.2, second.2, "a corrected retry does not meet the memory of the refused one");
    assert_eq!(send(&shop, "/charge", "k1", &script).await, ran("charge 0"));
    assert!(![first.2, second.2].contains(&shop.probe.log()[0]));
}

/// An earlier run may have charged, so a later one that is refused must not free the key.
#[tokio::test]
async fn clause_13_a_client_error_of_a_second_run_keeps_the_payload_bound() {
    for (path, refusal) in [("/charge", "422"), ("/charge", "late 422"), ("/keep", "422"), ("/charge", "not applied")] {
        let shop = Shop::open(router()).await;
        let script = ["500", refusal, "ok"];
        assert_eq!(send(&shop, path, "k1", &script).await.0, 500);
        let second = send(&shop, path, "k1", &script).await;
        assert_eq!((second.0, second.1), (422, false), "its own answer");
        assert_eq!(shop.state().await, 6, "{path} {refusal}");
        let other = told(&shop, path, "k1", &["corrected"]).await;
        assert_eq!((other.status, other.slug.as_str()), (422, "idempotency-key-reused"));
        assert_eq!(send(&shop, path, "k1", &script).await, ran("charge 0"));
        assert_eq!((shop.probe.effects(), shop.probe.started()), (1, 3), "{path} {refusal}");
        assert!(refusal == "late 422" || second.2 == shop.probe.log()[0], "one provider key: {}", second.2);
    }
}

#[tokio::test]
async fn clause_16_a_final_answer_of_a_second_run_is_final() {
    let shop = Shop::open(router()).await;
    let script = ["500", "final"];
    assert_eq!(send(&shop, "/charge", "k1", &script).await.0, 500);
    let declined = send(&shop, "/charge", "k1", &script).await;
    assert_eq!((declined.0, declined.1), (402, false));
    assert_eq!(send(&shop, "/charge", "k1", &script).await, (402, true, declined.2));
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn clause_26_past_the_window_it_is_in_doubt() {
    let shop = Shop::open_with(router(), |builder| builder.provider_window(HOUR)).await;
    let script = ["500", "500", "ok"];
    assert_eq!(send(&shop, "/charge", "k1", &script).await.0, 500);
    shop.pass(HOUR / 2).await;
    assert_eq!(send(&shop, "/charge", "k1", &script).await.0, 500);
    shop.pass(HOUR / 2 + Duration::from_secs(5)).await;
    let refused = told(&shop, "/charge", "k1", &script).await;
    assert_eq!((refused.status, refused.slug.as_str()), (409, "idempotency-outcome-unknown"));
    let says = |member: &str| refused.body[member].clone();
    assert_eq!((says("retry"), says("safe_new_key")), (json!("operator"), json!(false)));
    assert_eq!(shop.probe.started(), 2, "the provider may have forgotten");
    let shown = shop.record("reruns.charge", "k1").await;
    assert_eq!((shown.state, shown.reason), (Stands::InDoubt, Some(Reason::Abandoned)));
    let answer = StoredResponse::http((StatusCode::CREATED, "found")).await.unwrap();
    let by = Audit { who: "ops".into(), why: "asked the provider".into() };
    let resolved = shop.runtime.resolve(shown.id, shown.fence, Resolution::Complete(answer), by).await.unwrap();
    assert_eq!(resolved.state, Stands::Done);
    assert_eq!(send(&shop, "/charge", "k1", &script).await, replayed("found"));
}

/// Clause 33: until then a hook is not asked.
#[tokio::test]
async fn clause_26_a_hook_settles_what_was_not_run_again_in_time() {
    let configure = |builder: idem_runtime::Builder| {
        let found = async || StoredResponse::http((StatusCode::CREATED, "found")).await.unwrap();
        let hook = move |_| async move { Recovery::Completed(found().await, Vec::new()) };
        builder.provider_window(HOUR).recover("reruns.recovered", hook).sweep_every(Duration::from_millis(20))
    };
    let shop = Shop::open_with(router(), configure).await;
    assert_eq!(send(&shop, "/recovered", "k1", &["500"]).await.0, 500);
    shop.pass(HOUR / 2).await;
    let looked = shop.store.calls(Verb::Survey);
    eventually(async || shop.store.calls(Verb::Survey) > looked + 2).await;
    assert_eq!((shop.state().await, shop.store.calls(Verb::Recover)), (6, 0));
    shop.pass(HOUR).await;
    eventually(async || shop.record("reruns.recovered", "k1").await.state == Stands::Done).await;
    assert_eq!(send(&shop, "/recovered", "k1", &["500"]).await, replayed("found"));
}

#[tokio::test]
async fn clause_04_who_waits_for_a_run_that_fails_runs_it_again() {
    let shop = Shop::open(router()).await;
    let held = shop.probe.hold().await;
    let script = json!({"runs": ["500", "ok"]});
    let post = || tokio::spawn(shop.post("/patient", "k1").json(&script).send());
    let first = post();
    eventually(async || shop.probe.started() == 1).await;
    let second = post();
    eventually(async || shop.store.calls(Verb::Peek) > 0).await;
    drop(held);
    assert_eq!(first.await.unwrap().unwrap().status(), 500);
    let second = seen(second.await.unwrap().unwrap()).await;
    assert_eq!((second.status, second.replayed, second.body.as_str()), (201, false, "charge 0"));
    assert_eq!(shop.probe.effects(), 1);
}

/// Whoever will not run must not take it for nothing: a request that its extractor refuses, whoever fetches the result,
/// and a process that shuts down.
#[tokio::test]
async fn clause_37_who_only_looks_is_told_to_send_it_again() {
    let shop = Shop::open(router()).await;
    assert_eq!(send(&shop, "/charge", "k1", &["500", "ok"]).await.0, 500);
    let id = shop.record("reruns.charge", "k1").await.id;
    let same_key = |told: &Problem| (told.body["retry"] == "same-key", told.body["safe_new_key"] == false);
    let fetched = body_of(shop.runtime.operation(id, "acme").await).await;
    assert_eq!((&fetched["state"], &fetched["retry"]), (&json!("resumable"), &json!("same-key")));
    shop.runtime.start_draining();
    let draining = told(&shop, "/charge", "k1", &["500", "ok"]).await;
    assert_eq!((draining.slug.as_str(), same_key(&draining)), ("idempotency-draining", (true, true)));
    let fresh = told(&shop, "/charge", "k2", &[]).await;
    assert_eq!((fresh.slug.as_str(), &fresh.body["safe_new_key"]), ("idempotency-draining", &json!(true)));
    assert_eq!(shop.probe.started(), 1);
}

async fn body_of(response: Response) -> Value {
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test]
async fn the_list_says_what_is_run_again_and_for_how_long() {
    let shop = Shop::open_with(router(), |builder| builder.provider_window(HOUR)).await;
    let info = shop.runtime.operations().iter().find(|info| info.op == "reruns.charge").unwrap();
    let shown = serde_json::to_value(info).unwrap();
    assert_eq!(shown["in_doubt"], json!({"rule": "rerun_deduped"}));
    assert_eq!(shown["provider_window_seconds"], 3600);
}
