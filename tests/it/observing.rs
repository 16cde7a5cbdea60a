//! What is seen from outside: every call counted once (case 104), gauges that come down again, spans.

mod spans;

use std::time::Duration;

use axum::{Json, Router, extract::State, http::StatusCode, response::Response, routing::post};
use futures_util::FutureExt;
use idem_runtime::{Audit, Error, Execution, Resolution, Runtime, StoredResponse, idempotent};
use reqwest::RequestBuilder;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{App, Fault, Logs, Meters, Plan, Probe, Shop, Tenant, Verb, eventually, handler};

handler!(charge, op = "observing.charge");
handler!(kept, op = "observing.kept", client_errors = keep("1h"));
handler!(limited, op = "observing.limited", timeout = "1s");
handler!(optional, op = "observing.optional", optional);
handler!(late, op = "observing.late", ttl = "1h", refuse_late = "2h");

#[idempotent(scope = "tenant", op = "observing.large")]
async fn large(tenant: Tenant) -> (StatusCode, Vec<u8>) {
    (StatusCode::CREATED, vec![b'x'; 1 << 20])
}

#[derive(Deserialize)]
struct Order {
    id: String,
}

/// Its key is in what an extractor may refuse.
#[idempotent(scope = "tenant", op = "observing.order", key = order.id)]
async fn order(tenant: Tenant, State(probe): State<Probe>, Json(order): Json<Order>) -> Response {
    probe.perform(&Plan::default()).await
}

#[derive(Clone, Copy, PartialEq)]
enum Job {
    Succeed,
    Fail,
    FailNotApplied,
    Panic,
    Hang,
}

#[idempotent(function, runtime = runtime, scope = global, op = "observing.job", key = id)]
async fn job(runtime: &Runtime, id: &str, job: Job, #[idem] exec: Execution) -> Result<u32, Error> {
    match job {
        Job::Succeed => return Ok(1),
        Job::Panic => panic!("the test says so"),
        Job::Hang => std::future::pending().await,
        Job::FailNotApplied => exec.not_applied(),
        Job::Fail => {}
    }
    Err(runtime.find("observing.job", "acme", "").await.unwrap_err()) // some error
}

fn router() -> Router<App> {
    Router::new()
        .route("/charge", post(charge).get(charge))
        .route("/kept", post(kept))
        .route("/limited", post(limited))
        .route("/optional", post(optional))
        .route("/late", post(late))
        .route("/large", post(large))
        .route("/orders", post(order))
}

/// A shop whose requests are counted.
struct Counted {
    shop: Shop,
    meters: Meters,
}

impl Counted {
    async fn open() -> Self {
        Self::open_with(|builder| builder).await
    }

    async fn open_with(configure: impl FnOnce(idem_runtime::Builder) -> idem_runtime::Builder) -> Self {
        let meters = Meters::collect();
        Self { shop: Shop::open_with(router(), configure).await, meters }
    }

    /// One call has come to this since the last look, and nothing else has.
    fn assert_counted(&self, op: &str, outcome: &str) {
        let counted = self.meters.newly("idem_requests_total");
        assert_eq!(counted, [(format!("idem_requests_total{{op=observing.{op},outcome={outcome}}}"), 1.0)]);
    }

    fn value(&self, metric: &str, op: &str) -> f64 {
        self.meters.value(&format!("{metric}{{op=observing.{op}}}"))
    }

    /// Sends a request to `/op`, and sees what it is counted as.
    async fn sent(&self, op: &str, request: RequestBuilder, outcome: &str) -> reqwest::Response {
        let response = request.send().await.unwrap();
        self.assert_counted(op, outcome);
        response
    }

    async fn posted(&self, op: &str, key: &str, plan: Value, outcome: &str) -> reqwest::Response {
        self.sent(op, self.shop.post(&format!("/{op}"), key).json(&plan), outcome).await
    }

    /// A request whose body has started, and is held.
    async fn running(&self, op: &str, key: &str) -> JoinHandle<reqwest::Response> {
        let started = self.shop.probe.started();
        let request = self.shop.post(&format!("/{op}"), key).json(&json!({}));
        let sent = tokio::spawn(async { request.send().await.unwrap() });
        eventually(async || self.shop.probe.started() > started).await;
        sent
    }
}

