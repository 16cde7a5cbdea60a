//! The key: scenarios 12 … 23, C09, C55, C87, C89.

use axum::{
    Form, Json, Router,
    extract::{Path, State},
    response::Response,
    routing::post,
};
use idem_runtime::idempotent;
use serde::Deserialize;
use serde_json::json;

use crate::support::{
    App, Plan, Probe, Shop, Tenant, handler, problem,
    raw::{Raw, post_head, raw},
    refusal, seen,
};

handler!(required, op = "keys.required", ttl = "24h");
handler!(optional, op = "keys.optional", ttl = "24h", optional);
handler!(paypal, op = "keys.paypal", ttl = "24h", header = "PayPal-Request-Id");
handler!(uuid_only, op = "keys.uuid", ttl = "24h", key_format = uuid);

#[derive(Deserialize)]
struct Donation {
    key: String,
    amount: u64,
}

#[idempotent(scope = global, op = "keys.form", ttl = "24h", key = form.key)]
async fn donate(State(probe): State<Probe>, Form(form): Form<Donation>) -> String {
    probe.effect(format!("{} donated", form.amount));
    probe.effects().to_string()
}

#[idempotent(scope = "tenant", op = "keys.body", ttl = "24h", key = order.key, payload = fields("/amount"))]
async fn order(tenant: Tenant, State(probe): State<Probe>, Json(order): Json<Donation>) -> String {
    probe.effect(format!("{} ordered", order.amount));
    probe.effects().to_string()
}

#[idempotent(scope = "tenant", op = "keys.path", ttl = "24h", key = id)]
async fn put(tenant: Tenant, State(probe): State<Probe>, Path(id): Path<u64>, Json(plan): Json<Plan>) -> Response {
    probe.effect(format!("put {id}"));
    probe.perform(&plan).await
}

fn router() -> Router<App> {
    Router::new()
        .route("/required", post(required))
        .route("/optional", post(optional))
        .route("/paypal", post(paypal))
        .route("/uuid", post(uuid_only))
        .route("/donations", post(donate))
        .route("/orders", post(order))
        .route("/items/{id}", post(put))
}

/// A POST whose key lines are these bytes.
async fn keyed(shop: &Shop, path: &str, lines: &[&[u8]]) -> Raw {
    let lines: Vec<Vec<u8>> = lines.iter().map(|value| [b"idempotency-key: ", *value].concat()).collect();
    let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).chain([b"content-length: 2".as_slice()]).collect();
    raw(shop.addr(), &[post_head(path, &lines).as_slice(), b"{}"].concat()).await
}

/// Refused as no key, and nothing was written or run.
async fn assert_invalid(shop: &Shop, path: &str, lines: &[&[u8]]) {
    let answer = keyed(shop, path, lines).await;
    let shown: Vec<_> = lines.iter().map(|line| String::from_utf8_lossy(line)).collect();
    assert_eq!((answer.status, answer.slug().as_str()), (400, "idempotency-key-invalid"), "{shown:?}");
    assert_eq!((shop.records().await, shop.probe.effects()), (0, 0), "{shown:?}");
}

/// Two lines that are one key.
async fn assert_same(shop: &Shop, path: &str, first: &[u8], second: &[u8]) {
    let (before, shown) = (shop.probe.effects(), String::from_utf8_lossy(second));
    assert_eq!(keyed(shop, path, &[first]).await.status, 201, "{shown}");
    let again = keyed(shop, path, &[second]).await;
    assert!(again.is_replay(), "{shown}: {again:?}");
    assert_eq!(shop.probe.effects(), before + 1);
}

#[tokio::test]
async fn scenario_12_a_request_without_a_key_is_refused() {
    let shop = Shop::open(router()).await;
    let request = shop.client.post(shop.url("/required")).bearer_auth("acme").json(&json!({}));
    let told = problem(request.send().await.unwrap()).await; // its `Link` is looked at there
    assert_eq!((told.status, told.slug.as_str()), (400, "idempotency-key-missing"));
    assert_eq!((&told.body["safe_new_key"], &told.body["retry"]), (&json!(true), &json!("new-key")));
    assert_eq!((shop.records().await, shop.probe.effects()), (0, 0));
}

