//! Scenario 88: what is not signed never reaches the store, whatever key it names.

use reqwest::{RequestBuilder, Response};
use serde_json::json;

use super::{
    event, open, open_with,
    sender::{SENT, STANDARD, STRIPE, of_standard, of_stripe},
};
use crate::support::{Shop, Verb, problem, seen};

const VERBS: [Verb; 7] = [Verb::Claim, Verb::Peek, Verb::Finish, Verb::Link, Verb::Find, Verb::Begin, Verb::Commit];

/// The refusal, after it was seen that it asked the store for nothing.
async fn refused(shop: &Shop, request: RequestBuilder) -> (u16, String) {
    let asked = || VERBS.map(|verb| shop.store.calls(verb));
    let before = (asked(), shop.place.version().await);
    let response: Response = request.send().await.unwrap();
    assert_eq!((asked(), shop.place.version().await), before, "the store was asked");
    let told = problem(response).await;
    assert!(!told.body.to_string().contains("effect"), "nothing of the stored answer");
    (told.status, told.slug)
}

fn forged(slug: &str) -> (u16, String) {
    (if slug == "idempotency-signature-invalid" { 401 } else { 400 }, slug.to_owned())
}

#[tokio::test]
async fn scenario_88_a_forged_signature_never_touches_the_store() {
    let shop = open().await;
    let (first, body) = (shop.event("/held", &event("evt_1")).await, event("evt_1").to_string());
    assert!(first.ran());
    let post = |path: &str, body: &str| shop.client.post(shop.url(path)).body(body.to_owned());
    for path in ["/held", "/waits", "/whole", "/tx"] {
        for signature in [
            of_stripe("another secret", SENT, &body),
            of_stripe(STRIPE, SENT, "another body"),
            of_stripe(STRIPE, SENT - 301, &body),
            of_stripe(STRIPE, SENT + 301, &body),
            "nonsense".to_owned(),
        ] {
            let request = post(path, &body).header("stripe-signature", signature);
            assert_eq!(refused(&shop, request).await, forged("idempotency-signature-invalid"));
        }
        assert_eq!(refused(&shop, post(path, &body)).await, forged("idempotency-signature-invalid"), "none at all");
    }
    let reformatted = post("/held", &(body.clone() + "\n")).header("stripe-signature", of_stripe(STRIPE, SENT, &body));
    assert_eq!(refused(&shop, reformatted).await, forged("idempotency-signature-invalid"), "bytes count");
    assert!(shop.event("/held", &event("evt_1")).await.replayed, "the key is as it was");
}

/// A refusal of what is extracted is followed by a look at the key, elsewhere: there the caller is known.
#[tokio::test]
async fn scenario_88_a_forged_signature_finds_out_nothing_about_a_key_in_a_header() {
    let shop = open().await;
    for path in ["/by-header", "/plain"] {
        assert!(seen(shop.standard(path, "msg_1", "{}").send().await.unwrap()).await.ran());
        let forgery =
            shop.standard_signed(path, "msg_1", "{}", &of_standard("whsec_YW5vdGhlcg==", "msg_1", SENT, "{}"));
        assert_eq!(refused(&shop, forgery).await, forged("idempotency-signature-invalid"), "{path}");
        assert!(seen(shop.standard(path, "msg_1", "{}").send().await.unwrap()).await.replayed, "{path}");
    }
}

#[tokio::test]
async fn clause_11_an_event_without_an_id_is_refused_before_the_store() {
    let shop = open().await;
    assert!(shop.event("/held", &event("evt_1")).await.ran()); // else Postgres has no version to compare
    for body in ["{}", "[]", r#"{"id":7}"#, r#"{"id":""}"#, "no json"] {
        assert_eq!(
            refused(&shop, shop.stripe_text("/held", body)).await,
            forged("idempotency-event-invalid"),
            "{body}"
        );
    }
    let signature = of_standard(STANDARD, "", SENT, "{}");
    let without = shop.client.post(shop.url("/standard")).header("webhook-signature", signature).body("{}");
    assert_eq!(refused(&shop, without).await, forged("idempotency-event-invalid"));
}

#[tokio::test]
async fn a_refusal_comes_in_the_house_s_own_format() {
    let format = |problem: idem_runtime::Problem| {
        axum::response::IntoResponse::into_response((axum::http::StatusCode::IM_A_TEAPOT, problem.type_uri))
    };
    let shop = open_with(|builder| builder.problem_response(format)).await;
    for path in ["/held", "/by-header"] {
        let response = shop.client.post(shop.url(path)).json(&json!({})).send().await.unwrap();
        assert_eq!(response.status(), 418, "{path}");
    }
}

/// The hook decides by what is true of users; a sender has none of it, and would deliver for days.
#[tokio::test]
async fn clause_43_a_sender_that_may_not_see_the_answer_is_told_that_there_was_one() {
    let forbids = |builder: idem_runtime::Builder| {
        builder.authorize_replay(|_| async { false }).operations_at("/operations/{id}")
    };
    let shop = open_with(forbids).await;
    for (path, status) in [("/held", 202), ("/whole", 422)] {
        let sent = json!({"id": "evt_1", "status": status});
        let first = shop.event(path, &sent).await;
        assert_eq!((first.status, first.body.is_empty(), first.replayed), (status, false, false));
        let again = shop.event(path, &sent).await;
        assert_eq!((again.status, again.body.as_str(), again.location), (status, "", None), "{path}");
        assert!(again.replayed, "{path}");
    }
    assert_eq!(shop.probe.effects(), 2);
    let id = shop.runtime.find("webhook.held", idem_runtime::Global, "evt_1").await.unwrap().unwrap().id;
    let fetched = shop.runtime.operation(id, idem_runtime::Global).await;
    assert_eq!(fetched.status(), 403, "whoever fetches it has signed nothing");
}