#[tokio::test]
async fn case_104_what_a_body_came_to_is_counted_once() {
    let on = Counted::open().await;
    on.posted("charge", "k1", json!({}), "executed").await;
    on.posted("charge", "k1", json!({}), "replayed").await;
    on.posted("charge", "k2", json!({"status": 422}), "released").await;
    on.posted("charge", "k3", json!({"status": 500}), "held").await;
    on.posted("charge", "k4", json!({"panic": true}), "panicked").await;
    on.posted("kept", "k1", json!({"status": 422}), "rejected_kept").await;
    on.posted("kept", "k1", json!({"status": 422}), "replayed").await;
    on.posted("large", "k1", json!({}), "executed").await;
    on.shop.store.tell(Verb::Finish, Fault::Down);
    on.posted("charge", "k5", json!({}), "unrecorded").await;
    on.shop.store.heal();
    let _held = on.shop.probe.hold().await;
    on.posted("limited", "k1", json!({}), "timed_out").await;
}

#[tokio::test]
async fn case_104_what_was_answered_instead_is_counted_once() {
    let on = Counted::open().await;
    on.posted("charge", "k1", json!({}), "executed").await;
    on.posted("charge", "k1", json!({"amount": 2}), "mismatch").await;
    on.posted("charge", "k2", json!({"status": 500}), "held").await;
    on.posted("charge", "k2", json!({"status": 500}), "in_doubt").await;
    on.posted("large", "k1", json!({}), "executed").await;
    on.posted("large", "k1", json!({}), "result_unavailable").await;
    on.posted("late", "k1", json!({}), "executed").await;
    on.shop.pass(Duration::from_secs(90 * 60)).await;
    on.posted("late", "k1", json!({}), "result_expired").await;
    let held = on.shop.probe.hold().await;
    let first = on.running("charge", "k3").await;
    on.posted("charge", "k3", json!({}), "in_progress").await;
    drop(held);
    first.await.unwrap();
    on.assert_counted("charge", "executed");
    on.shop.store.down();
    on.posted("charge", "k4", json!({}), "store_unavailable").await;
    on.shop.store.heal();
    let damaged = on.shop.place.bytes(&[1]);
    on.shop.sql(&format!("update {} set headers = {damaged}", on.shop.place.backend().answers())).await;
    on.posted("charge", "k1", json!({}), "store_unreadable").await;
    on.shop.runtime.start_draining();
    on.posted("charge", "k5", json!({}), "draining").await;
}

#[tokio::test]
async fn case_104_what_was_refused_at_the_door_is_counted_once() {
    let on = Counted::open_with(|builder| builder.max_request(1000)).await;
    let bare = |path: &str| on.shop.client.post(on.shop.url(path)).bearer_auth("acme");
    on.sent("charge", bare("/charge").json(&json!({})), "missing_key").await;
    on.posted("charge", "a, b", json!({}), "invalid_key").await;
    on.posted("charge", "k1", json!("no plan"), "rejected").await;
    on.posted("charge", "k1", json!({"padding": "x".repeat(1000)}), "rejected").await;
    on.sent("order", bare("/orders").json(&json!({"name": 1})), "rejected").await;
    on.sent("order", bare("/orders").json(&json!({"id": ""})), "invalid_key").await;
    let get = on.shop.client.get(on.shop.url("/charge")).bearer_auth("acme");
    on.sent("charge", get.try_clone().unwrap().json(&json!({})), "bypassed").await;
    on.sent("charge", get, "rejected").await;
    let stranger = on.shop.client.post(on.shop.url("/charge")).json(&json!({})).send().await.unwrap();
    assert_eq!((stranger.status().as_u16(), on.meters.newly("idem_requests_total")), (401, Vec::new()));
}

