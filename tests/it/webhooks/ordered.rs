//! Scenario 90, clause 42: events that come in another order than they were made in.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use idem_runtime::{
    Builder, Tx, idempotent,
    webhook::{Stripe, Verified},
};
use serde_json::{Value, json};
use sqlx::{Postgres, Sqlite};

use crate::{
    support::{App, Backend, Logs, Meters, Place, Probe, Seen, Shop, Verb, eventually, problem, seen},
    transactions::shop::Books,
};

/// Writes the whole state that the event has of its object.
async fn apply<Db: Books>(tx: &mut Tx<Db>, probe: &Probe, event: &Value) -> Response {
    probe.pass().await;
    Db::run(tx, event["sql"].as_str().unwrap()).await.unwrap();
    probe.effect(event["id"].as_str().unwrap());
    assert!(event["panic"].is_null(), "the test says so");
    let status = event["status"].as_u64().unwrap_or(201);
    (StatusCode::from_u16(status.try_into().unwrap()).unwrap(), "applied").into_response()
}

macro_rules! applies {
    ($name:ident($event:ident), $($annotation:tt)*) => {
        #[idempotent(scope = global, order = ("/data/object/id", "/created"), $($annotation)*)]
        async fn $name<Db: Books>(
            #[idem] mut tx: Tx<Db>,
            State(probe): State<Probe>,
            $event: Verified<Stripe>,
        ) -> Response {
            apply(&mut tx, &probe, &$event.json().unwrap()).await
        }
    };
}
applies!(ordered(event), op = "webhook.ordered", key = event.id, ttl = "35d", webhook);
applies!(waits(event), op = "webhook.ordered-waits", key = event.id, webhook, in_flight = wait("10s"));
applies!(keeps(event), op = "webhook.ordered-keeps", key = event.id, webhook, client_errors = keep("1h"));
applies!(plain(event), op = "webhook.ordered-plain", header = "webhook-id", payload = none);

fn routes<Db: Books>() -> Router<App>
where
    for<'c> &'c mut Db::Connection: Send,
{
    Router::new()
        .route("/ordered", post(ordered::<Db>))
        .route("/waits", post(waits::<Db>))
        .route("/keeps", post(keeps::<Db>))
        .route("/plain", post(plain::<Db>))
}

async fn open() -> Shop {
    open_with(|builder| builder).await
}

async fn open_with(configure: impl FnOnce(Builder) -> Builder) -> Shop {
    let place = Arc::new(Place::new());
    let router = match place.backend() {
        Backend::Sqlite => routes::<Sqlite>(),
        Backend::Postgres | Backend::PgBouncer => routes::<Postgres>(),
    };
    let shop = Shop::open_on(place, router, configure).await;
    shop.sql(&format!("create table {} (sku text)", shop.place.table("orders"))).await;
    shop
}

impl Shop {
    /// An event of the subscription `sub_1`.
    fn of(&self, id: &str, created: impl Into<Value>) -> Value {
        let sql = self.write(id)["sql"].take();
        json!({"id": id, "created": created.into(), "data": {"object": {"id": "sub_1"}}, "sql": sql})
    }

    /// It is applied.
    async fn is_applied(&self, path: &str, event: &Value) {
        let before = self.orders().await;
        let answer = self.event(path, event).await;
        assert!(answer.status == 201 && answer.ran() && answer.body == "applied", "{event} {answer:?}");
        assert_eq!(self.orders().await, before + 1);
    }

    /// It is acknowledged, and nothing is done.
    async fn is_stale(&self, path: &str, event: &Value) {
        let before = (self.orders().await, self.probe.effects());
        let answer = self.event(path, event).await;
        assert_eq!(answer, Seen { status: 200, location: None, body: String::new(), replayed: false }, "{event}");
        assert_eq!((self.orders().await, self.probe.effects()), before);
    }
}

fn with(event: &Value, member: &str, value: Value) -> Value {
    let mut event = event.clone();
    event[member] = value;
    event
}

#[tokio::test]
async fn scenario_90_an_older_event_after_a_newer_one_is_acknowledged_and_not_run() {
    let shop = open().await;
    shop.is_applied("/ordered", &shop.of("evt_2", 1_700_000_002)).await;
    shop.is_stale("/ordered", &shop.of("evt_1", 1_700_000_001)).await;
    shop.is_applied("/ordered", &shop.of("evt_3", 1_700_000_003)).await;
    let other = with(&shop.of("evt_4", 1), "data", json!({"object": {"id": "sub_2"}}));
    shop.is_applied("/ordered", &other).await;
    assert_eq!(shop.probe.log(), ["evt_2", "evt_3", "evt_4"]);
}

#[tokio::test]
async fn clause_42_of_two_events_of_one_instant_the_second_is_stale() {
    let shop = open().await;
    shop.is_applied("/ordered", &shop.of("evt_1", 1_700_000_001)).await;
    shop.is_stale("/ordered", &shop.of("evt_2", 1_700_000_001)).await;
}

