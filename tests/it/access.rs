//! Who may see a stored answer: scenario 78.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    Extension, Json, Router,
    extract::{FromRequestParts, State},
    http::{StatusCode, request::Parts},
    response::Response,
    routing::post,
};
use idem_runtime::{Builder, Replaying, ScopePart, ScopeWriter, idempotent};
use serde_json::json;

use crate::support::{App, Plan, Probe, Shop, Tenant, handler, problem, seen};

handler!(charge, op = "access.charge", ttl = "24h");
handler!(late, op = "access.late", ttl = "1h", refuse_late = "2h");

/// A tenant, unless its token is revoked.
struct Member(Tenant);

#[derive(Clone, Default)]
struct Revoked(Arc<AtomicBool>);

impl ScopePart for Member {
    fn write_scope(&self, out: &mut ScopeWriter) {
        self.0.write_scope(out);
    }
}

impl<S: Sync> FromRequestParts<S> for Member {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, StatusCode> {
        match parts.extensions.get::<Revoked>() {
            Some(revoked) if revoked.0.load(Ordering::SeqCst) => Err(StatusCode::UNAUTHORIZED),
            _ => Tenant::from_request_parts(parts, state).await.map(Self),
        }
    }
}

#[idempotent(scope = "member", op = "access.member", ttl = "24h")]
async fn by_member(member: Member, State(probe): State<Probe>, Json(plan): Json<Plan>) -> Response {
    probe.perform(&plan).await
}

fn router() -> Router<App> {
    Router::new().route("/charge", post(charge)).route("/late", post(late))
}

/// Rights that can be lowered, and what was asked about them.
#[derive(Clone, Default)]
struct Rights {
    lowered: Arc<AtomicBool>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Rights {
    fn lower(&self) {
        self.lowered.store(true, Ordering::SeqCst);
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn guard(&self, builder: Builder) -> Builder {
        let rights = self.clone();
        builder.authorize_replay(move |replaying: Replaying| {
            let token = replaying.request.headers["authorization"].to_str().unwrap().to_owned();
            let (op, uri) = (replaying.op, replaying.request.uri);
            rights.asked.lock().unwrap().push(format!("{op} {uri} {token}"));
            let may = !rights.lowered.load(Ordering::SeqCst);
            async move { may }
        })
    }
}

async fn assert_forbidden(shop: &Shop, path: &str) {
    let told = problem(shop.post(path, "k1").json(&json!({})).send().await.unwrap()).await;
    assert_eq!((told.status, told.slug.as_str()), (403, "idempotency-replay-forbidden"));
    for name in ["operation", "original_status", "links", "state"] {
        assert!(told.body.get(name).is_none(), "{name} says what became of it: {}", told.body);
    }
}

#[tokio::test]
async fn scenario_78_a_revoked_token_is_401_before_any_look_up() {
    let revoked = Revoked::default();
    let router = Router::new().route("/charge", post(by_member)).layer(Extension(revoked.clone()));
    let shop = Shop::open_with(router, |builder| builder.cache_bytes(1 << 20)).await;
    let send = || shop.post("/charge", "k1").json(&json!({})).send();
    assert!(seen(send().await.unwrap()).await.ran());
    assert!(seen(send().await.unwrap()).await.replayed);
    let asked = shop.asked();
    revoked.0.store(true, Ordering::SeqCst);
    let answer = send().await.unwrap();
    assert!(!answer.headers().contains_key("idempotent-replayed"));
    assert_eq!((answer.status(), answer.text().await.unwrap()), (StatusCode::UNAUTHORIZED, String::new()));
    assert_eq!(shop.asked(), asked);
}

/// Also from the local cache.
#[tokio::test]
async fn scenario_78_a_replay_can_be_forbidden() {
    for cache_bytes in [0, 1 << 20] {
        let rights = Rights::default();
        let shop = Shop::open_with(router(), |builder| rights.guard(builder).cache_bytes(cache_bytes)).await;
        let send = || shop.post("/charge", "k1").json(&json!({})).send();
        assert!(seen(send().await.unwrap()).await.ran());
        assert!(rights.asked().is_empty(), "the first answer is the caller's own");
        assert!(seen(send().await.unwrap()).await.replayed);
        assert_eq!(rights.asked(), ["access.charge /charge Bearer acme"]);
        rights.lower();
        assert_forbidden(&shop, "/charge").await;
        assert_eq!((rights.asked().len(), shop.probe.effects()), (2, 1));
    }
}

#[tokio::test]
async fn clause_32_what_cannot_be_replayed_is_not_told_either() {
    let rights = Rights::default();
    let shop = Shop::open_with(router(), |builder| rights.guard(builder).max_response(1)).await;
    shop.post("/charge", "k1").json(&json!({})).send().await.unwrap();
    let told = problem(shop.post("/charge", "k1").json(&json!({})).send().await.unwrap()).await;
    assert_eq!((told.status, &told.body["original_status"]), (410, &json!(201)), "while it is allowed");
    rights.lower();
    assert_forbidden(&shop, "/charge").await;
}

#[tokio::test]
async fn clause_32_an_expired_result_is_not_told_either() {
    let rights = Rights::default();
    let shop = Shop::open_with(router(), |builder| rights.guard(builder)).await;
    shop.post("/late", "k1").json(&json!({})).send().await.unwrap();
    shop.pass(std::time::Duration::from_secs(90 * 60)).await;
    let told = problem(shop.post("/late", "k1").json(&json!({})).send().await.unwrap()).await;
    assert_eq!((told.status, told.slug.as_str()), (410, "idempotency-result-expired"), "while it is allowed");
    rights.lower();
    assert_forbidden(&shop, "/late").await;
}

/// A mismatch shows nothing of the answer, so nobody is asked.
#[tokio::test]
async fn clause_32_a_mismatch_needs_no_permission() {
    let rights = Rights::default();
    let shop = Shop::open_with(router(), |builder| rights.guard(builder)).await;
    shop.post("/charge", "k1").json(&json!({})).send().await.unwrap();
    rights.lower();
    let other = problem(shop.post("/charge", "k1").json(&json!({"amount": 1})).send().await.unwrap()).await;
    assert_eq!((other.status, rights.asked().len()), (422, 0));
}
