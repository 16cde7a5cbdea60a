//! Scenarios 63 and 64, clauses 27 and 33: what an operator sees and may do.

use std::time::Duration;

use axum::{Json, Router, extract::State, http::StatusCode, response::Response, routing::post};
use idem_runtime::{
    Audit, Error, ErrorKind, Execution, Fence, Filter, Page, Record, RecordId, Resolution, StoredResponse, idempotent,
    state::{Reason, State as Stands},
};
use serde_json::json;

use crate::support::{App, Plan, Probe, Shop, Tenant, Verb, eventually, handler, problem, seen};

handler!(charge, op = "operators.charge");
handler!(slow, op = "operators.slow", timeout = "20m");
handler!(short, op = "operators.short", ttl = "1m");

#[idempotent(scope = "tenant", op = "operators.linked")]
async fn linked(
    tenant: Tenant,
    State(probe): State<Probe>,
    #[idem] exec: Execution,
    Json(plan): Json<Plan>,
) -> Result<Response, Error> {
    for (provider, id) in [("gateway", "ch_1"), ("ledger", "7"), ("gateway", "ch_1")] {
        exec.link(provider, id).await?;
    }
    Ok(probe.perform(&plan).await)
}

#[idempotent(function, runtime = runtime, scope = "acme", op = "operators.job", key = id)]
async fn job(runtime: &idem_runtime::Runtime, acme: &str, id: &str) -> Result<u32, Error> {
    Err(runtime.find(id, acme, "").await.unwrap_err()) // any error will do
}

const MINUTE: Duration = Duration::from_secs(60);

fn router() -> Router<App> {
    Router::new()
        .route("/charge", post(charge))
        .route("/slow", post(slow))
        .route("/short", post(short))
        .route("/linked", post(linked))
}

fn by() -> Audit {
    Audit { who: "alice".to_owned(), why: "asked the bank".to_owned() }
}

async fn resolve(shop: &Shop, seen: &Record, how: Resolution) -> Result<Record, ErrorKind> {
    shop.runtime.resolve(seen.id, seen.fence, how, by()).await.map_err(|error| error.kind())
}

async fn answer() -> Resolution {
    Resolution::Complete(
        StoredResponse::http((StatusCode::CREATED, [("location", "/things/7")], "settled")).await.unwrap(),
    )
}

/// A record that its own body left in doubt.
async fn doubt(shop: &Shop, path: &str, key: &str) -> Record {
    let sent = shop.post(path, key).json(&json!({"status": 500})).send().await.unwrap();
    assert_eq!(sent.status(), 500);
    shop.record(&path.replace('/', "operators."), key).await
}

/// A record whose owner has fallen silent.
async fn silent(shop: &Shop, path: &str, key: &str) -> Record {
    let started = shop.probe.started();
    let request = shop.post(path, key).json(&json!({"status": 500}));
    let request = tokio::spawn(request.send());
    eventually(async || shop.probe.started() > started).await;
    request.abort();
    shop.freeze().await;
    shop.record(&path.replace('/', "operators."), key).await
}

async fn retry(shop: &Shop, path: &str, key: &str) -> reqwest::Response {
    shop.post(path, key).json(&json!({"status": 500})).send().await.unwrap()
}

/// Case 106, first half.
#[tokio::test]
async fn clause_33_find_shows_where_a_key_stands() {
    let shop = Shop::open(router()).await;
    assert!(shop.runtime.find("operators.linked", "acme", "s3cret-key").await.unwrap().is_none());
    let held = shop.probe.hold().await;
    let first = tokio::spawn(shop.post("/linked", "s3cret-key").json(&json!({"card": "t0p"})).send());
    eventually(async || shop.probe.started() == 1).await;

    let live = shop.record("operators.linked", "s3cret-key").await;
    assert_eq!((live.op.as_str(), live.state, live.reason), ("operators.linked", Stands::InFlight, None));
    assert_eq!((live.attempts, live.epoch), (1, live.fence));
    assert!(live.age < MINUTE && live.lease_left > Duration::ZERO && live.lease_left <= Duration::from_secs(2));
    let links = [("gateway", "ch_1"), ("ledger", "7")].map(|(provider, id)| (provider.to_owned(), id.to_owned()));
    assert_eq!(live.links, links, "each once, oldest first");
    shop.pass(Duration::from_secs(1)).await;
    assert!(shop.record("operators.linked", "s3cret-key").await.age >= live.age + Duration::from_secs(1));
    drop(held);
    assert_eq!(first.await.unwrap().unwrap().status(), 201);

    let done = shop.record("operators.linked", "s3cret-key").await;
    assert_eq!((done.state, done.id, done.attempt, done.fence), (Stands::Done, live.id, live.attempt, live.fence));
    let day = done.expires_at.duration_since(done.created_at).unwrap();
    assert_eq!(day, Duration::from_secs(24 * 3600));
    for secret in ["s3cret", "t0p", "acme"] {
        assert!(!format!("{done:?}").contains(secret));
    }
    assert!(shop.runtime.find("operators.linked", "globex", "s3cret-key").await.unwrap().is_none(), "not theirs");
    let empty = shop.runtime.find("operators.linked", "acme", "").await.unwrap_err();
    assert_eq!(empty.kind(), ErrorKind::InvalidKey);
}

