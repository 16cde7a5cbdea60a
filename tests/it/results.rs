//! Answers that are not stored: scenarios 37 and 38, C07, C28.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody},
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::stream;
use hyper::body::{Frame, SizeHint};
use idem_runtime::{Execution, idempotent};
use serde_json::json;

use crate::support::{App, Fault, Probe, Shop, Tenant, Verb, handler, problem, refusal, seen};

handler!(small, op = "results.small", ttl = "24h");

const MIB: usize = 1 << 20;

#[idempotent(scope = "tenant", op = "results.large", ttl = "24h")]
async fn large(
    tenant: Tenant,
    State(probe): State<Probe>,
    #[idem] exec: Execution,
    size: String,
) -> Result<(StatusCode, Vec<u8>), idem_runtime::Error> {
    probe.effect("large");
    exec.link("gateway", &format!("ch_{}", probe.effects())).await?;
    Ok((StatusCode::CREATED, vec![b'x'; size.parse().unwrap()]))
}

/// Its length cannot be known before it is sent.
#[idempotent(scope = "tenant", op = "results.endless", ttl = "24h")]
async fn endless(tenant: Tenant, State(probe): State<Probe>) -> Response {
    probe.effect("endless");
    let chunks = stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 4096])));
    (StatusCode::CREATED, Body::from_stream(chunks)).into_response()
}

/// Says its length, then breaks off.
#[idempotent(scope = "tenant", op = "results.broken", ttl = "24h")]
async fn broken(tenant: Tenant, State(probe): State<Probe>) -> Response {
    probe.effect("broken");
    Body::new(Broken).into_response()
}

struct Broken;

impl HttpBody for Broken {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Poll::Ready(Some(Err(std::io::Error::other("the disk is gone"))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(10)
    }
}

fn router() -> Router<App> {
    Router::new()
        .route("/small", post(small))
        .route("/large", post(large))
        .route("/endless", post(endless))
        .route("/broken", post(broken))
}

#[tokio::test]
async fn scenario_37_a_large_answer_is_sent_once_and_never_run_again() {
    let shop = Shop::open(router()).await;
    let send = || shop.post("/large", "k1").body(MIB.to_string()).send();
    let first = seen(send().await.unwrap()).await;
    assert_eq!((first.status, first.body.len()), (201, MIB), "whole");
    for _ in 0..2 {
        let told = problem(send().await.unwrap()).await;
        assert_eq!((told.status, told.slug.as_str()), (410, "idempotency-result-unavailable"));
        assert_eq!((&told.body["state"], &told.body["original_status"]), (&json!("completed"), &json!(201)));
        assert_eq!(told.body["links"], json!([{"provider": "gateway", "id": "ch_1"}]));
        assert_eq!((&told.body["retry"], &told.body["safe_new_key"]), (&json!("never"), &json!(false)));
        assert_eq!(told.body["operation"].as_str().map(str::len), Some(32));
    }
    let other = shop.post("/large", "k1").body("7").send().await.unwrap();
    assert_eq!(refusal(other).await, (422, "idempotency-key-reused".to_owned()));
    assert_eq!(shop.probe.effects(), 1);
}

/// C07: the limit drops the stored body, not the record.
#[tokio::test]
async fn case_07_the_limit_of_stored_answers_can_be_set() {
    let shop = Shop::open_with(router(), |builder| builder.max_response(64 << 10)).await;
    for (key, size, status) in [("k1", 64 << 10, 201), ("k2", (64 << 10) + 1, 410)] {
        let send = || shop.post("/large", key).body(size.to_string()).send();
        assert_eq!(seen(send().await.unwrap()).await.body.len(), size);
        assert_eq!(send().await.unwrap().status(), status, "{size}");
    }
    assert_eq!(shop.probe.effects(), 2);
}

/// C28. A slow store shows the order: were the head sent first, the record would still be in flight.
#[tokio::test]
async fn scenario_38_a_stream_is_recorded_before_its_first_byte_is_sent() {
    let shop = Shop::open(router()).await;
    shop.store.tell(Verb::Finish, Fault::Slow(Duration::from_millis(100)));
    let mut first = shop.post("/endless", "k1").send().await.unwrap();
    assert_eq!((first.status(), shop.state().await), (StatusCode::CREATED, 2));
    assert!(!first.chunk().await.unwrap().unwrap().is_empty(), "the first caller gets the stream");
    let told = problem(shop.post("/endless", "k1").send().await.unwrap()).await;
    assert_eq!((told.status, &told.body["original_status"]), (410, &json!(201)));
    assert!(!first.chunk().await.unwrap().unwrap().is_empty(), "which goes on");
    assert_eq!(shop.probe.effects(), 1);
}

/// The effect happened, so the record is done; the caller sees a broken answer, as without us.
#[tokio::test]
async fn clause_28_an_answer_that_breaks_off_is_not_run_again() {
    let shop = Shop::open(router()).await;
    let whole = async { shop.post("/broken", "k1").send().await?.bytes().await };
    assert!(whole.await.is_err());
    let again = shop.post("/broken", "k1").send().await.unwrap();
    assert_eq!(refusal(again).await, (410, "idempotency-result-unavailable".to_owned()));
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn clause_28_a_limit_that_shrinks_does_not_drop_what_is_stored() {
    let shop = Shop::open(router()).await;
    shop.post("/small", "k1").json(&json!({})).send().await.unwrap();
    let later = Shop::open_on(shop.place.clone(), router(), |builder| builder.max_response(1)).await;
    assert!(seen(later.post("/small", "k1").json(&json!({})).send().await.unwrap()).await.replayed);
}
