//! Scenarios 86 to 91, the webhook cases, clauses 41 to 43: events that are delivered more than once, out of order, or forged.

mod ordered;
mod passed_on;
mod program;
mod refused;
mod sender;

use std::time::Duration;

use axum::{
    Router,
    extract::{FromRef, State},
    http::StatusCode,
    response::Response,
    routing::post,
};
use idem_runtime::{
    Tx, idempotent,
    webhook::{Standard, Stripe, Verified},
};
use serde_json::{Value, json};
use sqlx::{Postgres, Sqlite};

use self::sender::{STANDARD, STRIPE, at_sent};
use crate::{
    support::{App, Backend, Logs, Place, Plan, Probe, Seen, Shop, eventually, problem, seen},
    transactions::shop::Books,
};

impl FromRef<App> for Stripe {
    fn from_ref(_: &App) -> Self {
        Self::new([STRIPE]).unwrap().with_tolerance(at_sent())
    }
}

impl FromRef<App> for Standard {
    fn from_ref(_: &App) -> Self {
        Self::new([STANDARD]).unwrap().with_tolerance(at_sent())
    }
}

macro_rules! receives {
    ($name:ident($event:ident: $sender:ty), $($annotation:tt)*) => {
        #[idempotent(scope = global, $($annotation)*)]
        async fn $name(State(probe): State<Probe>, $event: Verified<$sender>) -> Response {
            let plan: Plan = $event.json().unwrap();
            probe.perform(&plan).await
        }
    };
}
receives!(held(event: Stripe), op = "webhook.held", key = event.id, ttl = "35d", webhook);
receives!(waits(event: Stripe), op = "webhook.waits", key = event.id, ttl = "35d", in_flight = wait("10s"), webhook);
receives!(late(event: Stripe), op = "webhook.late", key = event.id, ttl = "1h", refuse_late = "2h", webhook);
receives!(whole(event: Stripe), op = "webhook.whole", key = event.id, payload = raw, client_errors = store, webhook);
receives!(standard(event: Standard), op = "webhook.standard", key = event.id, webhook);
receives!(by_header(event: Standard), op = "webhook.by-header", header = "webhook-id", payload = none, webhook);
receives!(plain(event: Standard), op = "webhook.plain", header = "webhook-id", payload = none);

/// Writes what the event says, and fails the first time that it runs.
#[idempotent(scope = global, op = "webhook.tx", key = event.id, ttl = "35d", webhook)]
async fn once<Db: Books>(#[idem] mut tx: Tx<Db>, State(probe): State<Probe>, event: Verified<Stripe>) -> StatusCode {
    let said: Value = event.json().unwrap();
    probe.pass().await;
    Db::run(&mut tx, said["sql"].as_str().unwrap()).await.unwrap();
    probe.effect("a run");
    if said["fails"] == true && probe.effects() == 1 { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }
}

fn router(backend: Backend) -> Router<App> {
    let router = Router::new()
        .route("/held", post(held))
        .route("/waits", post(waits))
        .route("/late", post(late))
        .route("/whole", post(whole))
        .route("/standard", post(standard))
        .route("/by-header", post(by_header))
        .route("/plain", post(plain));
    match backend {
        Backend::Sqlite => router.route("/tx", post(once::<Sqlite>)),
        Backend::Postgres | Backend::PgBouncer => router.route("/tx", post(once::<Postgres>)),
    }
}

async fn open() -> Shop {
    open_with(|builder| builder).await
}

async fn open_with(configure: impl FnOnce(idem_runtime::Builder) -> idem_runtime::Builder) -> Shop {
    let place = std::sync::Arc::new(Place::new());
    let backend = place.backend();
    let shop = Shop::open_on(place, router(backend), configure).await;
    shop.sql(&format!("create table {} (sku text)", shop.place.table("orders"))).await;
    shop
}

impl Shop {
    /// An event of Stripe's, properly signed, and its answer.
    async fn event(&self, path: &str, event: &Value) -> Seen {
        seen(self.stripe(path, event).send().await.unwrap()).await
    }

    fn writes(&self, id: &str, fails: bool) -> Value {
        let sql = self.write("book")["sql"].take();
        json!({"id": id, "sql": sql, "fails": fails})
    }
}

fn event(id: &str) -> Value {
    json!({"id": id, "status": 200})
}

#[tokio::test]
async fn scenario_86_an_event_that_is_delivered_three_times_runs_once() {
    let shop = open().await;
    for path in ["/held", "/waits"] {
        let before = shop.probe.effects();
        let first = shop.event(path, &event("evt_1")).await;
        assert!(first.ran(), "{first:?}");
        for _ in 0..2 {
            assert_eq!(shop.event(path, &event("evt_1")).await, Seen { replayed: true, ..first_again(&first) });
        }
        assert_eq!(shop.probe.effects(), before + 1);
    }
    for _ in 0..3 {
        assert_eq!(shop.event("/tx", &shop.writes("evt_1", false)).await.status, 200);
    }
    assert_eq!(shop.orders().await, 1);
}

