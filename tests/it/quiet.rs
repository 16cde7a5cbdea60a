//! What is logged: nothing alarming on the normal path (case 102), and never a key, a scope or a payload.

use axum::{Json, Router, extract::State, response::Response, routing::post};
use idem_runtime::{
    Error, Execution, Final, Key, Runtime, Scope, ScopePart, ScopeWriter, StoredResponse, Tx, idempotent,
};
use sqlx::{Postgres, Sqlite};

use crate::{
    support::{App, Backend, Fault, Logs, Meters, Plan, Probe, Shop, Tenant, Verb, eventually, handler},
    transactions::shop::Books,
};

handler!(charge, op = "quiet.charge");
handler!(patient, op = "quiet.patient", in_flight = wait("5s"));

/// Shows what a body could put into its own logs.
#[idempotent(scope = "tenant", op = "quiet.shown")]
async fn shown(
    tenant: Tenant,
    State(probe): State<Probe>,
    #[idem] exec: Execution,
    Json(plan): Json<Plan>,
) -> Response {
    exec.link("gateway", "ch_1").await.unwrap();
    probe.effect(format!("{exec:?} {:?}", Final(())));
    probe.effect(exec.provider_key());
    probe.perform(&plan).await
}

#[idempotent(function, runtime = runtime, scope = tenant, op = "quiet.job", key = id)]
async fn job(runtime: &Runtime, tenant: &str, id: &str, payload: &str) -> Result<String, Error> {
    Ok(payload.to_owned())
}

/// Its claim and its answer go over a connection whose log of statements is the program's affair.
#[idempotent(scope = "tenant", op = "quiet.booked")]
async fn booked<Db: Books>(
    tenant: Tenant,
    #[idem] tx: Tx<Db>,
    #[idem] exec: Execution,
    Json(_): Json<Plan>,
) -> &'static str {
    exec.link("gateway", "s3cret-link").await.unwrap();
    drop(tx);
    "s3cret-answer"
}

/// The last is the one before it, in hexadecimal.
const SECRETS: [&str; 5] = ["s3cret-key", "s3cret-tenant", "s3cret-card", "s3cret", "733363726574"];

fn router() -> Router<App> {
    let booked = match Backend::of_this_run() {
        Backend::Sqlite => post(booked::<Sqlite>),
        Backend::Postgres | Backend::PgBouncer => post(booked::<Postgres>),
    };
    Router::new()
        .route("/charge", post(charge))
        .route("/patient", post(patient))
        .route("/shown", post(shown))
        .route("/booked", booked)
}

fn request(shop: &Shop, path: &str, key: &str, plan: &str) -> reqwest::RequestBuilder {
    let body = format!("{{\"card\": \"s3cret-card\", {plan}}}");
    let request = shop.client.post(shop.url(path)).bearer_auth("s3cret-tenant").header("idempotency-key", key);
    request.header("content-type", "application/json").body(body)
}

async fn send(shop: &Shop, path: &str, key: &str, plan: &str) -> reqwest::Response {
    request(shop, path, key, plan).send().await.unwrap()
}

#[tokio::test]
async fn case_102_a_first_delivery_alarms_nobody() {
    let shop = Shop::open(router()).await;
    let logs = Logs::collect();
    assert_eq!(send(&shop, "/charge", "e1", "\"a\": 1").await.status(), 201);
    assert_eq!(send(&shop, "/charge", "e1", "\"a\": 1").await.status(), 201, "nor does a replay");
    assert_eq!(send(&shop, "/charge", "e2", "\"status\": 422").await.status(), 422, "nor a refusal of the handler's");
    assert_eq!(shop.probe.effects(), 2);
    assert!(logs.alarming().is_empty(), "{:?}", logs.alarming());
    assert!(logs.all().iter().any(|line| line.target == "idem::engine"), "there are lines of a lower level");
    send(&shop, "/charge", "e3", "\"status\": 500").await;
    assert!(!logs.alarming().is_empty(), "what should alarm, does");
}

