//! A replay is what was sent: scenarios 71 … 73, C52, C81, C82.

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use idem_runtime::idempotent;
use reqwest::header::HeaderMap;
use serde_json::json;
use tower_http::{compression::CompressionLayer, decompression::RequestDecompressionLayer};

use crate::support::{App, Plan, Probe, Shop, Tenant, handler, seen};

handler!(charge, op = "replay.charge", ttl = "24h");

type Lines = &'static [(&'static str, &'static [u8])];

/// Speak of the answer.
const KEPT: Lines = &[
    ("content-type", b"application/json; charset=utf-8"),
    ("content-language", b"de"),
    ("content-encoding", b"x-house"),
    ("vary", b"accept-encoding"),
    ("location", b"/things/1"),
    ("etag", b"\"v1\""),
    ("content-disposition", b"attachment; filename=\"a,b.txt\""),
    ("link", b"</things?page=2>; rel=\"next\""),
    ("link", b"</things>; rel=\"up\", </>; rel=\"start\""),
    ("warning", b"110 - \"stale\" \"Wed, 21 Oct 2015 07:28:00 GMT\""),
    ("x-name", b"caf\xe9"),
    ("repr-digest", b"sha-256=:AAAA:"),
];

/// Speak of one message, one caller or one moment.
const DROPPED: Lines = &[
    ("set-cookie", b"sid=1; Expires=Wed, 21 Oct 2015 07:28:00 GMT"),
    ("set-cookie", b"theme=dark"),
    ("authorization", b"Bearer secret"),
    ("www-authenticate", b"Basic realm=\"x\""),
    ("proxy-authenticate", b"Basic"),
    ("clear-site-data", b"\"cookies\""),
    ("connection", b"x-hop"),
    ("x-hop", b"named by connection"),
    ("keep-alive", b"timeout=5"),
    ("trailer", b"x-sum"),
    ("via", b"1.1 gateway"),
    ("server", b"shop/1"),
    ("age", b"5"),
    ("retry-after", b"7"),
    ("ratelimit-remaining", b"3"),
    ("x-ratelimit-limit", b"10"),
    ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ("tracestate", b"a=1"),
    ("baggage", b"a=1"),
    ("x-request-id", b"r1"),
    ("server-timing", b"db;dur=53"),
    ("alt-svc", b"clear"),
    ("access-control-allow-origin", b"*"),
    ("strict-transport-security", b"max-age=1"),
    ("idempotency-status", b"forged"),
];

const LONG_AGO: &str = "Thu, 01 Jan 1970 00:00:00 GMT";

#[idempotent(scope = "tenant", op = "replay.headers", ttl = "24h")]
async fn rich(tenant: Tenant, State(probe): State<Probe>, Json(_): Json<Plan>) -> Response {
    probe.effect("answered");
    let mut response = (StatusCode::CREATED, "{\"answer\":1}").into_response();
    response.headers_mut().clear();
    for (name, value) in KEPT.iter().chain(DROPPED) {
        response.headers_mut().append(HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
    }
    response.headers_mut().insert("date", HeaderValue::from_static(LONG_AGO));
    response
}

#[idempotent(scope = "tenant", op = "replay.long", ttl = "24h")]
async fn long(tenant: Tenant, State(probe): State<Probe>, Json(_): Json<Plan>) -> String {
    probe.effect("answered");
    "all work and no play ".repeat(100)
}

fn router() -> Router<App> {
    Router::new().route("/charge", post(charge)).route("/rich", post(rich)).route("/long", post(long))
}

async fn rich_answer(shop: &Shop) -> (HeaderMap, String) {
    let answer = shop.post("/rich", "k1").json(&json!({})).send().await.unwrap();
    assert_eq!(answer.status(), 201);
    (answer.headers().clone(), answer.text().await.unwrap())
}

fn lines<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a [u8]> {
    headers.get_all(name).iter().map(HeaderValue::as_bytes).collect()
}

fn sent(lines: Lines, name: &str) -> Vec<&'static [u8]> {
    lines.iter().filter(|(other, _)| *other == name).map(|(_, value)| *value).collect()
}