/// A deploy that tightens a type: what is due is still answered, and counted as such.
#[tokio::test]
async fn case_104_a_refused_payload_whose_answer_is_due_is_a_replay() {
    let on = Counted::open().await;
    on.posted("kept", "k1", json!({"status": 422}), "rejected_kept").await;
    on.shop.sql("update idem_key set fp_alg = 99").await; // so that any payload is the first one's
    on.posted("kept", "k1", json!("no plan"), "replayed").await;
}

#[tokio::test]
async fn scenario_13_an_unprotected_run_is_counted() {
    let on = Counted::open().await;
    let bare = on.shop.client.post(on.shop.url("/optional")).bearer_auth("acme").json(&json!({}));
    on.sent("optional", bare, "unprotected").await;
    assert_eq!(on.value("idem_unprotected_total", "optional"), 1.0);
    on.posted("optional", "k1", json!({}), "executed").await;
    assert_eq!(on.value("idem_unprotected_total", "optional"), 1.0);
}

#[tokio::test]
async fn case_104_who_may_not_see_it_and_who_is_not_served_are_counted() {
    let on = Counted::open_with(|builder| builder.authorize_replay(|_| async { false })).await;
    on.posted("charge", "k1", json!({}), "executed").await;
    on.posted("charge", "k1", json!({}), "replay_forbidden").await;
    let on = Counted::open_with(|builder| builder.serve_only(|op| op == "observing.kept")).await;
    on.posted("charge", "k1", json!({}), "not_served").await;
}

/// Scenario 48's metric, too.
#[tokio::test]
async fn clause_19_a_fenced_completion_is_counted() {
    let on = Counted::open().await;
    let held = on.shop.probe.hold().await;
    let first = on.running("charge", "k1").await;
    on.shop.freeze().await;
    let live = on.shop.record("observing.charge", "k1").await;
    let by = Audit { who: "ops".to_owned(), why: "asked the bank".to_owned() };
    let how = Resolution::Complete(StoredResponse::http(StatusCode::OK).await.unwrap());
    on.shop.runtime.resolve(live.id, live.fence, how, by).await.unwrap();
    drop(held);
    assert_eq!(first.await.unwrap().status(), 200, "what is stored");
    on.assert_counted("charge", "fenced");
    assert_eq!(on.value("idem_fence_rejected_total", "charge"), 1.0);
}

#[tokio::test]
async fn clause_30_a_replay_that_could_not_be_compared_is_counted() {
    let on = Counted::open().await;
    on.posted("charge", "k1", json!({}), "executed").await;
    on.posted("charge", "k1", json!({}), "replayed").await;
    assert_eq!(on.value("idem_unknown_fingerprint_total", "charge"), 0.0);
    on.shop.sql("update idem_key set fp_alg = 99").await;
    on.posted("charge", "k1", json!({"another": 1}), "replayed").await;
    assert_eq!(on.value("idem_unknown_fingerprint_total", "charge"), 1.0);
}

#[tokio::test]
async fn case_104_a_function_s_call_is_counted_once() {
    let on = Counted::open().await;
    let run = async |id: &str, kind: Job, outcome: &str| {
        let _ = job(&on.shop.runtime, id, kind).await;
        on.assert_counted("job", outcome);
    };
    run("j1", Job::Succeed, "executed").await;
    run("j1", Job::Succeed, "replayed").await;
    run("j2", Job::Fail, "held").await;
    run("j2", Job::Fail, "in_doubt").await;
    run("j3", Job::FailNotApplied, "released").await;
    run("", Job::Succeed, "invalid_key").await;
    let panics = std::panic::AssertUnwindSafe(job(&on.shop.runtime, "j4", Job::Panic)).catch_unwind();
    assert!(panics.await.is_err());
    on.assert_counted("job", "panicked");
    let damaged = on.shop.place.bytes(b"{");
    on.shop.sql(&format!("update {} set body = {damaged}", on.shop.place.backend().answers())).await;
    run("j1", Job::Succeed, "result_unavailable").await;
    let hangs = tokio::time::timeout(Duration::from_secs(1), job(&on.shop.runtime, "j5", Job::Hang));
    assert!(hangs.await.is_err());
    on.assert_counted("job", "held");
    assert_eq!((on.value("idem_in_flight", "job"), on.value("idem_body_seconds", "job")), (0.0, 5.0));
}