fn first_again(first: &Seen) -> Seen {
    Seen { status: first.status, location: first.location.clone(), body: first.body.clone(), replayed: true }
}

#[tokio::test]
async fn scenario_87_a_duplicate_comes_back_while_the_first_delivery_runs_and_fails() {
    let shop = open().await;
    let (event, gate) = (shop.writes("evt_1", true), shop.probe.hold().await);
    let first = tokio::spawn(shop.stripe("/tx", &event).send());
    eventually(async || shop.probe.started() == 1).await;
    let told = problem(shop.stripe("/tx", &event).send().await.unwrap()).await;
    assert_eq!((told.status, told.slug.as_str()), (503, "idempotency-in-progress"));
    assert_eq!((&told.body["state"], &told.body["retry"]), (&json!("in_flight"), &json!("same-key")));
    assert!(told.retry_after.is_some());
    drop(gate);
    assert_eq!(first.await.unwrap().unwrap().status(), 500);
    assert_eq!(shop.orders().await, 0, "undone");
    let again = shop.event("/tx", &event).await;
    assert!(again.ran(), "{again:?}");
    assert!(shop.event("/tx", &event).await.replayed);
    assert_eq!((shop.orders().await, shop.probe.effects()), (1, 2));
}

#[tokio::test]
async fn scenario_89_a_delivery_after_29_days_is_answered_again() {
    let shop = open().await;
    shop.event("/held", &event("evt_1")).await;
    shop.pass(Duration::from_secs(29 * 24 * 60 * 60)).await;
    assert!(shop.event("/held", &event("evt_1")).await.replayed);
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn scenario_91_what_surrounds_an_event_may_change() {
    let shop = open().await;
    let first = shop.event("/held", &event("evt_1")).await;
    let changed = json!({"api_version": "2026-11-30", "status": 200, "id": "evt_1", "pending_webhooks": 2});
    assert_eq!(shop.event("/held", &changed).await, first_again(&first));
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn clause_41_fifty_deliveries_at_once_are_one_effect() {
    let shop = open().await;
    for path in ["/held", "/waits", "/tx"] {
        let event = shop.writes("evt_1", false);
        let effects = shop.probe.effects();
        let deliveries: Vec<_> = (0..50).map(|_| tokio::spawn(shop.stripe(path, &event).send())).collect();
        let mut done = 0;
        for delivery in deliveries {
            let status = delivery.await.unwrap().unwrap().status().as_u16();
            assert!((200..300).contains(&status) || status == 503, "{path} {status}");
            assert!(path != "/waits" || status != 503);
            done += usize::from(status != 503);
        }
        assert!(done > 0, "{path}");
        let again = shop.event(path, &event).await;
        assert!((200..300).contains(&again.status) && again.replayed, "{path} {again:?}");
        assert_eq!(shop.probe.effects(), effects + 1, "{path}");
    }
    assert_eq!(shop.orders().await, 1);
}

#[tokio::test]
async fn clause_41_an_event_in_doubt_comes_back_until_it_is_settled() {
    let shop = open().await;
    let broken = json!({"id": "evt_1", "panic": true});
    assert_eq!(shop.event("/held", &broken).await.status, 500);
    let told = problem(shop.stripe("/held", &broken).send().await.unwrap()).await;
    assert_eq!((told.status, told.slug.as_str()), (503, "idempotency-outcome-unknown"));
    assert_eq!(told.retry_after, Some(60), "a person is needed");
    let record = shop.runtime.find("webhook.held", idem_runtime::Global, "evt_1").await.unwrap().unwrap();
    assert_eq!(told.body["operation"], record.id.to_string(), "for support");
    let how = idem_runtime::Resolution::Void;
    let by = idem_runtime::Audit { who: "ops".to_owned(), why: "looked".to_owned() };
    shop.runtime.resolve(record.id, record.fence, how, by).await.unwrap();
    let settled = shop.event("/held", &broken).await;
    assert_eq!((settled.status, settled.body.as_str(), settled.replayed), (200, "", true), "never 410");
}

#[tokio::test]
async fn clause_43_a_client_error_of_the_handler_is_released() {
    let shop = open().await;
    for status in [400, 409, 410, 422] {
        let refused = json!({"id": "evt_1", "status": status});
        assert_eq!(shop.event("/held", &refused).await.status, status, "the handler means it");
    }
    assert!(shop.event("/held", &event("evt_1")).await.ran());
}

#[tokio::test]
async fn clause_43_a_result_that_is_gone_is_acknowledged() {
    let shop = open_with(|builder| builder.max_response(1)).await;
    for (path, passed) in [("/held", 0), ("/late", 90)] {
        assert!(shop.event(path, &event("evt_1")).await.ran());
        shop.pass(Duration::from_secs(passed * 60)).await;
        let again = shop.event(path, &event("evt_1")).await;
        assert_eq!((again.status, again.body.as_str(), again.replayed), (200, "", true), "{path}");
    }
    assert_eq!(shop.probe.effects(), 2);
}

#[tokio::test]
async fn clause_43_another_payload_is_never_409() {
    for chosen in [409, 422, 400] {
        let shop = open_with(|builder| builder.mismatch_status(chosen)).await;
        shop.event("/whole", &event("evt_1")).await;
        let told = problem(shop.stripe("/whole", &json!({"id": "evt_1"})).send().await.unwrap()).await;
        let status = if chosen == 409 { 422 } else { chosen };
        assert_eq!((told.status, told.slug.as_str()), (status, "idempotency-key-reused"));
    }
}

#[tokio::test]
async fn clause_41_a_default_of_accepted_does_not_count_for_events() {
    let shop = open_with(|builder| builder.in_flight(idem_runtime::InFlight::Accepted)).await;
    let gate = shop.probe.hold().await;
    let first = tokio::spawn(shop.stripe("/held", &event("evt_1")).send());
    eventually(async || shop.probe.started() == 1).await;
    let told = problem(shop.stripe("/held", &event("evt_1")).send().await.unwrap()).await;
    assert_eq!((told.status, told.slug.as_str()), (503, "idempotency-in-progress"));
    drop(gate);
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn case_11_a_delivery_that_failed_leaves_its_event_runnable() {
    let shop = open().await;
    let event = shop.writes("E1", true);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let answer = shop.event("/tx", &event).await;
        seen.push((answer.status, answer.replayed));
    }
    assert_eq!(seen, [(500, false), (200, false), (200, true)]);
    assert_eq!(shop.orders().await, 1);
}

#[tokio::test]
async fn case_22_deliveries_at_the_same_instant_wait_and_are_all_told_the_same() {
    let shop = open().await;
    let gate = shop.probe.hold().await;
    let deliveries: Vec<_> = (0..10).map(|_| tokio::spawn(shop.stripe("/waits", &event("E7")).send())).collect();
    eventually(async || shop.probe.started() == 1).await;
    drop(gate);
    for delivery in deliveries {
        assert_eq!(delivery.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn case_33_the_key_is_the_sender_s_id_and_nothing_else() {
    let shop = open().await;
    let send = async |id: &str, body: &str| seen(shop.standard("/standard", id, body).send().await.unwrap()).await;
    assert!(send("msg_1", r#"{"status":200,"createdAt":1}"#).await.ran());
    assert!(send("msg_1", r#"{"status":200,"createdAt":2}"#).await.replayed);
    assert!(send("msg_2", r#"{"status":200,"createdAt":1}"#).await.ran(), "the same body under another id");
    assert!(shop.event("/held", &event("E1")).await.ran());
    let reordered = shop.stripe_text("/held", r#"{"status" : 200, "id" : "E1"}"#).send().await.unwrap();
    assert!(seen(reordered).await.replayed);
    assert_eq!(shop.probe.effects(), 3);
}

#[tokio::test]
async fn case_75_two_endpoints_at_one_address_are_one_event() {
    let shop = open().await;
    let first = shop.event("/held", &event("evt_1")).await;
    let twice = shop.stripe("/held", &event("evt_1")).header("x-delivery", "d2");
    assert_eq!((first.status, seen(twice.send().await.unwrap()).await.status), (200, 200));
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn case_102_the_first_delivery_of_all_is_nothing_special() {
    let logs = Logs::collect();
    let shop = open().await;
    assert!(shop.event("/held", &event("E1")).await.ran());
    assert_eq!(shop.probe.effects(), 1);
    assert!(logs.alarming().is_empty(), "{:?}", logs.alarming());
}

/// The same event, as an API whose clients fetch results sees it.
#[tokio::test]
async fn what_is_retried_by_people_answers_as_it_always_did() {
    let shop = open().await;
    let first = shop.standard("/plain", "msg_1", r#"{"panic":true}"#).send().await.unwrap();
    assert_eq!(first.status(), 500);
    let told = problem(shop.standard("/plain", "msg_1", r#"{"panic":true}"#).send().await.unwrap()).await;
    assert_eq!((told.status, told.retry_after), (409, None), "without `webhook`");
}