#[tokio::test]
async fn clause_42_a_delivery_that_comes_again_is_a_replay_and_never_stale() {
    let shop = open().await;
    let (newer, older) = (shop.of("evt_2", 2), shop.of("evt_1", 1));
    shop.is_applied("/ordered", &newer).await;
    shop.is_stale("/ordered", &older).await;
    for _ in 0..2 {
        let again = shop.event("/ordered", &newer).await;
        assert_eq!((again.status, again.body.as_str(), again.replayed), (201, "applied", true));
        let again = shop.event("/ordered", &older).await;
        assert_eq!((again.status, again.body.as_str(), again.replayed), (200, "", true));
    }
    let record = shop.runtime.find("webhook.ordered", idem_runtime::Global, "evt_1").await.unwrap().unwrap();
    assert_eq!(record.state, idem_runtime::state::State::Done);
    assert_eq!((shop.orders().await, shop.records().await), (1, 2));
}

#[tokio::test]
async fn clause_42_a_run_that_fails_leaves_the_order_as_it_was() {
    let shop = open().await;
    for (n, failure) in [("status", json!(500)), ("status", json!(422)), ("panic", json!(true))].iter().enumerate() {
        let newer = with(&shop.of(&format!("evt_{n}"), 1_000), failure.0, failure.1.clone());
        assert!(shop.event("/ordered", &newer).await.status >= 400);
        eventually(async || shop.records().await == i64::try_from(n).unwrap()).await;
        let applied = shop.of(&format!("older_{n}"), i64::try_from(n).unwrap());
        // The end of a session that was cut off undoes what it wrote, a moment later.
        eventually(async || shop.event("/ordered", &applied).await.status == 201).await;
    }
    assert_eq!(shop.orders().await, 3);
    shop.is_applied("/ordered", &shop.of("evt_0", 1_000)).await;
    shop.is_stale("/ordered", &shop.of("late", 999)).await;
}

#[tokio::test]
async fn clause_42_a_refusal_that_is_kept_was_not_applied() {
    let shop = open().await;
    let refused = with(&shop.of("evt_2", 2), "status", json!(422));
    assert_eq!(shop.event("/keeps", &refused).await.status, 422);
    assert!(shop.event("/keeps", &refused).await.replayed);
    assert_eq!(shop.orders().await, 0);
    shop.is_applied("/keeps", &shop.of("evt_1", 1)).await;
    shop.is_stale("/keeps", &shop.of("evt_0", 0)).await;
}

#[tokio::test]
async fn clause_42_an_event_waits_for_the_one_that_is_being_applied() {
    let shop = open().await;
    let gate = shop.probe.hold().await;
    let first = tokio::spawn(shop.stripe("/waits", &shop.of("evt_2", 2)).send());
    eventually(async || shop.probe.started() == 1).await;
    let (older, newer) = (shop.of("evt_1", 1), shop.of("evt_3", 3));
    let others = [&older, &newer].map(|event| tokio::spawn(shop.stripe("/waits", event).send()));
    eventually(async || shop.store.calls(Verb::Begin) >= 3).await;
    drop(gate);
    assert_eq!(first.await.unwrap().unwrap().status(), 201);
    let [older, newer] = others;
    let newer = seen(newer.await.unwrap().unwrap()).await;
    assert!(newer.ran() && newer.body == "applied", "{newer:?}");
    let older = seen(older.await.unwrap().unwrap()).await;
    assert_eq!((older.status, older.body.as_str()), (200, ""));
    assert_eq!(shop.probe.log(), ["evt_2", "evt_3"]);
}

