//! Requests that do not get as far as a claim: scenarios 70, 75, 76, C101.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
    response::Response,
    routing::{any, post},
};
use idem_runtime::idempotent;
use reqwest::{Body, Method};
use serde_json::json;
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tower_http::limit::RequestBodyLimitLayer;

use crate::support::{
    App, Plan, Probe, Shop, Tenant, handler, problem,
    raw::{answer, post_head},
    refusal, seen,
};

handler!(charge, op = "requests.charge", ttl = "24h");

#[idempotent(scope = "tenant", op = "requests.any", ttl = "24h")]
async fn look(tenant: Tenant, State(probe): State<Probe>) -> Response {
    probe.perform(&Plan::default()).await
}

fn router() -> Router<App> {
    Router::new().route("/charge", post(charge)).route("/any", any(look))
}

/// A payload of so many bytes, and with what a `Plan` ignores.
fn padded(bytes: usize) -> String {
    let frame = json!({"note": ""}).to_string();
    json!({ "note": "x".repeat(bytes - frame.len()) }).to_string()
}

async fn assert_untouched(shop: &Shop) {
    assert_eq!((shop.records().await, shop.probe.effects()), (0, 0));
    let retry = shop.post("/charge", "k1").json(&json!({"amount": 1})).send().await.unwrap();
    assert_eq!(seen(retry).await.status, 201, "the key is free");
}

#[tokio::test]
async fn scenario_70_safe_methods_need_no_key_and_ask_no_store() {
    let shop = Shop::open(router()).await;
    let send = |method: Method| {
        shop.client.request(method, shop.url("/any")).bearer_auth("acme").header("idempotency-key", "k1").send()
    };
    for (n, method) in [Method::GET, Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE].into_iter().enumerate()
    {
        let answer = send(method.clone()).await.unwrap();
        assert_eq!(answer.headers()["idempotency-status"], "ignored", "{method}");
        assert_eq!((answer.status().as_u16(), shop.probe.effects()), (201, n + 1), "{method}");
    }
    let keyless = shop.client.get(shop.url("/any")).bearer_auth("acme").send().await.unwrap();
    assert_eq!((keyless.status().as_u16(), shop.asked()), (201, 0));
}

#[tokio::test]
async fn clause_29_every_other_method_needs_a_key() {
    let shop = Shop::open(router()).await;
    for method in [Method::PUT, Method::PATCH, Method::DELETE, Method::from_bytes(b"SETTLE").unwrap()] {
        let request = || shop.client.request(method.clone(), shop.url("/any")).bearer_auth("acme");
        let keyless = request().send().await.unwrap();
        assert_eq!(refusal(keyless).await, (400, "idempotency-key-missing".to_owned()), "{method}");
        let send = || request().header("idempotency-key", method.as_str()).send();
        let (first, again) = (seen(send().await.unwrap()).await, seen(send().await.unwrap()).await);
        assert_eq!((first.ran(), again.replayed), (true, true), "{method}");
    }
}

#[tokio::test]
async fn scenario_75_a_body_over_the_limit_is_413_and_leaves_no_row() {
    let shop = Shop::open_with(router(), |builder| builder.max_request(64 << 10)).await;
    let send = |key: &str, body: String| {
        shop.post("/charge", key).header("content-type", "application/json").body(body).send()
    };
    let told = problem(send("k1", padded((64 << 10) + 1)).await.unwrap()).await;
    assert_eq!((told.status, told.slug.as_str()), (413, "idempotency-request-too-large"));
    assert_eq!(told.body["safe_new_key"], false);
    assert_untouched(&shop).await;
    assert_eq!(send("k2", padded(64 << 10)).await.unwrap().status(), 201, "the limit itself is fine");
}