/// Whoever reads it may not be who wrote the client, and a gateway may have dropped the header.
#[tokio::test]
async fn clause_08_a_refusal_of_a_key_names_its_header_and_form() {
    let shop = Shop::open_with(router(), |builder| builder.header("X-Request-Key")).await;
    let detail = async |request: reqwest::RequestBuilder, slug: &str| {
        let told = problem(request.bearer_auth("acme").json(&json!({})).send().await.unwrap()).await;
        assert_eq!((told.status, told.slug.as_str()), (400, slug));
        told.body["detail"].as_str().unwrap().to_owned()
    };
    for (path, header, form) in [
        ("/required", "X-Request-Key", "1 to 255 visible ASCII characters"),
        ("/paypal", "PayPal-Request-Id", "1 to 255 visible ASCII characters"),
        ("/uuid", "X-Request-Key", "a hyphenated UUID"),
    ] {
        let request = || shop.client.post(shop.url(path));
        for told in [
            detail(request(), "idempotency-key-missing").await,
            detail(request().header(header, "a, b"), "idempotency-key-invalid").await,
        ] {
            assert!(told.contains(&format!("in the header `{header}`")) && told.contains(form), "{told}");
        }
    }
    let order = shop.client.post(shop.url("/orders")).bearer_auth("acme").json(&json!({"key": "", "amount": 1}));
    let told = problem(order.send().await.unwrap()).await;
    assert!(!told.body["detail"].as_str().unwrap().contains("header"), "there is none: {}", told.body);
}

/// C09 and C55: optional means unprotected, not one key for all.
#[tokio::test]
async fn scenario_13_where_a_key_is_optional_a_request_without_one_just_runs() {
    let shop = Shop::open(router()).await;
    for (n, amount) in [1, 2, 1].into_iter().enumerate() {
        let request = shop.client.post(shop.url("/optional")).bearer_auth("acme").json(&json!({"amount": amount}));
        let answer = request.send().await.unwrap();
        assert_eq!(answer.headers()["idempotency-status"], "ignored");
        assert_eq!(seen(answer).await.body, format!("effect {}", n + 1));
    }
    assert_eq!((shop.records().await, shop.asked()), (0, 0), "nothing is stored");
}

/// C09: the other half.
#[tokio::test]
async fn case_09_an_optional_key_protects_where_it_is_given() {
    let shop = Shop::open(router()).await;
    assert_same(&shop, "/optional", b"k1", b"k1").await;
    let invalid = keyed(&shop, "/optional", &[b"a, b"]).await;
    assert_eq!((invalid.status, shop.probe.effects()), (400, 1), "a bad key is not no key");
}

#[tokio::test]
async fn scenario_14_quoted_and_bare_are_one_key() {
    let shop = Shop::open(router()).await;
    assert_same(&shop, "/required", b"\"abc\"", b"abc").await;
    assert_same(&shop, "/required", b"ABC", b" \"ABC\"\t").await; // the case is kept
}

#[tokio::test]
async fn scenario_15_a_bare_uuid_may_start_with_a_digit() {
    let shop = Shop::open(router()).await;
    assert_same(
        &shop,
        "/required",
        b"8e03978e-40d5-43dd-bc93-6894a57f9324",
        b"\"8e03978e-40d5-43dd-bc93-6894a57f9324\"",
    )
    .await;
}

#[tokio::test]
async fn scenario_16_two_header_lines_are_refused_even_if_equal() {
    let shop = Shop::open(router()).await;
    assert_invalid(&shop, "/required", &[b"k1", b"k1"]).await;
    assert_invalid(&shop, "/optional", &[b"k1", b"k1"]).await;
}

#[tokio::test]
async fn scenario_17_two_header_lines_are_not_joined() {
    let shop = Shop::open(router()).await;
    assert_invalid(&shop, "/required", &[b"\"ab", b"cd\""]).await;
}