/// Through every branch that logs.
#[tokio::test]
async fn no_key_scope_or_payload_reaches_a_log_line_a_span_or_a_metric() {
    let (logs, meters) = (Logs::collect(), Meters::collect());
    let shop = Shop::open_with(router(), |builder| builder.cache_bytes(1 << 20)).await;
    for (key, plan) in [
        ("s3cret-key", "\"a\": 1"),
        ("s3cret-key", "\"a\": 2"),
        ("s3cret-key-2", "\"status\": 500"),
        ("s3cret-key-2", "\"status\": 500"),
        ("s3cret-key-3", "\"panic\": true"),
        ("s3cret key", "\"a\": 1"),
    ] {
        send(&shop, "/charge", key, plan).await;
        send(&shop, "/shown", key, plan).await;
        send(&shop, "/booked", key, plan).await;
    }
    for verb in [Verb::Claim, Verb::Finish, Verb::Begin, Verb::Commit] {
        shop.store.tell(verb, Fault::Fails(1));
        send(&shop, "/charge", &format!("s3cret-key-{verb:?}"), "\"a\": 1").await;
        send(&shop, "/booked", &format!("s3cret-key-{verb:?}"), "\"a\": 1").await;
    }
    shop.store.down();
    send(&shop, "/charge", "s3cret-key-down", "\"a\": 1").await;
    shop.store.heal();
    for _ in 0..60 {
        send(&shop, "/charge", "s3cret-key", "\"a\": 1").await; // so that its scope is told of
    }
    let held = shop.probe.hold().await;
    let started = shop.probe.started();
    let first = tokio::spawn(request(&shop, "/patient", "s3cret-key-wait", "\"a\": 1").send());
    eventually(async || shop.probe.started() > started).await;
    shop.store.tell(Verb::Peek, Fault::Fails(1));
    let second = tokio::spawn(request(&shop, "/patient", "s3cret-key-wait", "\"a\": 1").send());
    eventually(async || shop.store.calls(Verb::Peek) > 1).await;
    drop(held);
    assert_eq!(first.await.unwrap().unwrap().status(), second.await.unwrap().unwrap().status());
    for id in ["s3cret-key", ""] {
        let _ = job(&shop.runtime, "s3cret-tenant", id, "s3cret-card").await;
    }
    let dropped = job(&shop.runtime, "s3cret-tenant", "s3cret-key-dropped", "s3cret-card");
    drop(dropped);
    let _ = shop.runtime.shutdown(std::time::Duration::ZERO).await;
    send(&shop, "/charge", "s3cret-key-late", "\"a\": 1").await;

    let lines = logs.all();
    assert!(lines.iter().any(|line| line.level == tracing::Level::TRACE || line.level == tracing::Level::DEBUG));
    assert!(lines.iter().filter(|line| line.target == "idem::engine").count() > 10, "{lines:?}");
    assert!(lines.iter().any(|line| line.text.contains("its client's time-out")), "{lines:?}");
    let spans = logs.spans();
    assert!(spans.iter().all(|span| span.fields["op"].starts_with("quiet.")), "{spans:?}");
    let metrics = meters.all();
    assert!(metrics.len() > 10, "{metrics:?}");
    for text in lines.iter().map(|line| &line.text).chain(&metrics) {
        for secret in SECRETS {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

#[tokio::test]
async fn no_key_scope_or_payload_is_shown_by_debug() {
    let shop = Shop::open(router()).await;
    assert_eq!(send(&shop, "/shown", "s3cret-key", "\"a\": 1").await.status(), 201);
    let [shown_by_body, provider_key, _] = &shop.probe.log()[..] else { panic!("the body ran once") };
    assert!(!shown_by_body.contains(provider_key), "it is between us and the provider");

    let tenant = || "s3cret-tenant";
    let record = shop.runtime.find("quiet.shown", tenant(), "s3cret-key").await.unwrap().unwrap();
    let error = shop.runtime.find("quiet.shown", tenant(), &"s3cret-key".repeat(200)).await.unwrap_err();
    let mut writer = ScopeWriter::default();
    tenant().write_scope(&mut writer);
    let shown = [
        shown_by_body.clone(),
        format!("{:?} {record:?} {error:?} {error}", shop.runtime),
        format!("{:?} {:?} {writer:?}", Key::new("s3cret-key").unwrap(), Scope::of(&tenant())),
        format!("{:?} {:?}", Key::new("s3cret-key".repeat(200)), StoredResponse::value(&"s3cret-card")),
        format!("{:?}", StoredResponse::http("s3cret-card").await),
        format!("{:?}", idem_runtime::private::key(|| b"s3cret-key".to_vec())),
        format!("{:?}", Runtime::builder(idem_runtime::MemoryStore::volatile())),
        format!(
            "{:?}",
            send(&shop, "/shown", "s3cret-key", "\"a\": 2").await.json::<serde_json::Value>().await.unwrap()
        ),
    ];
    for text in shown {
        let bytes: Vec<String> = SECRETS.iter().map(|secret| format!("{:?}", secret.as_bytes())).collect();
        for secret in SECRETS
            .iter()
            .map(ToString::to_string)
            .chain(bytes.iter().map(|list| list.trim_matches(['[', ']']).to_owned()))
        {
            assert!(!text.contains(&secret), "{text}");
        }
    }
}
