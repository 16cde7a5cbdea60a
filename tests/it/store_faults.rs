//! Scenarios 50 … 53: the store fails before, during and after.

use std::time::Duration;

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    routing::post,
};
use idem_runtime::{Error, Execution, idempotent, state::State as Stands};
use serde_json::json;

use crate::support::{App, Fault, Logs, Plan, Probe, Shop, Tenant, Verb, eventually, handler, problem, seen};

handler!(charge, op = "store_faults.charge");

/// The effect first, then its link: as a real charge goes.
#[idempotent(scope = "tenant", op = "store_faults.linked")]
async fn linked(
    tenant: Tenant,
    State(probe): State<Probe>,
    #[idem] exec: Execution,
    id: Option<Path<String>>,
    Json(plan): Json<Plan>,
) -> Result<StatusCode, Error> {
    probe.perform(&plan).await;
    let id = match id.as_deref().map(String::as_str) {
        Some("empty") => String::new(),
        Some(_) => "x".repeat(513),
        None => "ch_1".to_owned(),
    };
    exec.link("gateway", &id).await?;
    Ok(StatusCode::CREATED)
}

fn router() -> Router<App> {
    Router::new().route("/charge", post(charge)).route("/linked", post(linked)).route("/linked/{id}", post(linked))
}

async fn post_once(shop: &Shop, path: &str, key: &str) -> reqwest::Response {
    shop.post(path, key).json(&json!({})).send().await.unwrap()
}

fn status_header(response: &reqwest::Response) -> Option<&str> {
    response.headers().get("idempotency-status").map(|value| value.to_str().unwrap())
}

/// Clause 21: closed, not open.
#[tokio::test]
async fn scenario_50_without_a_store_nothing_runs() {
    let shop = Shop::open(router()).await;
    shop.store.down();
    let refused = problem(post_once(&shop, "/charge", "k1").await).await;
    assert_eq!((refused.status, refused.slug.as_str()), (503, "idempotency-store-unavailable"));
    assert!((1..=5).contains(&refused.retry_after.unwrap()));
    assert_eq!((&refused.body["safe_new_key"], &refused.body["retry"]), (&json!(false), &json!("same-key")));
    assert_eq!((shop.probe.started(), shop.records().await), (0, 0));
    shop.store.heal();
    assert_eq!(post_once(&shop, "/charge", "k1").await.status(), 201);
}

#[tokio::test]
async fn scenario_51_a_completion_is_tried_again_until_it_is_stored() {
    let shop = Shop::open(router()).await;
    shop.store.tell(Verb::Finish, Fault::Fails(3));
    let first = post_once(&shop, "/charge", "k1").await;
    assert_eq!((first.status().as_u16(), status_header(&first)), (201, None), "the real answer, once it is stored");
    assert_eq!((shop.state().await, shop.store.calls(Verb::Finish)), (2, 4));
    assert!(seen(post_once(&shop, "/charge", "k1").await).await.replayed);
    assert_eq!(shop.probe.effects(), 1);
}