/// The peer would send 64 MiB.
#[tokio::test]
async fn case_101_a_chunked_body_is_cut_off_at_the_limit() {
    let shop = Shop::open_with(router(), |builder| builder.max_request(64 << 10)).await;
    let (read, mut write) = TcpStream::connect(shop.addr()).await.unwrap().into_split();
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let writer = tokio::spawn(async move {
        let head = post_head("/charge", &[b"idempotency-key: k1", b"transfer-encoding: chunked"]);
        write.write_all(&head).await.unwrap();
        let chunk = [b"10000\r\n".as_slice(), &[b' '; 1 << 16], b"\r\n"].concat();
        while count.load(Ordering::SeqCst) < 64 << 20 && write.write_all(&chunk).await.is_ok() {
            count.fetch_add(1 << 16, Ordering::SeqCst);
        }
    });
    let answer = answer(read).await;
    writer.await.unwrap();
    assert_eq!((answer.status, answer.slug().as_str()), (413, "idempotency-request-too-large"));
    let sent = sent.load(Ordering::SeqCst);
    assert!(sent < 32 << 20, "early: the rest is what sockets hold, not {sent} bytes");
    assert_untouched(&shop).await;
}

/// C101: the stricter limit wins, whoever sets it.
#[tokio::test]
async fn case_101_a_smaller_limit_outside_holds() {
    let layered = [
        router().layer(DefaultBodyLimit::max(1024)),
        router().layer(RequestBodyLimitLayer::new(1024)),
        router().layer(RequestBodyLimitLayer::new(1024)).layer(DefaultBodyLimit::disable()),
    ];
    for router in layered {
        let shop = Shop::open(router).await;
        let request = || shop.post("/charge", "k1").header("content-type", "application/json");
        let whole = request().body(padded(2000)).send().await.unwrap();
        assert_eq!(whole.status(), 413);
        let content = padded(2000).into_bytes();
        let chunks: Vec<_> = content.chunks(500).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec())).collect();
        let chunked = request().body(Body::wrap_stream(futures_util::stream::iter(chunks))).send().await.unwrap();
        assert_eq!(chunked.status(), 413, "{}", chunked.text().await.unwrap());
        assert_untouched(&shop).await;
    }
}

/// C-40: what a layer outside refuses never touches the key; also a replay can meet it.
#[tokio::test]
async fn clause_40_a_larger_default_limit_does_not_raise_ours() {
    let router = router().layer(DefaultBodyLimit::max(8 << 20));
    let shop = Shop::open_with(router, |builder| builder.max_request(1024)).await;
    let request = shop.post("/charge", "k1").header("content-type", "application/json").body(padded(2000));
    assert_eq!(refusal(request.send().await.unwrap()).await, (413, "idempotency-request-too-large".to_owned()));
    assert_untouched(&shop).await;
}

/// Says 13 bytes, sends 8, and ends its side of the connection.
#[tokio::test]
async fn scenario_76_a_truncated_upload_leaves_no_row() {
    let shop = Shop::open(router()).await;
    let mut stream = TcpStream::connect(shop.addr()).await.unwrap();
    let head = post_head("/charge", &[b"idempotency-key: k1", b"content-length: 13"]);
    stream.write_all(&[head.as_slice(), b"{\"amount"].concat()).await.unwrap();
    stream.shutdown().await.unwrap();
    let answer = answer(stream).await;
    assert_eq!((answer.status, answer.slug().as_str()), (400, "idempotency-request-unreadable"));
    assert_untouched(&shop).await;
}

#[tokio::test]
async fn clause_34_a_body_that_does_not_arrive_in_time_is_unreadable() {
    let shop = Shop::open_with(router(), |builder| builder.read_timeout(Duration::from_millis(200))).await;
    let mut stream = TcpStream::connect(shop.addr()).await.unwrap();
    let head = post_head("/charge", &[b"idempotency-key: k1", b"content-length: 13"]);
    stream.write_all(&[head.as_slice(), b"{\"amount"].concat()).await.unwrap();
    let answer = answer(stream).await;
    assert_eq!((answer.status, answer.slug().as_str()), (400, "idempotency-request-unreadable"));
    assert_untouched(&shop).await;
}
