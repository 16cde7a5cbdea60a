//! Parts of a request's way, without a network: fingerprints, keys and replays. `cargo bench -p idem-bench`.
#![allow(clippy::unwrap_used, reason = "what is measured here cannot fail, or the numbers mean nothing")]

use axum::{
    Json, Router,
    body::Body,
    http::{Request, StatusCode, header::CONTENT_TYPE},
    routing::post,
};
use divan::{Bencher, black_box, counter::BytesCount};
use idem_runtime::{MemoryStore, Runtime, StoredResponse, idempotent, private::measured};
use tower::ServiceExt;

fn main() {
    divan::main();
}

/// Order lines, with members out of order, numbers and text that is escaped, until there are so many bytes.
fn order(bytes: usize) -> String {
    let mut json = r#"{"customer":"cus_9s6XKzkNRiz8i3","currency":"EUR","lines":["#.to_owned();
    for nr in 0.. {
        let line = format!(
            r#"{{"sku":"A-{nr:06}","quantity":{},"price":"{}.90","note":"for \"J\u00e4ger\", gift wrapped","taxes":[{{"rate":19.0,"included":true}}]}}"#,
            nr % 7 + 1,
            nr % 90 + 10,
        );
        json.push_str(&line);
        if json.len() + line.len() >= bytes {
            break;
        }
        json.push(',');
    }
    json.push_str("]}");
    json
}

#[divan::bench(args = [1024, 10 * 1024, 1024 * 1024])]
fn fingerprint_of_json(bencher: Bencher<'_, '_>, bytes: usize) {
    let json = order(bytes);
    bencher.counter(BytesCount::new(json.len())).bench(|| measured::fingerprint_of_json(black_box(json.as_bytes())));
}

#[divan::bench(args = [
    "\"8e03978e-40d5-43e8-bc93-6894a57f9324\"",
    "8e03978e-40d5-43e8-bc93-6894a57f9324",
])]
fn key(bencher: Bencher<'_, '_>, line: &str) {
    assert!(measured::is_key(line.as_bytes()));
    bencher.bench(|| measured::is_key(black_box(line.as_bytes())));
}

/// From what is stored to the response: 300 bytes of JSON with three headers.
#[divan::bench]
fn replay_of_what_is_stored(bencher: Bencher<'_, '_>) {
    let response = (
        StatusCode::CREATED,
        [("content-type", "application/json"), ("location", "/charges/ch_1"), ("etag", "\"7\"")],
        "7".repeat(300),
    );
    let stored = runtime().block_on(StoredResponse::http(response)).unwrap();
    assert!(measured::replay(&stored).is_some());
    bencher.bench(|| measured::replay(black_box(&stored)));
}

#[idempotent(scope = global, op = "charge", ttl = "24h")]
async fn charge(Json(amount): Json<u64>) -> (StatusCode, String) {
    (StatusCode::CREATED, format!("{amount:0300}"))
}

/// All of it: routing, extraction, fingerprint, key, local cache, response.
#[divan::bench]
fn hot_replay_without_a_network(bencher: Bencher<'_, '_>) {
    let tokio = runtime();
    let idem = tokio.block_on(Runtime::builder(MemoryStore::volatile()).namespace("bench").build()).unwrap();
    let router = Router::new().route("/", post(charge)).with_state(idem);
    let send = || {
        let request = Request::post("/").header(CONTENT_TYPE, "application/json").header("idempotency-key", "\"one\"");
        tokio.block_on(router.clone().oneshot(request.body(Body::from("129900")).unwrap())).unwrap()
    };
    assert_eq!(send().status(), StatusCode::CREATED);
    assert_eq!(send().headers()["idempotent-replayed"], "true");
    bencher.bench(send);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
