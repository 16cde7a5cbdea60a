//! What "the same payload" means, over the wire: scenarios 6 … 8 and 74, C30, C31, C37, C99.

use std::hash::{DefaultHasher, Hasher};

use axum::{
    Form, Router,
    body::Bytes,
    extract::{Multipart, State},
    routing::post,
};
use idem_runtime::idempotent;
use reqwest::Body;
use serde_json::json;

use crate::support::{App, Probe, Shop, Tenant, handler, refusal, seen};

handler!(whole, op = "fingerprint.json", ttl = "24h");
handler!(fields, op = "fingerprint.fields", ttl = "24h", payload = fields("/amount", "/card/number"));
handler!(raw, op = "fingerprint.raw", ttl = "24h", payload = raw);
handler!(unbound, op = "fingerprint.none", ttl = "24h", payload = none);

#[idempotent(scope = "tenant", op = "fingerprint.bytes", ttl = "24h")]
async fn bytes(tenant: Tenant, State(probe): State<Probe>, body: Bytes) -> String {
    probe.effect("bytes");
    digest(&body)
}

/// Whether nobody else keeps them.
#[idempotent(scope = "tenant", op = "fingerprint.sole", ttl = "24h")]
async fn sole(tenant: Tenant, State(probe): State<Probe>, body: Bytes) -> String {
    probe.effect("sole");
    body.is_unique().to_string()
}

#[idempotent(scope = "tenant", op = "fingerprint.form", ttl = "24h")]
async fn form(tenant: Tenant, State(probe): State<Probe>, Form(pairs): Form<Vec<(String, String)>>) -> String {
    probe.effect("form");
    format!("{pairs:?}")
}

#[idempotent(scope = "tenant", op = "fingerprint.multipart", ttl = "24h")]
async fn multipart(tenant: Tenant, State(probe): State<Probe>, mut parts: Multipart) -> String {
    let mut received = Vec::new();
    while let Some(part) = parts.next_field().await.unwrap() {
        received.push(part.bytes().await.unwrap().len());
    }
    probe.effect("multipart");
    format!("{received:?}")
}

fn router() -> Router<App> {
    Router::new()
        .route("/json", post(whole))
        .route("/fields", post(fields))
        .route("/raw", post(raw))
        .route("/none", post(unbound))
        .route("/bytes", post(bytes))
        .route("/sole", post(sole))
        .route("/form", post(form))
        .route("/multipart", post(multipart))
}

fn digest(bytes: &[u8]) -> String {
    let mut hash = DefaultHasher::new();
    hash.write(bytes);
    format!("{} bytes, {:x}", bytes.len(), hash.finish())
}

/// What a request is compared by.
struct Sent<'a>(&'a str, &'a str, Body);

fn json_to<'a>(path: &'a str, text: &'static str) -> Sent<'a> {
    Sent(path, "application/json", text.into())
}

