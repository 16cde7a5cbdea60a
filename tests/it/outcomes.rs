//! Scenarios 29 … 36 and the clauses around them: what an answer's status means for the key.

use axum::{
    Json, Router,
    extract::{Request, State},
    http::StatusCode,
    middleware::Next,
    response::{IntoResponse, Response},
    routing::post,
};
use idem_runtime::{Execution, Final, NotApplied, idempotent};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{App, Plan, Probe, Seen, Shop, Tenant, handler, problem, seen};

handler!(charge, op = "outcomes.charge");
handler!(keep, op = "outcomes.keep", client_errors = keep("30s"));
handler!(store, op = "outcomes.store", client_errors = store);

/// What a body can say beyond its status, and where it says so.
#[derive(Deserialize)]
struct Saying {
    status: u16,
    say: Say,
    how: How,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Say {
    Final,
    NotApplied,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum How {
    Wrapper,
    Err,
    Execution,
    /// The execution says the opposite; the answer counts more.
    WrapperAgainstExecution,
}

#[idempotent(scope = "tenant", op = "outcomes.saying", client_errors = keep("30s"))]
async fn saying(
    tenant: Tenant,
    State(probe): State<Probe>,
    #[idem] exec: Execution,
    Json(saying): Json<Saying>,
) -> Result<Response, Response> {
    let answer = probe.perform(&Plan { status: Some(saying.status), panic: false }).await;
    let declare = |answer: Response| match saying.say {
        Say::Final => Final(answer).into_response(),
        Say::NotApplied => NotApplied(answer).into_response(),
    };
    match (&saying.how, &saying.say) {
        (How::Execution, Say::Final) | (How::WrapperAgainstExecution, Say::NotApplied) => exec.is_final(),
        (How::Execution, Say::NotApplied) | (How::WrapperAgainstExecution, Say::Final) => exec.not_applied(),
        _ => {}
    }
    match saying.how {
        How::Wrapper | How::WrapperAgainstExecution => Ok(declare(answer)),
        How::Err => Err(declare(answer)),
        How::Execution => Ok(answer),
    }
}

/// Spends what was deposited.
#[idempotent(scope = "tenant", op = "outcomes.spend", client_errors = store)]
async fn spend(tenant: Tenant, State(probe): State<Probe>, Json(_amount): Json<u32>) -> Result<StatusCode, StatusCode> {
    probe.effect("tried");
    let funds = probe.log().iter().any(|entry| entry == "deposit");
    if funds { Ok(StatusCode::CREATED) } else { Err(StatusCode::PAYMENT_REQUIRED) }
}

/// A rate limiter, in front of everything.
async fn limiter(request: Request, next: Next) -> Response {
    if request.headers().contains_key("x-too-fast") {
        return (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "3")]).into_response();
    }
    next.run(request).await
}

fn router() -> Router<App> {
    Router::new()
        .route("/charge", post(charge))
        .route("/keep", post(keep))
        .route("/store", post(store))
        .route("/saying", post(saying))
        .route("/spend", post(spend))
        .layer(axum::middleware::from_fn(limiter))
}

async fn answer(shop: &Shop, path: &str, key: &str, body: &Value) -> Seen {
    seen(shop.post(path, key).json(body).send().await.unwrap()).await
}

#[tokio::test]
async fn scenario_29_a_client_error_frees_the_key_for_a_corrected_payload() {
    let shop = Shop::open(router()).await;
    let refused = answer(&shop, "/charge", "k1", &json!({"status": 422})).await;
    assert_eq!((refused.status, shop.state().await), (422, 4), "released");
    let corrected = answer(&shop, "/charge", "k1", &json!({"amount": 2})).await;
    assert_eq!((corrected.status, corrected.replayed, corrected.body.as_str()), (201, false, "effect 2"));
    let record = shop.record("outcomes.charge", "k1").await;
    assert_eq!((record.epoch, record.attempts), (record.fence, 2), "it starts afresh");
}