#[tokio::test]
async fn clause_33_an_owner_that_fell_silent_reads_in_doubt() {
    let shop = Shop::open(router()).await;
    let _held = shop.probe.hold().await;
    let silent = silent(&shop, "/charge", "k1").await;
    assert_eq!((silent.state, silent.reason), (Stands::InDoubt, Some(Reason::LeaseExpired)));
    assert_eq!(silent.lease_left, Duration::ZERO);
    assert_eq!(shop.state().await, 1, "nobody has written that down");
}

#[tokio::test]
async fn clause_33_what_an_operator_settles_is_what_a_retry_gets() {
    let shop = Shop::open_with(router(), |builder| builder.cache_bytes(1 << 20)).await;
    let seen_by = doubt(&shop, "/charge", "complete").await;
    let settled = resolve(&shop, &seen_by, answer().await).await.unwrap();
    assert_eq!((settled.state, settled.reason), (Stands::Done, Some(Reason::Operator)));
    assert!(settled.fence > seen_by.fence && settled.attempt != seen_by.attempt);
    let again = seen(retry(&shop, "/charge", "complete").await).await;
    assert_eq!((again.status, again.replayed, again.body.as_str()), (201, true, "settled"));
    assert_eq!(again.location.as_deref(), Some("/things/7"));

    let seen_by = doubt(&shop, "/charge", "release").await;
    assert_eq!(
        resolve(&shop, &seen_by, Resolution::Release).await.unwrap().state,
        Stands::Released,
        "ended by its own report"
    );
    let effects = shop.probe.effects();
    assert_eq!(retry(&shop, "/charge", "release").await.status(), 500);
    assert_eq!(shop.probe.effects(), effects + 1, "it ran");
}