fn form_of(text: &'static str) -> Sent<'static> {
    Sent("/form", "application/x-www-form-urlencoded", text.into())
}

/// Whether the second request counts as a repeat of the first; anything but a replay or a mismatch is a failure.
async fn repeats(shop: &Shop, first: Sent<'_>, second: Sent<'_>) -> bool {
    let key = uuid::Uuid::new_v4().to_string();
    let send =
        |Sent(path, media_type, body)| shop.post(path, &key).header("content-type", media_type).body(body).send();
    let before = shop.probe.effects();
    let first = seen(send(first).await.unwrap()).await;
    assert!(!first.replayed && first.status < 300, "{first:?}");
    let second = send(second).await.unwrap();
    assert_eq!(shop.probe.effects(), before + 1, "one effect");
    if second.headers().contains_key("idempotent-replayed") {
        assert_eq!(seen(second).await.body, first.body);
        return true;
    }
    assert_eq!(refusal(second).await, (422, "idempotency-key-reused".to_owned()));
    false
}

async fn json_repeats(shop: &Shop, first: &'static str, second: &'static str) -> bool {
    repeats(shop, json_to("/json", first), json_to("/json", second)).await
}

/// Of more than one piece, so that they are put together here.
#[tokio::test]
async fn a_request_whose_body_runs_keeps_no_bytes_that_its_handler_has() {
    let shop = Shop::open(router()).await;
    let sent = shop.post("/sole", "k1").body(vec![b'x'; 500_000]).send();
    assert_eq!(seen(sent.await.unwrap()).await.body, "true");
}

#[tokio::test]
async fn scenario_06_member_order_and_white_space_do_not_matter() {
    let shop = Shop::open(router()).await;
    assert!(json_repeats(&shop, r#"{"amount":10,"card":"a"}"#, "{\n  \"card\": \"a\",\t\"amount\": 10 }").await);
}

#[tokio::test]
async fn scenario_07_the_exact_text_of_a_number_matters() {
    let shop = Shop::open(router()).await;
    assert!(!json_repeats(&shop, r#"{"amount":9007199254740993}"#, r#"{"amount":9007199254740992}"#).await);
    assert!(json_repeats(&shop, r#"{"amount":9007199254740993}"#, r#"{"amount": 9007199254740993}"#).await);
    // No library may decide for its users whether two texts are one number.
    assert!(!json_repeats(&shop, r#"{"amount":10}"#, r#"{"amount":10.0}"#).await);
    assert!(!json_repeats(&shop, r#"{"amount":1e2}"#, r#"{"amount":100}"#).await);
}

#[tokio::test]
async fn scenario_08_with_a_duplicate_member_the_bytes_count() {
    let shop = Shop::open(router()).await;
    let twice = r#"{"amount":10,"amount":20}"#;
    assert!(json_repeats(&shop, twice, twice).await);
    assert!(!json_repeats(&shop, twice, r#"{"amount":20}"#).await);
    assert!(!json_repeats(&shop, twice, r#"{"amount":20,"amount":10}"#).await);
}

#[tokio::test]
async fn case_31_json_is_compared_by_value_at_every_depth() {
    let shop = Shop::open(router()).await;
    let first = r#"{"a":1,"b":{"x":1,"y":[1,2]}}"#;
    assert!(json_repeats(&shop, first, r#"{ "b":{"y":[1, 2],"x":1}, "a":1 }"#).await);
    assert!(json_repeats(&shop, r#"{"a":"A"}"#, r#"{"\u0061":"\u0041"}"#).await);
    for other in [
        r#"{"a":"1","b":{"x":1,"y":[1,2]}}"#,
        r#"{"a":1,"b":{"x":1,"y":[2,1]}}"#,
        r#"{"a":1,"b":{"x":1,"y":[1,2],"z":null}}"#,
        r#"{"a":1,"b":{"x":1}}"#,
    ] {
        assert!(!json_repeats(&shop, first, other).await, "{other}");
    }
    let raw = |text| json_to("/raw", text);
    assert!(!repeats(&shop, raw(r#"{"a":1}"#), raw(r#"{"a": 1}"#)).await, "byte for byte with `payload = raw`");
    assert!(repeats(&shop, raw(r#"{"a":1}"#), raw(r#"{"a":1}"#)).await);
}

/// Sizes 0 … 1 MiB; a retry may be framed otherwise than the first request.
#[tokio::test]
async fn case_30_every_byte_counts_and_arrives_at_any_size_and_framing() {
    let shop = Shop::open(router()).await;
    let whole = |bytes: &[u8]| Sent("/bytes", "application/octet-stream", bytes.to_vec().into());
    let chunked = |bytes: &[u8]| {
        let chunks: Vec<_> = bytes.chunks(7001).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec())).collect();
        Sent("/bytes", "application/octet-stream", Body::wrap_stream(futures_util::stream::iter(chunks)))
    };
    for size in [0, 1, 29 << 10, 31 << 10, 1 << 20] {
        let content: Vec<u8> = (0..size).map(|n: u32| (n % 251) as u8).collect();
        assert!(repeats(&shop, whole(&content), chunked(&content)).await, "{size}");
        assert!(repeats(&shop, chunked(&content), whole(&content)).await, "{size}");
        let Some(last) = content.len().checked_sub(1) else { continue };
        let mut other = content.clone();
        other[last] ^= 1;
        assert!(!repeats(&shop, whole(&content), whole(&other)).await, "{size}, last byte changed");
        assert!(!repeats(&shop, chunked(&content), chunked(&content[..last])).await, "{size}, last byte missing");
        let Sent(path, media_type, body) = chunked(&content);
        let answer = shop.post(path, &format!("echo {size}").replace(' ', "-")).header("content-type", media_type);
        let answer = seen(answer.body(body).send().await.unwrap()).await;
        assert_eq!(answer.body, digest(&content), "the handler gets what was sent");
    }
}

#[tokio::test]
async fn case_37_the_query_belongs_to_the_payload() {
    let shop = Shop::open(router()).await;
    let at = |path| json_to(path, "{}");
    assert!(!repeats(&shop, at("/json"), at("/json?dry_run=true")).await);
    assert!(!repeats(&shop, at("/json?a=1"), at("/json?a=2")).await);
    assert!(repeats(&shop, at("/json?a=1&b=2"), at("/json?b=2&a=1")).await, "order between names");
    assert!(!repeats(&shop, at("/json?a=1&a=2"), at("/json?a=2&a=1")).await, "order within a name");
    assert!(repeats(&shop, at("/json?a=%41"), at("/json?a=A")).await, "decoded");
}

#[tokio::test]
async fn clause_30_a_media_type_counts_without_its_parameters() {
    let shop = Shop::open(router()).await;
    let of = |media_type| Sent("/bytes", media_type, "{\"a\":1}".into());
    assert!(repeats(&shop, of("application/json"), of("Application/JSON; charset=utf-8")).await);
    assert!(!repeats(&shop, of("application/json"), of("text/plain")).await);
}

#[tokio::test]
async fn clause_30_a_form_is_compared_by_its_pairs() {
    let shop = Shop::open(router()).await;
    assert!(repeats(&shop, form_of("a=1&b=x+y"), form_of("b=x%20y&a=1")).await);
    assert!(!repeats(&shop, form_of("a=1&b=2"), form_of("a=1&b=3")).await);
    assert!(!repeats(&shop, form_of("a=1&a=2"), form_of("a=2&a=1")).await);
}

#[tokio::test]
async fn case_99_selected_fields_are_all_that_counts() {
    let shop = Shop::open(router()).await;
    let of = |text| json_to("/fields", text);
    let first = r#"{"amount":10,"card":{"number":"1","cvc":"2"},"sent_at":1}"#;
    assert!(repeats(&shop, of(first), of(r#"{"sent_at":2,"card":{"number":"1"},"amount":10}"#)).await);
    assert!(!repeats(&shop, of(first), of(r#"{"amount":11,"card":{"number":"1"}}"#)).await);
    assert!(!repeats(&shop, of(first), of(r#"{"amount":10,"card":{"number":"2"}}"#)).await);
    assert!(!repeats(&shop, of(first), of(r#"{"amount":10}"#)).await, "a missing member is a value");
    assert!(!repeats(&shop, of(r#"{"amount":10}"#), of(r#"{"amount":10,"card":{"number":null}}"#)).await);
}

#[tokio::test]
async fn clause_30_with_no_payload_the_key_alone_decides() {
    let shop = Shop::open(router()).await;
    assert!(repeats(&shop, json_to("/none", r#"{"a":1}"#), json_to("/none?x=1", r#"{"a":2}"#)).await);
}

#[tokio::test]
async fn clause_30_an_unknown_older_algorithm_counts_as_a_match() {
    let shop = Shop::open(router()).await;
    shop.post("/json", "k1").json(&json!({"amount": 10})).send().await.unwrap();
    shop.sql(&format!("update idem_key set fp_alg = 0, fp = {}", shop.place.bytes(&[0; 32]))).await;
    let again = seen(shop.post("/json", "k1").json(&json!({"amount": 10})).send().await.unwrap()).await;
    assert!(again.replayed, "a false match replays; a false mismatch would drive the client to a new key");
}

#[tokio::test]
async fn scenario_74_multipart_with_a_new_boundary_is_the_same_payload() {
    let shop = Shop::open(router()).await;
    let send = |key: &str, content: &'static [u8], name: &'static str| {
        let file = reqwest::multipart::Part::bytes(content).file_name(name);
        let parts = reqwest::multipart::Form::new().text("title", "photo").part("file", file);
        let boundary = parts.boundary().to_owned();
        let request = shop.post("/multipart", key).multipart(parts).send();
        async move { (request.await.unwrap(), boundary) }
    };
    let (first, boundary) = send("k1", b"\x89PNG\r\n\x00", "a.png").await;
    assert_eq!(first.status(), 200);
    let (again, other_boundary) = send("k1", b"\x89PNG\r\n\x00", "a.png").await;
    assert_ne!(boundary, other_boundary);
    assert!(seen(again).await.replayed);
    for (content, name) in [(b"\x89PNG\r\n\x01", "a.png"), (b"\x89PNG\r\n\x00", "b.png")] {
        let (other, _) = send("k1", content, name).await;
        assert_eq!(refusal(other).await, (422, "idempotency-key-reused".to_owned()));
    }
    assert_eq!(shop.probe.effects(), 1);
}