#[tokio::test]
async fn scenario_18_a_comma_in_a_bare_key_is_refused() {
    let shop = Shop::open(router()).await;
    assert_invalid(&shop, "/required", &[b"a, b"]).await;
    assert_invalid(&shop, "/required", &[b"a,b"]).await;
    assert_same(&shop, "/required", b"\"a, b\"", b"\"a, b\"").await;
}

#[tokio::test]
async fn scenario_19_the_length_counts_after_unquoting() {
    let shop = Shop::open(router()).await;
    assert_invalid(&shop, "/required", &[&[b'a'; 256]]).await;
    assert_invalid(&shop, "/required", &[&[b"\"".as_slice(), &[b'a'; 256], b"\""].concat()]).await;
    let longest = [b'a'; 255];
    assert_same(&shop, "/required", &longest, &[b"\"".as_slice(), &longest, b"\""].concat()).await;
    let escaped = [b"\"".as_slice(), &b"\\\\".repeat(255), b"\""].concat();
    assert_same(&shop, "/required", &escaped, &escaped).await;
}

#[tokio::test]
async fn scenario_20_what_is_no_key_is_refused() {
    let shop = Shop::open(router()).await;
    for line in ["", "  ", "\"\"", "\"abc", "abc\"", "a b", "a;b", "a\\b", "schlüssel", "\"schlüssel\""] {
        assert_invalid(&shop, "/required", &[line.as_bytes()]).await;
    }
    assert_invalid(&shop, "/required", &[b"caf\xe9"]).await; // Latin-1
    assert_invalid(&shop, "/required", &[b"\"a\tb\""]).await;
    for line in [b"a\0b", b"a\x01b", b"a\x7fb"] {
        let answer = keyed(&shop, "/required", &[line]).await; // hyper itself may refuse these
        assert_eq!((answer.status, shop.records().await), (400, 0));
    }
}

#[tokio::test]
async fn scenario_21_parameters_of_a_quoted_key_are_ignored() {
    let shop = Shop::open(router()).await;
    assert_same(&shop, "/required", b"\"abc\";v=1", b"abc").await;
}

#[tokio::test]
async fn case_89_the_text_of_an_unset_variable_is_no_key() {
    let shop = Shop::open(router()).await;
    for line in ["undefined", "null", "None", "NaN", "\"undefined\"", "\"null\"", "\"[object Object]\""] {
        assert_invalid(&shop, "/required", &[line.as_bytes()]).await;
    }
}

#[tokio::test]
async fn case_87_long_keys_are_refused_not_cut() {
    let shop = Shop::open(router()).await;
    let random = |length: usize| {
        let digits: String = (0..=length / 32).map(|_| uuid::Uuid::new_v4().simple().to_string()).collect();
        digits[..length].to_owned().into_bytes()
    };
    for length in [1, 255] {
        assert_eq!(keyed(&shop, "/required", &[&random(length)]).await.status, 201, "{length}");
    }
    for long in [random(256), random(2700), random(9000), vec![b'a'; 9000]] {
        let answer = keyed(&shop, "/required", &[&long]).await;
        assert_eq!((answer.status, answer.slug().as_str()), (400, "idempotency-key-invalid"));
    }
    let (mut one, mut other) = (vec![b'a'; 255], vec![b'a'; 255]);
    (one[254], other[254]) = (b'1', b'2');
    for key in [one, other] {
        assert_eq!(keyed(&shop, "/required", &[&key]).await.status, 201, "equal but for the last byte");
    }
    assert_eq!(shop.probe.effects(), 4);
}

#[tokio::test]
async fn clause_11_the_header_can_be_another_one() {
    let shop = Shop::open_with(router(), |builder| builder.header("X-Request-Key")).await;
    let send = |path: &str, header: &str| {
        shop.client.post(shop.url(path)).bearer_auth("acme").header(header, "k1").json(&json!({})).send()
    };
    for (path, header) in [("/paypal", "paypal-request-id"), ("/required", "x-request-key")] {
        let wrong = send(path, "idempotency-key").await.unwrap();
        assert_eq!(refusal(wrong).await, (400, "idempotency-key-missing".to_owned()), "{path}");
        let first = seen(send(path, header).await.unwrap()).await;
        let again = seen(send(path, header).await.unwrap()).await;
        assert_eq!((first.ran(), again.replayed), (true, true), "{path}");
    }
}