#[tokio::test]
async fn scenario_64_a_voided_operation_is_gone_for_good() {
    let shop = Shop::open(router()).await;
    let seen_by = doubt(&shop, "/linked", "k1").await;
    resolve(&shop, &seen_by, Resolution::Void).await.unwrap();
    for _ in 0..2 {
        let again = problem(retry(&shop, "/linked", "k1").await).await;
        assert_eq!((again.status, again.slug.as_str()), (410, "idempotency-result-unavailable"));
        assert_eq!((&again.body["retry"], &again.body["original_status"]), (&json!("never"), &json!(null)));
        assert_eq!(again.body["links"][0], json!({"provider": "gateway", "id": "ch_1"}));
    }
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn scenario_63_a_decision_that_rests_on_an_old_look_is_refused() {
    let shop = Shop::open(router()).await;
    let old = doubt(&shop, "/charge", "k1").await;
    resolve(&shop, &old, Resolution::Release).await.unwrap();
    doubt(&shop, "/charge", "k1").await; // ran again
    for how in [Resolution::Release, Resolution::Void, answer().await] {
        assert_eq!(resolve(&shop, &old, how).await.unwrap_err(), ErrorKind::Conflict);
    }
    let newer = shop.record("operators.charge", "k1").await;
    let mut ahead = newer.clone();
    ahead.fence.0 += 1;
    assert_eq!(resolve(&shop, &ahead, Resolution::Void).await.unwrap_err(), ErrorKind::Conflict);
    assert_eq!(shop.record("operators.charge", "k1").await.attempt, newer.attempt, "untouched");
    assert_eq!(shop.count("select count(*) from idem_audit").await, 1, "only what happened is written down");
}

#[tokio::test]
async fn clause_33_every_decision_is_written_down() {
    let shop = Shop::open(router()).await;
    let reported = doubt(&shop, "/charge", "k1").await;
    let _held = shop.probe.hold().await;
    for old in [reported, silent(&shop, "/charge", "k2").await] {
        resolve(&shop, &old, Resolution::Void).await.unwrap();
        let row = format!(
            "select count(*) from idem_audit a, idem_key k where a.kid = k.kid and from_state = 5 and to_state = 2
             and who = 'alice' and why = 'asked the bank' and at - created_at < {} and a.fence = {}",
            shop.place.span(Duration::from_secs(3600)),
            old.fence
        );
        assert_eq!(shop.count(&row).await, 1);
    }
}

/// A silent body may still act, and a release would let a second one act as well.
#[tokio::test]
async fn clause_33_a_release_waits_for_the_quarantine() {
    let shop = Shop::open(router()).await; // 10 min
    let held = shop.probe.hold().await;
    let (charge, slow) = (silent(&shop, "/charge", "k1").await, silent(&shop, "/slow", "k1").await);
    assert_eq!(resolve(&shop, &charge, Resolution::Release).await.unwrap_err(), ErrorKind::Conflict);
    shop.pass(MINUTE * 11).await;
    assert_eq!(resolve(&shop, &charge, Resolution::Release).await.unwrap().state, Stands::Released);
    assert_eq!(
        resolve(&shop, &slow, Resolution::Release).await.unwrap_err(),
        ErrorKind::Conflict,
        "it may run for 20 min"
    );
    shop.pass(MINUTE * 10).await;
    assert_eq!(resolve(&shop, &slow, Resolution::Release).await.unwrap().state, Stands::Released);
    drop(held);
    eventually(async || shop.probe.effects() == 2).await;
    assert_eq!(retry(&shop, "/charge", "k1").await.status(), 500);
    assert_eq!(shop.probe.effects(), 3, "the next retry runs");
}

/// However short its `ttl`.
#[tokio::test]
async fn clause_33_a_voided_key_does_not_run_again_beside_its_first_body() {
    let shop = Shop::open(router()).await; // 10 min
    let _held = shop.probe.hold().await;
    let frozen = silent(&shop, "/short", "k1").await;
    resolve(&shop, &frozen, Resolution::Void).await.unwrap();
    shop.pass(MINUTE * 2).await;
    let late = problem(retry(&shop, "/short", "k1").await).await;
    assert_eq!((late.status, late.slug.as_str()), (410, "idempotency-result-expired"));
    assert_eq!(shop.probe.started(), 1);
    shop.pass(MINUTE * 9).await;
    let retry = tokio::spawn(shop.post("/short", "k1").json(&json!({})).send());
    eventually(async || shop.probe.started() == 2).await;
    retry.abort();
}

#[tokio::test]
async fn clause_33_only_a_doubt_can_be_settled() {
    let shop = Shop::open(router()).await;
    shop.post("/charge", "done").json(&json!({})).send().await.unwrap();
    shop.post("/charge", "free").json(&json!({"status": 422})).send().await.unwrap();
    let held = shop.probe.hold().await;
    let live = tokio::spawn(shop.post("/charge", "live").json(&json!({})).send());
    eventually(async || shop.probe.started() == 3).await;
    for key in ["done", "free", "live"] {
        let record = shop.record("operators.charge", key).await;
        for how in [Resolution::Release, Resolution::Void, answer().await] {
            assert_eq!(resolve(&shop, &record, how).await.unwrap_err(), ErrorKind::Conflict, "{key}");
        }
    }
    drop(held);
    assert_eq!(live.await.unwrap().unwrap().status(), 201, "a live run is not disturbed");
    let nowhere = RecordId::from([7; 16]);
    let error = shop.runtime.resolve(nowhere, Fence(1), Resolution::Void, by()).await.unwrap_err();
    assert_eq!((error.kind(), error.record()), (ErrorKind::Conflict, Some(nowhere)));
    assert_eq!(shop.count("select count(*) from idem_audit").await, 0);
}

#[tokio::test]
async fn clause_33_the_answer_must_be_of_the_operations_kind() {
    let shop = Shop::open(router()).await;
    let handler = doubt(&shop, "/charge", "k1").await;
    let value = Resolution::Complete(StoredResponse::value(&7).unwrap());
    assert_eq!(resolve(&shop, &handler, value.clone()).await.unwrap_err(), ErrorKind::Conflict);
    job(&shop.runtime, "acme", "j1").await.unwrap_err();
    let function = shop.record("operators.job", "j1").await;
    assert_eq!(function.state, Stands::InDoubt);
    assert_eq!(resolve(&shop, &function, answer().await).await.unwrap_err(), ErrorKind::Conflict);
    resolve(&shop, &function, value).await.unwrap();
    assert_eq!(job(&shop.runtime, "acme", "j1").await.unwrap(), 7, "typed, as the function would have returned it");
}

/// Case 106, second half: a body that ends at the same moment. One of them wins, and everybody hears the same.
#[tokio::test]
async fn case_106_a_decision_racing_a_completion_has_one_winner() {
    let shop = Shop::open(router()).await;
    let mut decided = 0;
    for n in 0..12 {
        let key = n.to_string();
        let held = shop.probe.hold().await;
        let first = tokio::spawn(shop.post("/charge", &key).json(&json!({})).send());
        eventually(async || shop.probe.started() == n + 1).await;
        shop.freeze().await;
        let silent = shop.record("operators.charge", &key).await;
        let decision = async {
            tokio::time::sleep(Duration::from_millis(n as u64 % 4)).await; // vary who comes first
            resolve(&shop, &silent, answer().await).await
        };
        drop(held);
        let (decision, first) = tokio::join!(decision, first);
        let (first, again) = (
            seen(first.unwrap().unwrap()).await,
            seen(shop.post("/charge", &key).json(&json!({})).send().await.unwrap()).await,
        );
        assert_eq!((first.status, &first.body), (again.status, &again.body), "round {n}");
        assert_eq!(decision.is_ok(), again.body == "settled", "round {n}");
        decided += i64::from(decision.is_ok());
    }
    assert_eq!(shop.count("select count(*) from idem_audit").await, decided);
}

#[tokio::test]
async fn clause_33_a_store_that_cannot_tell_is_no_decision() {
    let shop = Shop::open(router()).await;
    let record = doubt(&shop, "/charge", "k1").await;
    shop.store.tell(Verb::Resolve, crate::support::Fault::Down);
    let unavailable = |error| matches!(error, ErrorKind::Unavailable { .. });
    assert!(unavailable(resolve(&shop, &record, Resolution::Void).await.unwrap_err()));
    shop.store.tell(Verb::Find, crate::support::Fault::Down);
    assert!(unavailable(shop.runtime.find("operators.charge", "acme", "k1").await.unwrap_err().kind()));
    shop.store.heal();
    assert_eq!(shop.record("operators.charge", "k1").await.state, Stands::InDoubt);
}

/// What is in doubt is found without a key, page by page; what came into doubt just now may be missing.
#[tokio::test]
async fn clause_33_operators_list_what_is_in_doubt() {
    let shop = Shop::open(router()).await;
    for n in 0..5 {
        doubt(&shop, "/charge", &n.to_string()).await;
    }
    doubt(&shop, "/slow", "k").await;
    shop.pass(MINUTE).await;
    let filter = Filter::default().op("operators.charge").scope("acme").state(Stands::InDoubt).older_than(MINUTE);
    eventually(async || shop.runtime.list(filter.clone(), Page::default()).await.unwrap().len() == 5).await;
    let (mut found, mut page) = (Vec::new(), Page::first(2));
    loop {
        let records = shop.runtime.list(filter.clone(), page).await.unwrap();
        let Some(last) = records.last() else { break };
        page = page.after(last.id);
        found.extend(records);
    }
    assert_eq!(found.len(), 5);
    assert!(found.iter().all(|record| record.reason == Some(Reason::Status) && record.op == "operators.charge"));
    assert!(shop.runtime.list(filter.clone().scope("globex"), Page::default()).await.unwrap().is_empty());
    assert!(shop.runtime.list(filter.older_than(MINUTE * 2), Page::default()).await.unwrap().is_empty());
    assert!(!format!("{:?}", Filter::default().scope("acme")).contains("acme"));
    shop.store.tell(Verb::Find, crate::support::Fault::Down);
    let unavailable = shop.runtime.list(Filter::default(), Page::default()).await.unwrap_err();
    assert!(matches!(unavailable.kind(), ErrorKind::Unavailable { .. }));
}

#[tokio::test]
async fn clause_27_a_providers_id_finds_the_operation() {
    let shop = Shop::open(router()).await;
    assert_eq!(shop.post("/linked", "k1").json(&json!({})).send().await.unwrap().status(), 201);
    let found = shop.runtime.find_by_link("gateway", "ch_1").await.unwrap();
    let ids: Vec<RecordId> = found.iter().map(|record| record.id).collect();
    assert_eq!(ids, [shop.record("operators.linked", "k1").await.id]);
    assert!(shop.runtime.find_by_link("ledger", "ch_1").await.unwrap().is_empty());
    shop.store.tell(Verb::Find, crate::support::Fault::Down);
    assert!(shop.runtime.find_by_link("gateway", "ch_1").await.is_err());
}