#[tokio::test]
async fn scenario_30_a_kept_client_error_is_replayed_to_the_same_payload_only() {
    let shop = Shop::open(router()).await;
    let wrong = json!({"status": 422});
    let first = answer(&shop, "/keep", "k1", &wrong).await;
    assert_eq!((first.status, first.replayed, shop.state().await), (422, false, 3));
    let again = answer(&shop, "/keep", "k1", &wrong).await;
    assert_eq!((again.status, again.replayed, &again.body), (422, true, &first.body));
    assert_eq!(shop.probe.effects(), 1);
    let corrected = answer(&shop, "/keep", "k1", &json!({"amount": 2})).await;
    assert_eq!((corrected.status, corrected.replayed), (201, false));
    assert_eq!(answer(&shop, "/keep", "k1", &wrong).await.status, 422, "another payload by now: a mismatch");
    assert_eq!(shop.probe.effects(), 2);
}

#[tokio::test]
async fn scenario_30_a_kept_client_error_is_kept_so_long_and_no_longer() {
    let shop = Shop::open_with(router(), |builder| builder.cache_bytes(1 << 20)).await;
    let wrong = json!({"status": 422});
    answer(&shop, "/keep", "k1", &wrong).await;
    shop.pass(std::time::Duration::from_secs(29)).await;
    assert!(answer(&shop, "/keep", "k1", &wrong).await.replayed);
    shop.pass(std::time::Duration::from_secs(2)).await;
    let after = answer(&shop, "/keep", "k1", &wrong).await;
    assert_eq!((after.status, after.replayed), (422, false), "it ran again; nothing of it was cached");
    assert_eq!(shop.probe.effects(), 2);
}

/// Clause 40 as well: what runs outside never touches the key.
#[tokio::test]
async fn scenario_31_too_many_requests_is_never_stored() {
    let shop = Shop::open(router()).await;
    let limited = shop.post("/store", "k1").header("x-too-fast", "1").json(&json!({})).send().await.unwrap();
    assert_eq!((limited.status().as_u16(), shop.records().await), (429, 0), "a layer outside leaves no record");
    for status in [429, 401, 403, 408, 409, 425] {
        for path in ["/store", "/keep", "/charge"] {
            let before = shop.probe.effects();
            let key = format!("{path}{status}");
            for _ in 0..2 {
                let limited = answer(&shop, path, &key, &json!({"status": status})).await;
                assert_eq!((limited.status, limited.replayed), (status, false), "{path}");
            }
            assert_eq!(shop.probe.effects(), before + 2, "{path} {status}: the retry runs");
        }
    }
}

#[tokio::test]
async fn scenario_32_a_final_answer_is_stored_whatever_its_status() {
    let shop = Shop::open(router()).await;
    for how in ["wrapper", "err", "execution", "wrapper_against_execution"] {
        for status in [402, 429, 500, 201] {
            let (key, before) = (format!("{how}{status}"), shop.probe.effects());
            let body = json!({"status": status, "say": "final", "how": how});
            let first = answer(&shop, "/saying", &key, &body).await;
            assert_eq!((first.status, first.replayed), (status, false), "{key}");
            let again = answer(&shop, "/saying", &key, &body).await;
            assert!(again.replayed, "{key}");
            assert_eq!((again.status, &again.body), (status, &first.body), "{key}");
            let other = json!({"status": status, "say": "final", "how": how, "amount": 2});
            assert_eq!(answer(&shop, "/saying", &key, &other).await.status, 422, "{key}: a mismatch");
            assert_eq!(shop.probe.effects(), before + 1, "{key}");
        }
    }
}