#[tokio::test]
async fn clause_09_a_key_can_have_to_be_a_uuid() {
    let shop = Shop::open(router()).await;
    for line in ["k1", "8e03978e40d543ddbc936894a57f9324", "{8e03978e-40d5-43dd-bc93-6894a57f9324}"] {
        assert_invalid(&shop, "/uuid", &[line.as_bytes()]).await;
    }
    let (lower, upper) = (b"8e03978e-40d5-43dd-bc93-6894a57f9324", b"\"8E03978E-40D5-43DD-BC93-6894A57F9324\"");
    assert_same(&shop, "/uuid", lower, upper).await;
}

#[tokio::test]
async fn scenario_23_a_form_submitted_twice_has_one_effect() {
    let shop = Shop::open(router()).await;
    let submit = |key: &str, amount: &str| {
        shop.client.post(shop.url("/donations")).form(&[("key", key), ("amount", amount)]).send()
    };
    let first = seen(submit("k1", "5").await.unwrap()).await;
    let again = seen(submit("k1", "5").await.unwrap()).await;
    assert_eq!((first.ran(), again.replayed, &again.body), (true, true, &first.body));
    assert!(seen(submit("k1", "6").await.unwrap()).await.replayed, "a key of one's own says what it is about");
    assert_eq!(shop.probe.log(), ["5 donated"]);
}

#[tokio::test]
async fn clause_11_a_key_from_the_body_or_the_path() {
    let shop = Shop::open(router()).await;
    let send =
        |path: &str, body: serde_json::Value| shop.client.post(shop.url(path)).bearer_auth("acme").json(&body).send();
    let order = |key: &str, amount: u64| send("/orders", json!({"key": key, "amount": amount}));
    assert!(seen(order("k1", 5).await.unwrap()).await.ran());
    assert!(seen(order("k1", 5).await.unwrap()).await.replayed);
    assert_eq!(refusal(order("k1", 6).await.unwrap()).await, (422, "idempotency-key-reused".to_owned()));
    assert!(seen(send("/items/1", json!({})).await.unwrap()).await.ran());
    assert!(seen(send("/items/1", json!({"any": "payload"})).await.unwrap()).await.replayed);
    assert!(seen(send("/items/2", json!({})).await.unwrap()).await.ran());
    assert_eq!(shop.probe.log(), ["5 ordered", "put 1", "effect 3", "put 2", "effect 5"]);
}

#[tokio::test]
async fn clause_11_a_key_of_an_expression_has_1_to_1024_bytes() {
    let shop = Shop::open(router()).await;
    let order = |key: String| {
        let body = json!({"key": key, "amount": 5});
        shop.client.post(shop.url("/orders")).bearer_auth("acme").json(&body).send()
    };
    for bad in [String::new(), "é".repeat(513)] {
        assert_eq!(refusal(order(bad).await.unwrap()).await, (400, "idempotency-key-invalid".to_owned()));
    }
    assert_eq!((shop.records().await, shop.probe.effects()), (0, 0));
    for any in ["é".repeat(512), "a, \"b\"; undefined\0".to_owned(), "undefined".to_owned()] {
        assert!(seen(order(any.clone()).await.unwrap()).await.ran(), "hashed as it is: {any}");
        assert!(seen(order(any).await.unwrap()).await.replayed);
    }
}

/// The key cannot be known, so there is nothing to look up.
#[tokio::test]
async fn clause_11_where_the_body_holds_the_key_its_rejection_is_the_answer() {
    let shop = Shop::open(router()).await;
    let bad = shop.client.post(shop.url("/orders")).bearer_auth("acme").json(&json!({"key": "k1"}));
    let answer = bad.send().await.unwrap();
    assert_eq!((answer.status().as_u16(), shop.asked()), (422, 0));
    assert!(answer.text().await.unwrap().contains("missing field `amount`"), "the extractor's own words");
}