#[tokio::test]
async fn scenario_71_a_replay_is_a_message_of_its_own() {
    let shop = Shop::open(router()).await;
    let (first, body) = rich_answer(&shop).await;
    assert!(!first.contains_key("idempotent-replayed"));
    assert_eq!(first["date"], LONG_AGO, "the first answer goes out as it is");
    assert_eq!(lines(&first, "set-cookie").len(), 2);
    let (replayed, again) = rich_answer(&shop).await;
    assert_eq!(again, body);
    assert_eq!(lines(&replayed, "idempotent-replayed"), [b"true"]);
    assert_ne!(replayed["date"], LONG_AGO);
    assert_eq!(replayed["content-length"], again.len().to_string());
    for (name, _) in DROPPED {
        assert!(!replayed.contains_key(*name), "{name}");
    }
    let ours = ["idempotent-replayed", "date", "content-length"];
    for name in replayed.keys().filter(|name| !ours.contains(&name.as_str())) {
        assert!(!sent(KEPT, name.as_str()).is_empty(), "{name} comes from nowhere");
    }
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn case_81_header_lines_are_replayed_byte_for_byte() {
    let shop = Shop::open(router()).await;
    rich_answer(&shop).await;
    let (replayed, _) = rich_answer(&shop).await;
    for (name, _) in KEPT {
        assert_eq!(lines(&replayed, name), sent(KEPT, name), "{name}");
    }
}

/// On SQLite also the write-ahead log, from which a checkpoint would copy it.
#[tokio::test]
async fn case_52_a_session_is_not_even_stored() {
    let shop = Shop::open(router()).await;
    rich_answer(&shop).await;
    let stored = shop.place.dump().await;
    let holds = |text: &[u8]| stored.windows(text.len()).any(|window| window == text);
    assert!(holds(b"attachment; filename"), "this is where headers are");
    for secret in [b"sid=1".as_slice(), b"theme=dark", b"Bearer secret", b"0af7651916cd43dd", b"k1acme", b"Bearer acme"]
    {
        assert!(!holds(secret), "{}", String::from_utf8_lossy(secret));
    }
}

#[tokio::test]
async fn clause_31_headers_can_be_kept_and_left_out() {
    let configure = |builder: idem_runtime::Builder| {
        builder.keep_header("set-cookie").keep_header("X-Request-Id").omit_header("location").omit_header("X-Name")
    };
    let shop = Shop::open_with(router(), configure).await;
    rich_answer(&shop).await;
    let (replayed, _) = rich_answer(&shop).await;
    assert_eq!(lines(&replayed, "set-cookie"), sent(DROPPED, "set-cookie"));
    assert_eq!(lines(&replayed, "x-request-id"), [b"r1"]);
    for name in ["location", "x-name", "www-authenticate", "connection"] {
        assert!(!replayed.contains_key(name), "{name}");
    }
    assert_eq!(lines(&replayed, "etag"), sent(KEPT, "etag"));
}

#[tokio::test]
async fn case_82_a_replay_does_not_negotiate() {
    let shop = Shop::open(router()).await;
    let accept = |accept: &str| shop.post("/rich", "k1").header("accept", accept).json(&json!({})).send();
    let first = accept("application/json").await.unwrap();
    let again = accept("text/csv").await.unwrap();
    assert!(again.headers().contains_key("idempotent-replayed"));
    assert_eq!((again.status(), &again.headers()["content-type"]), (first.status(), &first.headers()["content-type"]));
    assert_eq!(again.bytes().await.unwrap(), first.bytes().await.unwrap());
}

/// `{"amount":10}`
const GZIPPED: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\x4a\xcc\xcd\x2f\xcd\x2b\x51\xb2\x32\x34\xa8\
    \x05\x00\x60\x7f\x9c\xcf\x0d\x00\x00\x00";

#[tokio::test]
async fn scenario_72_compressed_and_plain_are_one_payload_behind_a_decompressing_layer() {
    let shop = Shop::open(router().layer(RequestDecompressionLayer::new())).await;
    let request = || shop.post("/charge", "k1").header("content-type", "application/json");
    let gzipped = request().header("content-encoding", "gzip").body(GZIPPED).send().await.unwrap();
    let first = seen(gzipped).await;
    assert_eq!((first.status, first.replayed), (201, false));
    let again = seen(request().body(r#"{"amount":10}"#).send().await.unwrap()).await;
    assert_eq!((again.replayed, again.body), (true, first.body));
}

#[tokio::test]
async fn scenario_73_what_is_stored_is_not_compressed() {
    let shop = Shop::open(router().layer(CompressionLayer::new())).await;
    let request = || shop.post("/long", "k1").json(&json!({}));
    let first = request().header("accept-encoding", "gzip").send().await.unwrap();
    assert_eq!(first.headers()["content-encoding"], "gzip");
    assert!(first.bytes().await.unwrap().starts_with(b"\x1f\x8b"));
    let plain = request().send().await.unwrap();
    assert!(plain.headers().contains_key("idempotent-replayed") && !plain.headers().contains_key("content-encoding"));
    assert_eq!(plain.text().await.unwrap(), "all work and no play ".repeat(100));
    let gzipped = request().header("accept-encoding", "gzip").send().await.unwrap();
    assert_eq!(gzipped.headers()["content-encoding"], "gzip", "a replay can be compressed anew");
    assert_eq!(shop.probe.effects(), 1);
}
