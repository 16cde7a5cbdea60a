//! Refusals, as the house wants them.

use std::time::Duration;

use axum::{
    Router,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use idem_runtime::{Builder, Error, Execution, Problem, idempotent};
use serde_json::json;

use crate::support::{App, Plan, Shop, Tenant, handler, problem, refusal};

handler!(charge, op = "problems.charge", ttl = "24h");

/// Passes on an error of the runtime's, after its effect.
#[idempotent(scope = "tenant", op = "problems.link")]
async fn link(tenant: Tenant, #[idem] exec: Execution, _: axum::Json<Plan>) -> Result<StatusCode, Error> {
    exec.link("gateway", "").await?;
    Ok(StatusCode::OK)
}

fn router() -> Router<App> {
    Router::new().route("/charge", post(charge)).route("/link", post(link))
}

/// A refusal of each kind that needs no fault: a missing key, a mismatch, an outcome in doubt.
async fn refused(shop: &Shop) -> [reqwest::Response; 3] {
    let keyless = shop.client.post(shop.url("/charge")).bearer_auth("acme").json(&json!({})).send().await.unwrap();
    let send = |amount: u8| shop.post("/charge", "k1").json(&json!({"amount": amount})).send();
    send(1).await.unwrap();
    let other = send(2).await.unwrap();
    shop.place.prolong_leases(Duration::from_secs(60)).await;
    shop.sql("update idem_key set state = 1").await; // as if just claimed
    let running = send(1).await.unwrap();
    [keyless, other, running]
}

#[tokio::test]
async fn scenario_12_problem_types_can_be_explained_elsewhere() {
    let shop = Shop::open_with(router(), |builder| builder.problem_base("https://shop.example/errors#")).await;
    for (response, slug) in refused(&shop)
        .await
        .into_iter()
        .zip(["key-missing", "key-reused", "in-progress"].map(|slug| format!("idempotency-{slug}")))
    {
        let told = problem(response).await; // and with it, that `Link` names the same place
        assert_eq!(
            (&told.slug, told.body["type"].as_str()),
            (&slug, Some(&*format!("https://shop.example/errors#{slug}")))
        );
    }
}

#[tokio::test]
async fn clause_03_a_mismatch_has_its_own_status_in_every_format() {
    let shop = Shop::open_with(router(), |builder| builder.mismatch_status(409)).await;
    let [_, other, _] = refused(&shop).await;
    let told = problem(other).await;
    assert_eq!(
        (told.status, told.slug.as_str(), &told.body["retry"]),
        (409, "idempotency-key-reused", &json!("never"))
    );
    assert_eq!(told.retry_after, None, "to come back would not help");
}

fn house_format(builder: Builder) -> Builder {
    builder.problem_response(|problem: Problem| -> Response {
        let status = StatusCode::from_u16(problem.status).unwrap();
        let code = problem.type_uri.rsplit('#').next().unwrap().to_owned();
        let mut response = (status, axum::Json(json!({"error": {"code": code}}))).into_response();
        if problem.status == 422 {
            response.headers_mut().insert("cache-control", "private".parse().unwrap());
        }
        response
    })
}

#[tokio::test]
async fn clause_01_a_house_can_have_its_own_format() {
    let shop = Shop::open_with(router(), house_format).await;
    for (response, (status, code, cache_control)) in refused(&shop).await.into_iter().zip([
        (400, "idempotency-key-missing", "no-store"),
        (422, "idempotency-key-reused", "private"),
        (409, "idempotency-in-progress", "no-store"),
    ]) {
        let headers = response.headers().clone();
        assert_eq!((response.status().as_u16(), headers["cache-control"].to_str().unwrap()), (status, cache_control));
        assert_eq!(headers["content-type"], "application/json");
        assert!(headers["link"].to_str().unwrap().ends_with(&format!("#{code}>; rel=\"describedby\"")));
        assert_eq!(headers.get("retry-after").map(|value| value.to_str().unwrap()), (status == 409).then_some("1"));
        let body: serde_json::Value = response.json().await.unwrap();
        assert_eq!(body, json!({"error": {"code": code}}));
    }
}

/// A browser's form wants a page where programs want what they always got.
#[tokio::test]
async fn clause_01_a_format_for_some_hands_on_the_others() {
    let some = |builder: Builder| {
        builder.problem_response(|problem| match problem.status {
            422 => (StatusCode::UNPROCESSABLE_ENTITY, "in our words").into_response(),
            _ => problem.into_response(),
        })
    };
    let (formatted, plain) = (Shop::open_with(router(), some).await, Shop::open(router()).await);
    let [keyless, other, running] = refused(&formatted).await;
    assert_eq!(other.text().await.unwrap(), "in our words");
    let [plain_keyless, _, plain_running] = refused(&plain).await;
    for (handed_on, plain) in [(keyless, plain_keyless), (running, plain_running)] {
        let (handed_on, plain) = (problem(handed_on).await, problem(plain).await);
        assert_eq!((handed_on.status, handed_on.retry_after), (plain.status, plain.retry_after));
        assert_eq!(handed_on.body, plain.body);
    }
}

/// A 418 would free the key.
#[tokio::test]
async fn clause_27_a_format_does_not_say_what_becomes_of_the_record() {
    let shop =
        Shop::open_with(router(), |builder| builder.problem_response(|_| StatusCode::IM_A_TEAPOT.into_response()))
            .await;
    let told = shop.post("/link", "k1").json(&json!({})).send().await.unwrap();
    assert_eq!((told.status(), shop.state().await), (StatusCode::IM_A_TEAPOT, 5), "in doubt, as by its 500");
}

/// A refusal before the handler, too: by the size of the request.
#[tokio::test]
async fn clause_34_a_house_format_holds_for_every_refusal() {
    let shop = Shop::open_with(router(), |builder| house_format(builder).max_request(4)).await;
    let large = shop.post("/charge", "k1").json(&json!({"amount": 1})).send().await.unwrap();
    assert_eq!(large.status(), 413);
    let body: serde_json::Value = large.json().await.unwrap();
    assert_eq!(body["error"]["code"], "idempotency-request-too-large");
}

#[tokio::test]
async fn clause_03_a_refusal_says_what_the_contract_lists() {
    let shop = Shop::open(router()).await;
    let [keyless, other, running] = refused(&shop).await;
    let members = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let keyless = problem(keyless).await.body;
    assert_eq!(members(&keyless), ["detail", "op", "retry", "safe_new_key", "status", "title", "type"]);
    let other = problem(other).await.body;
    assert_eq!(members(&other), ["detail", "op", "retry", "safe_new_key", "status", "title", "type"], "no record's id");
    let running = problem(running).await.body;
    assert_eq!(
        members(&running),
        ["detail", "op", "operation", "retry", "safe_new_key", "state", "status", "title", "type"]
    );
    assert_eq!((&running["op"], running["operation"].as_str().map(str::len)), (&json!("problems.charge"), Some(32)));
    shop.sql("update idem_key set state = 5, reason = 3").await;
    let doubt = shop.post("/charge", "k1").json(&json!({"amount": 1})).send().await.unwrap();
    assert_eq!(refusal(doubt).await, (409, "idempotency-outcome-unknown".to_owned()));
}