#[tokio::test]
async fn case_104_a_caller_who_leaves_is_counted_by_what_became_of_its_body() {
    let on = Counted::open().await;
    on.shop.store.tell(Verb::Claim, Fault::Slow(Duration::from_millis(100)));
    assert!(job(&on.shop.runtime, "j1", Job::Succeed).now_or_never().is_none(), "dropped while it claims");
    eventually(async || on.meters.value("idem_requests_total{op=observing.job,outcome=left}") == 1.0).await;
    on.assert_counted("job", "left");
    on.shop.store.heal();

    let held = on.shop.probe.hold().await;
    let first = on.running("charge", "k1").await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    assert_eq!(on.meters.newly("idem_requests_total"), [], "its body still runs");
    drop(held);
    eventually(async || on.meters.value("idem_requests_total{op=observing.charge,outcome=executed}") == 1.0).await;
    on.assert_counted("charge", "executed");
    on.posted("charge", "k1", json!({}), "replayed").await;
}

#[tokio::test]
async fn bodies_in_flight_come_down_to_zero_however_they_end() {
    let on = Counted::open().await;
    let held = on.shop.probe.hold().await;
    let (first, second) = (on.running("charge", "k1").await, on.running("charge", "k2").await);
    assert_eq!(on.value("idem_in_flight", "charge"), 2.0);
    first.abort(); // hangs up
    on.shop.client.post(on.shop.url("/limited")).send().await.unwrap();
    let limited = on.shop.post("/limited", "k1").json(&json!({})).send().await.unwrap();
    assert_eq!((limited.status().as_u16(), on.value("idem_in_flight", "limited")), (504, 0.0));
    drop(held);
    second.await.unwrap();
    eventually(async || on.value("idem_in_flight", "charge") == 0.0).await;
    on.shop.post("/charge", "k3").json(&json!({"panic": true})).send().await.unwrap();
    on.shop.post("/charge", "k4").json(&json!({"status": 500})).send().await.unwrap();
    assert_eq!(on.value("idem_in_flight", "charge"), 0.0);
    assert_eq!(on.value("idem_body_seconds", "charge"), 4.0);
    let timings = ["idem_claim_seconds", "idem_finish_seconds"].map(|metric| on.value(metric, "charge"));
    assert_eq!(timings, [4.0, 4.0]);
    on.shop.post("/charge", "k3").json(&json!({"panic": true})).send().await.unwrap();
    assert_eq!(on.value("idem_claim_seconds", "charge"), 5.0, "a claim that is refused is one, too");
}

/// Article A: a client whose time-out is too short retries all it sends.
#[tokio::test]
async fn a_scope_whose_client_retries_all_it_sends_is_told_of_once() {
    let on = Counted::open_with(|builder| builder.cache_bytes(1 << 20)).await;
    let logs = Logs::collect();
    let send = async |tenant: &str, key: String| {
        let request = on.shop.client.post(on.shop.url("/charge")).bearer_auth(tenant).header("idempotency-key", key);
        assert_eq!(request.json(&json!({})).send().await.unwrap().status(), 201);
    };
    for n in 0..10 {
        send("other", format!("k{n}")).await;
    }
    send("acme", "k1".to_owned()).await;
    for _ in 0..49 {
        send("acme", "k1".to_owned()).await;
    }
    assert_eq!((logs.alarming().len(), on.value("idem_replay_heavy_scopes_total", "charge")), (0, 0.0));
    for _ in 0..5 {
        send("acme", "k1".to_owned()).await;
    }
    assert_eq!(on.value("idem_replay_heavy_scopes_total", "charge"), 1.0);
    let [told] = &logs.alarming()[..] else { panic!("{:?}", logs.alarming()) };
    let digest = format!("{:?}", idem_runtime::Scope::of("acme"));
    let digest = digest.strip_prefix("Scope(#").and_then(|rest| rest.strip_suffix(')')).unwrap();
    for field in ["op=\"observing.charge\"", &format!("scope={digest}"), "requests=51", "replays=50"] {
        assert!(told.text.contains(field), "{field} in {}", told.text);
    }
}