/// On SQLite the second waits for the write lock.
#[tokio::test]
async fn clause_42_an_event_that_does_not_wait_comes_again() {
    let shop = open().await;
    if shop.place.backend() == Backend::Sqlite {
        return;
    }
    let gate = shop.probe.hold().await;
    let newer = shop.of("evt_2", 2);
    let first = tokio::spawn(shop.stripe("/ordered", &newer).send());
    let other = tokio::spawn(shop.stripe("/plain", &newer).header("webhook-id", "evt_2").send());
    eventually(async || shop.probe.started() == 2).await;
    let older = shop.of("evt_1", 1);
    let told = problem(shop.stripe("/ordered", &older).send().await.unwrap()).await;
    assert_eq!((told.status, told.slug.as_str()), (503, "idempotency-in-progress"));
    assert!(told.retry_after.is_some());
    let told = problem(shop.stripe("/plain", &older).header("webhook-id", "evt_1").send().await.unwrap()).await;
    assert_eq!((told.status, told.slug.as_str()), (409, "idempotency-in-progress"), "no `webhook`");
    let elsewhere = with(&older, "data", json!({"object": {"id": "sub_2"}}));
    let elsewhere = tokio::spawn(shop.stripe("/ordered", &with(&elsewhere, "id", json!("evt_3"))).send());
    eventually(async || shop.probe.started() == 3).await;
    assert_eq!(shop.records().await, 0, "its key is free");
    drop(gate);
    for delivery in [first, other, elsewhere] {
        assert_eq!(delivery.await.unwrap().unwrap().status(), 201);
    }
    shop.is_stale("/ordered", &older).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clause_42_many_events_at_once_are_applied_in_their_order() {
    let shop = open().await;
    let mut numbers: Vec<i64> = (1..=20).collect();
    fastrand::shuffle(&mut numbers);
    let deliver = |n: i64| shop.stripe("/waits", &shop.of(&format!("evt_{n}"), n)).send();
    let deliveries: Vec<_> = numbers.iter().map(|n| tokio::spawn(deliver(*n))).collect();
    for delivery in deliveries {
        let status = delivery.await.unwrap().unwrap().status().as_u16();
        assert!([200, 201, 503].contains(&status), "{status}");
    }
    for n in numbers {
        eventually(async || deliver(n).await.unwrap().status().is_success()).await;
    }
    let applied: Vec<i64> = shop.probe.log().iter().map(|id| id["evt_".len()..].parse().unwrap()).collect();
    assert!(applied.is_sorted_by(|a, b| a < b) && applied.last() == Some(&20), "{applied:?}");
    assert_eq!(usize::try_from(shop.orders().await).unwrap(), applied.len());
}

#[tokio::test]
async fn clause_42_numbers_and_times_are_compared_among_themselves() {
    let shop = open().await;
    shop.is_applied("/ordered", &shop.of("evt_1", "2026-11-30T10:00:00.000002+01:00")).await;
    shop.is_stale("/ordered", &shop.of("evt_2", "2026-11-30T09:00:00.000001Z")).await;
    shop.is_applied("/ordered", &shop.of("evt_3", "2026-11-30T09:00:00.000003Z")).await;
    shop.is_applied("/ordered", &shop.of("evt_4", 10)).await;
    shop.is_stale("/ordered", &shop.of("evt_5", "9")).await;
}

#[tokio::test]
async fn clause_42_an_event_without_its_place_is_refused_and_touches_nothing() {
    let shop = open().await;
    let good = shop.of("evt_1", 1);
    for event in [
        with(&good, "created", Value::Null),
        with(&good, "created", json!(1.5)),
        with(&good, "created", json!("yesterday")),
        with(&good, "data", json!({"object": {}})),
        with(&good, "data", json!({"object": {"id": ""}})),
        with(&good, "data", json!({"object": {"id": ["sub_1"]}})),
    ] {
        let told = problem(shop.stripe("/ordered", &event).send().await.unwrap()).await;
        assert_eq!((told.status, told.slug.as_str()), (422, "idempotency-order-unreadable"), "{event}");
        assert_eq!((&told.body["retry"], &told.body["op"]), (&json!("never"), &json!("webhook.ordered")));
        assert!(!told.body.to_string().contains("sub_1") && !told.body.to_string().contains("evt_1"));
    }
    assert_eq!((shop.records().await, shop.store.calls(Verb::Begin)), (0, 0));
    shop.is_applied("/ordered", &good).await;
    // What is done is told again, also to whoever sends it as it was sent before a deploy asked for an order.
    let again = shop.event("/ordered", &with(&good, "created", Value::Null)).await;
    assert!(again.replayed && again.status == 201, "{again:?}");
}

#[tokio::test]
async fn clause_42_a_note_is_removed_with_the_records_of_its_time() {
    let shop = open_with(|builder| builder.purge_every(Duration::from_millis(20))).await;
    let notes = async || shop.count("select count(*) from idem_order").await;
    shop.is_applied("/ordered", &shop.of("evt_2", 2)).await;
    let day = Duration::from_secs(24 * 3600);
    shop.pass(35 * day - Duration::from_secs(60)).await;
    shop.is_stale("/ordered", &shop.of("evt_1", 1)).await;
    let purges = shop.store.calls(Verb::Purge);
    eventually(async || shop.store.calls(Verb::Purge) >= purges + 2).await;
    assert_eq!(notes().await, 1);
    shop.pass(Duration::from_secs(180)).await;
    eventually(async || notes().await == 0).await;
    eventually(async || shop.records().await == 1).await;
    shop.is_applied("/ordered", &shop.of("evt_0", 0)).await;
}

#[tokio::test]
async fn clause_42_a_stale_event_is_counted_as_such_and_shows_no_object() {
    let (meters, logs) = (Meters::collect(), Logs::collect());
    let shop = open().await;
    shop.is_applied("/ordered", &shop.of("evt_2", 2)).await;
    shop.is_stale("/ordered", &shop.of("evt_1", 1)).await;
    shop.event("/ordered", &shop.of("evt_1", 1)).await;
    let counted = |outcome| meters.value(&format!("idem_requests_total{{op=webhook.ordered,outcome={outcome}}}"));
    assert_eq!(["executed", "stale", "replayed"].map(counted), [1.0; 3]);
    assert!(logs.alarming().is_empty(), "{:?}", logs.alarming());
    let stored = shop.place.dump().await;
    assert!(!stored.windows(5).any(|bytes| bytes == b"sub_1"), "an object's id is stored");
}