/// Case 17 and clause 22 as well: the effect happened, so its caller hears of it, and nobody runs it again.
#[tokio::test]
async fn scenario_52_an_outcome_that_cannot_be_stored_is_told_once_and_held() {
    let shop = Shop::open_with(router(), |builder| builder.lease(Duration::from_secs(1)).cache_bytes(1 << 20)).await;
    let logs = Logs::collect();
    shop.store.tell(Verb::Finish, Fault::Down);
    let first = post_once(&shop, "/charge", "k1").await;
    assert_eq!((first.status().as_u16(), status_header(&first)), (201, Some("unrecorded")));
    assert_eq!(first.text().await.unwrap(), "effect 1");
    assert!(logs.alarming().iter().any(|line| line.text.contains("unrecorded")), "somebody is told");
    shop.store.heal();
    eventually(async || shop.record("store_faults.charge", "k1").await.state == Stands::InDoubt).await;
    let again = problem(post_once(&shop, "/charge", "k1").await).await;
    assert_eq!((again.status, again.slug.as_str()), (409, "idempotency-outcome-unknown"));
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn clause_22_the_reply_to_a_completion_may_be_lost() {
    let shop = Shop::open(router()).await;
    shop.store.tell(Verb::Finish, Fault::ReplyLost(2));
    let first = post_once(&shop, "/charge", "k1").await;
    assert_eq!((first.status().as_u16(), status_header(&first), shop.state().await), (201, None, 2));
    assert!(seen(post_once(&shop, "/charge", "k1").await).await.replayed);
}

#[tokio::test]
async fn scenario_53_a_claim_whose_reply_was_lost_is_sent_again_as_the_same_attempt() {
    let shop = Shop::open(router()).await;
    shop.store.tell(Verb::Claim, Fault::ReplyLost(1));
    assert_eq!(post_once(&shop, "/charge", "k1").await.status(), 201);
    let record = shop.record("store_faults.charge", "k1").await;
    assert_eq!((record.state, record.attempts, record.epoch), (Stands::Done, 1, record.fence));
    assert_eq!((shop.probe.effects(), shop.store.calls(Verb::Claim)), (1, 2));
}

/// The claim counted, but nobody knows: it is given back as soon as the store takes it.
#[tokio::test]
async fn clause_21_a_claim_that_was_given_up_does_not_keep_its_key() {
    let shop = Shop::open_with(router(), |builder| builder.lease(Duration::from_secs(3600))).await;
    shop.store.tell(Verb::Claim, Fault::ReplyLost(2));
    let refused = problem(post_once(&shop, "/charge", "k1").await).await;
    assert_eq!(
        (refused.slug.as_str(), &refused.body["safe_new_key"]),
        ("idempotency-store-unavailable", &json!(false))
    );
    eventually(async || shop.record("store_faults.charge", "k1").await.state == Stands::Released).await;
    assert_eq!(shop.probe.started(), 0);
    assert_eq!(post_once(&shop, "/charge", "k1").await.status(), 201);
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn clause_21_a_claim_that_was_given_up_is_released_when_the_store_heals() {
    let shop = Shop::open_with(router(), |builder| builder.lease(Duration::from_secs(6))).await;
    shop.store.tell(Verb::Claim, Fault::ReplyLost(2));
    shop.store.tell(Verb::Finish, Fault::Fails(1));
    assert_eq!(post_once(&shop, "/charge", "k1").await.status(), 503);
    eventually(async || shop.store.calls(Verb::Finish) >= 1).await;
    assert_eq!(shop.state().await, 1, "the store did not take it");
    eventually(async || shop.state().await == 4).await;
    assert!(shop.record("store_faults.charge", "k1").await.lease_left > Duration::ZERO, "before its lease ended");
    assert_eq!(post_once(&shop, "/charge", "k1").await.status(), 201);
}

/// As in a process that was frozen right after its claim: somebody else may run by now.
#[tokio::test]
async fn clause_20_a_body_does_not_start_on_a_lease_that_is_over() {
    let shop = Shop::open_with(router(), |builder| builder.lease(Duration::from_secs(1))).await;
    shop.store.tell(Verb::Claim, Fault::ReplySlow(Duration::from_millis(1200)));
    let refused = problem(post_once(&shop, "/charge", "k1").await).await;
    assert_eq!((refused.status, refused.slug.as_str()), (503, "idempotency-store-unavailable"));
    assert_eq!(shop.probe.started(), 0);
    shop.store.heal();
    eventually(async || shop.state().await == 4).await;
    assert_eq!(post_once(&shop, "/charge", "k1").await.status(), 201, "the key was given back");
}

/// The claim lands when nobody waits for it any more, and after a first attempt to give it back found nothing.
#[tokio::test]
async fn clause_21_a_claim_that_lands_late_is_given_back() {
    let shop = Shop::open_with(router(), |builder| builder.lease(Duration::from_secs(60))).await;
    shop.store.tell(Verb::Claim, Fault::Late(Duration::from_millis(1500)));
    assert_eq!(post_once(&shop, "/charge", "k1").await.status(), 503);
    eventually(async || shop.store.calls(Verb::Finish) >= 1).await;
    shop.store.heal();
    assert_eq!(shop.records().await, 0, "nothing to give back yet");
    eventually(async || shop.records().await == 1 && shop.state().await == 4).await;
    assert_eq!(post_once(&shop, "/charge", "k1").await.status(), 201);
    assert_eq!(shop.probe.effects(), 1);
}

/// A retry cannot know whether its first try had run, so it must not take a new key.
#[tokio::test]
async fn clause_21_a_retry_is_never_told_that_a_new_key_is_safe_while_the_store_is_down() {
    let shop = Shop::open(router()).await;
    assert_eq!(post_once(&shop, "/charge", "k1").await.status(), 201);
    shop.store.down();
    let retry = problem(post_once(&shop, "/charge", "k1").await).await;
    assert_eq!((retry.status, &retry.body["safe_new_key"]), (503, &json!(false)));
    assert!(!retry.body["detail"].as_str().unwrap().contains("Nothing was run"));
}

/// A store of somebody's own may panic: that costs an attempt, not what was to be given back.
#[tokio::test]
async fn clause_21_a_store_that_panics_does_not_lose_what_is_to_be_given_back() {
    let shop = Shop::open_with(router(), |builder| builder.lease(Duration::from_secs(60))).await;
    shop.store.tell(Verb::Claim, Fault::ReplyLost(2));
    shop.store.tell(Verb::Finish, Fault::Panics);
    assert_eq!(post_once(&shop, "/charge", "k1").await.status(), 503);
    eventually(async || shop.state().await == 4).await;
    assert!(shop.store.calls(Verb::Finish) >= 2);
    assert_eq!(post_once(&shop, "/charge", "k1").await.status(), 201);
}

#[tokio::test]
async fn clause_21_a_slow_store_is_not_waited_for() {
    let shop = Shop::open_with(router(), |builder| builder.store_timeout(Duration::from_millis(100))).await;
    shop.store.tell(Verb::Claim, Fault::Slow(Duration::from_secs(60)));
    let refused = problem(post_once(&shop, "/charge", "k1").await).await;
    assert_eq!((refused.status, refused.slug.as_str()), (503, "idempotency-store-unavailable"));
    assert_eq!((shop.probe.started(), shop.records().await), (0, 0));
}

/// The effect has happened when the link fails, so nothing may tell the caller that a new key is safe.
#[tokio::test]
async fn clause_27_a_link_that_cannot_be_recorded_is_an_error_after_the_effect() {
    let shop = Shop::open(router()).await;
    shop.store.tell(Verb::Link, Fault::Down);
    let first = problem(post_once(&shop, "/linked", "k1").await).await;
    assert_eq!((first.status, first.slug.as_str()), (503, "idempotency-store-unavailable"));
    assert_eq!(first.body["safe_new_key"], false);
    assert!(!first.body["detail"].as_str().unwrap().contains("Nothing was run"), "{}", first.body["detail"]);
    shop.store.heal();
    let again = problem(post_once(&shop, "/linked", "k1").await).await;
    assert_eq!(again.slug, "idempotency-outcome-unknown", "the body answered 5xx");
    assert_eq!(shop.probe.effects(), 1);
    assert_eq!(post_once(&shop, "/linked", "k2").await.status(), 201);
    assert_eq!(shop.record("store_faults.linked", "k2").await.links, [("gateway".to_owned(), "ch_1".to_owned())]);
}

/// A handler that passes the error on must not free its key: a 4xx would.
#[tokio::test]
async fn clause_27_an_id_that_cannot_be_recorded_holds_the_key() {
    let shop = Shop::open(router()).await;
    for key in ["empty", "long"] {
        let first = problem(post_once(&shop, &format!("/linked/{key}"), key).await).await;
        assert_eq!((first.status, first.slug.as_str()), (500, "idempotency-link-invalid"));
        assert_eq!(first.body["safe_new_key"], false);
        let again = problem(post_once(&shop, &format!("/linked/{key}"), key).await).await;
        assert_eq!(again.slug, "idempotency-outcome-unknown");
    }
    assert_eq!((shop.probe.effects(), shop.store.calls(Verb::Link)), (2, 0));
}

mod on_sqlite {
    use std::sync::Arc;

    use idem_runtime::SqliteStore;
    use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

    use super::*;
    use crate::support::{Logs, Place};

    /// A page limit is what a full disk looks like to SQLite.
    async fn full(place: &Place) -> SqliteConnectOptions {
        place.migrate().await;
        let options: SqliteConnectOptions = place.url().parse().unwrap();
        let options = options
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .pragma("max_page_count", "1"); // as many as there are
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options.clone()).await.unwrap();
        let fill = "insert into idem_key (kid, scope, op, state, reason, fence, attempt, attempts, epoch, fp_alg, fp,
                                          lease_until, created_at, expires_at, guard_until)
                    values (randomblob(16), '', '', 2, 0, 0, x'', 1, 0, 1, x'', 0, 0, 0, 0)";
        while sqlx::query(fill).execute(&pool).await.is_ok() {}
        options
    }

    #[tokio::test]
    async fn clause_21_a_full_disk_stops_everything_before_it_starts() {
        let place = Arc::new(Place::sqlite());
        let store = SqliteStore::with_options(full(&place).await).await.unwrap();
        let shop = Shop::open_over(place, Arc::new(store), router(), |builder| builder).await;
        let logs = Logs::collect();
        let before = shop.records().await;
        let refused = problem(post_once(&shop, "/charge", "k1").await).await;
        assert_eq!((refused.status, refused.slug.as_str()), (503, "idempotency-store-unavailable"));
        assert_eq!((shop.probe.started(), shop.records().await), (0, before));
        let alarming = logs.alarming();
        assert!(alarming.iter().any(|line| line.text.contains("full")), "the log says why: {alarming:?}");
        assert!(!refused.body.to_string().contains("full"), "the caller is not told about our disks");
    }
}