#[tokio::test]
async fn scenario_33_a_server_error_holds_the_key() {
    let shop = Shop::open(router()).await;
    let first = answer(&shop, "/charge", "k1", &json!({"status": 500})).await;
    assert_eq!((first.status, first.body.as_str()), (500, "effect 1"), "the caller gets the handler's own answer");
    assert_eq!(shop.state().await, 5, "in doubt");
    let again = problem(shop.post("/charge", "k1").json(&json!({"status": 500})).send().await.unwrap()).await;
    assert_eq!((again.status, again.slug.as_str()), (409, "idempotency-outcome-unknown"));
    assert_eq!((&again.body["safe_new_key"], &again.body["retry"]), (&json!(false), &json!("operator")));
    assert_eq!((&again.body["state"], again.retry_after), (&json!("in_doubt"), None));
    let other = problem(shop.post("/charge", "k1").json(&json!({"status": 201})).send().await.unwrap()).await;
    assert_eq!(other.status, 422, "clause 03: the payload is bound here, too");
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn scenario_35_not_applied_frees_the_key_whatever_the_status() {
    let shop = Shop::open(router()).await;
    for how in ["wrapper", "err", "execution", "wrapper_against_execution"] {
        for status in [500, 503, 422, 201] {
            let (key, before) = (format!("{how}{status}"), shop.probe.effects());
            for _ in 0..2 {
                let body = json!({"status": status, "say": "not_applied", "how": how});
                let ran = answer(&shop, "/saying", &key, &body).await;
                assert_eq!((ran.status, ran.replayed), (status, false), "{key}");
            }
            assert_eq!(shop.probe.effects(), before + 2, "{key}: the retry runs");
        }
    }
}

/// Case 38 (held part) as well: nothing waits for the lease.
#[tokio::test]
async fn scenario_36_a_panic_is_a_problem_and_holds_the_key() {
    let shop = Shop::open(router()).await;
    let first = problem(shop.post("/charge", "k1").json(&json!({"panic": true})).send().await.unwrap()).await;
    assert_eq!((first.status, first.slug.as_str()), (500, "idempotency-body-panicked"));
    assert_eq!((&first.body["safe_new_key"], &first.body["state"]), (&json!(false), &json!("in_doubt")));
    assert_eq!((shop.state().await, shop.count("select reason from idem_key").await), (5, 3), "in doubt: panic");
    let again = problem(shop.post("/charge", "k1").json(&json!({"panic": true})).send().await.unwrap()).await;
    assert_eq!(again.slug, "idempotency-outcome-unknown");
    assert_eq!(first.body["operation"], again.body["operation"]);
    assert_eq!(shop.probe.effects(), 1);
    assert_eq!(answer(&shop, "/charge", "k2", &json!({})).await.status, 201, "the service lives on");
}

#[tokio::test]
async fn clause_16_redirects_and_202_are_stored_as_they_are() {
    let shop = Shop::open(router()).await;
    for status in [200, 202, 204, 303, 304] {
        let body = json!({"status": status});
        let first = answer(&shop, "/charge", &status.to_string(), &body).await;
        let again = answer(&shop, "/charge", &status.to_string(), &body).await;
        assert_eq!((first.status, first.replayed, again.status, again.replayed), (status, false, status, true));
        assert!(first.location.is_some() && first.location == again.location, "{status}");
    }
    assert_eq!(shop.probe.effects(), 5);
}

#[tokio::test]
async fn case_32_a_refusal_before_the_body_does_not_use_up_the_key() {
    let shop = Shop::open(router()).await;
    let send = |body: &'static str| {
        let request = shop.post("/saying", "k1").header("content-type", "application/json").body(body);
        async { request.send().await.unwrap().status().as_u16() }
    };
    assert_eq!((send("{\"status\":").await, shop.records().await), (400, 0), "malformed");
    assert_eq!((send("{\"status\":201}").await, shop.records().await), (422, 0), "a member is missing");
    assert_eq!(send("{\"status\":201,\"say\":\"final\",\"how\":\"wrapper\"}").await, 201);
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn case_65_one_key_has_one_outcome_even_after_the_world_has_changed() {
    let shop = Shop::open(router()).await;
    assert_eq!(answer(&shop, "/spend", "k1", &json!(5)).await.status, 402);
    shop.probe.effect("deposit");
    let again = answer(&shop, "/spend", "k1", &json!(5)).await;
    assert_eq!((again.status, again.replayed), (402, true));
    assert_eq!(answer(&shop, "/spend", "k2", &json!(5)).await.status, 201);
    assert_eq!(shop.probe.log(), ["tried", "deposit", "tried"]);
}

#[tokio::test]
async fn case_104_a_replay_is_marked_and_a_first_answer_is_not() {
    let shop = Shop::open(router()).await;
    let send = || shop.post("/charge", "k1").json(&json!({})).send();
    let first = send().await.unwrap();
    assert!(
        !first.headers().contains_key("idempotent-replayed") && !first.headers().contains_key("idempotency-status")
    );
    let again = send().await.unwrap();
    assert_eq!(again.headers()["idempotent-replayed"], "true");
    assert!(!again.headers().contains_key("idempotency-status"));
    assert_eq!(shop.probe.started(), 1, "what the body counts is counted once");
}
