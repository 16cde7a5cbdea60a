//! Records that are over are removed, others are not, and none by a clock that jumped: clause 24, case 91.

use std::{sync::Arc, time::Duration};

use axum::{Router, routing::post};
use idem_runtime::{Audit, Builder, Resolution};

use crate::support::{App, Fault, Logs, Seen, Shop, Verb, eventually, handler, refusal, seen};

handler!(charge, op = "purge.charge");
handler!(short, op = "purge.short", ttl = "10s");
handler!(late, op = "purge.late", ttl = "1h", refuse_late = "3h");

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn router() -> Router<App> {
    Router::new().route("/charge", post(charge)).route("/short", post(short)).route("/late", post(late))
}

fn often(builder: Builder) -> Builder {
    builder.purge_every(Duration::from_millis(20))
}

async fn send(shop: &Shop, path: &str, key: &str) -> reqwest::Response {
    shop.post(path, key).json(&serde_json::json!({})).send().await.unwrap()
}

async fn failing(shop: &Shop, path: &str, key: &str) -> reqwest::Response {
    shop.post(path, key).json(&serde_json::json!({"status": 500})).send().await.unwrap()
}

/// A request whose body has started.
async fn running(shop: &Shop, path: &str, key: &str) -> tokio::task::JoinHandle<reqwest::Response> {
    let started = shop.probe.started();
    let request = shop.post(path, key).json(&serde_json::json!({}));
    let task = tokio::spawn(async move { request.send().await.unwrap() });
    eventually(async || shop.probe.started() > started).await;
    task
}

/// The database's clock jumps between two looks of the purge: one that has just looked would not notice.
async fn jump(shop: &Shop, hours: i64) {
    shop.store.tell(Verb::Purge, Fault::Down);
    looks(shop).await;
    shop.place.jump(hours).await;
    shop.store.tell(Verb::Purge, Fault::Fails(1));
}

/// Records in this state whose windows end so many seconds from now.
async fn fill(shop: &Shop, records: u32, state: u8, seconds: i64) {
    shop.place.fill("purge.charge", records, state, seconds).await;
}

async fn last_purge_was(shop: &Shop, hours_ago: i64) {
    shop.sql(&format!("update idem_meta set purged_at = purged_at - {}", shop.place.hours(hours_ago))).await;
}

/// Lets a few looks of the purge go by.
async fn looks(shop: &Shop) {
    let asked = shop.store.calls(Verb::Purge);
    eventually(async || shop.store.calls(Verb::Purge) >= asked + 5).await;
}

fn refusals(logs: &Logs) -> Vec<String> {
    let lines = logs.alarming().into_iter().filter(|line| line.target == "idem::purge");
    lines.map(|line| line.text).filter(|text| text.contains("Runtime::confirm_purge")).collect()
}

#[tokio::test]
async fn case_91_what_is_over_goes_in_batches_from_several_processes_and_nothing_else() {
    let quiet = Shop::open(router()).await;
    fill(&quiet, 2_000, 2, -3600).await;
    fill(&quiet, 50, 2, 3600).await;
    fill(&quiet, 10, 1, -7200).await;
    fill(&quiet, 10, 5, -7200).await;
    fill(&quiet, 10, 6, -7200).await;
    fill(&quiet, 10, 42, -7200).await;
    let logs = Logs::collect();
    let one = Shop::open_on(Arc::clone(&quiet.place), router(), often).await;
    let two = Shop::open_on(Arc::clone(&quiet.place), router(), often).await;
    let mut served = 0;
    while quiet.records().await > 90 + served {
        assert_eq!(send(&one, "/charge", &format!("k{served}")).await.status(), 201);
        served += 1;
        assert!(served < 2_000, "it does not end");
    }
    looks(&two).await;
    assert_eq!(quiet.records().await, 90 + served);
    // The look for doubts may have found those that were filled in, where all this takes long.
    let alarming: Vec<_> = logs.alarming().into_iter().filter(|line| line.target != "idem::sweep").collect();
    assert!(alarming.is_empty(), "{alarming:?}");
    let told = || logs.all().iter().any(|line| line.target == "idem::purge" && line.text.contains("records="));
    eventually(async || told()).await; // by the one that has removed them, at the end of its pass
    assert!(one.runtime.shutdown(Duration::from_secs(1)).await.completed);
    let asked = one.store.calls(Verb::Purge);
    looks(&two).await;
    assert_eq!(one.store.calls(Verb::Purge), asked, "shut down");
}

#[tokio::test]
async fn a_purge_ends_with_the_draining_and_with_the_runtime() {
    let shop = Shop::open_with(router(), often).await;
    looks(&shop).await;
    shop.runtime.start_draining();
    let asked = shop.store.calls(Verb::Purge);
    let other = Shop::open_on(Arc::clone(&shop.place), router(), often).await;
    looks(&other).await;
    assert!(shop.store.calls(Verb::Purge) <= asked + 1);
}

/// A store that is down, then one that panics, cost a pass each.
#[tokio::test]
async fn a_purge_that_fails_is_tried_again() {
    let shop = Shop::open_with(router(), often).await;
    let logs = Logs::collect();
    shop.store.tell(Verb::Purge, Fault::Fails(3));
    looks(&shop).await;
    shop.store.tell(Verb::Purge, Fault::Panics);
    looks(&shop).await;
    let told = logs.alarming();
    assert!(told.iter().any(|line| line.text.contains("the test says so")), "with its source: {told:?}");
    assert!(told.iter().any(|line| line.text.contains("panicked")), "{told:?}");
    send(&shop, "/short", "k1").await;
    shop.pass(HOUR).await;
    eventually(async || shop.records().await == 0).await;
}

#[tokio::test]
async fn scenario_49_an_owner_whose_key_was_purged_and_claimed_again_changes_nothing() {
    let shop = Shop::open_with(router(), often).await;
    let held = shop.probe.hold().await;
    let first = running(&shop, "/charge", "k1").await;
    let live = shop.record("purge.charge", "k1").await;
    shop.freeze().await;
    shop.pass(HOUR).await;
    let by = Audit { who: "ops".to_owned(), why: "asked the bank".to_owned() };
    shop.runtime.resolve(live.id, live.fence, Resolution::Release, by).await.unwrap();
    shop.pass(2 * DAY).await;
    eventually(async || shop.records().await == 0).await;
    let other = Shop::open_on(Arc::clone(&shop.place), router(), |builder| builder).await;
    other.probe.effect("so that its answers differ");
    let second = seen(send(&other, "/charge", "k1").await).await;
    assert_eq!((second.status, second.body.as_str()), (201, "effect 2"));
    let afresh = other.record("purge.charge", "k1").await;
    assert!(afresh.fence > live.fence && afresh.attempts == 1);
    drop(held);
    let first = seen(first.await.unwrap()).await;
    assert_eq!(first, Seen { replayed: true, ..second }, "what is stored, never its own");
    assert_eq!(shop.record("purge.charge", "k1").await.attempt, afresh.attempt);
}

#[tokio::test]
async fn scenario_58_a_database_clock_that_jumps_ahead_purges_nothing_and_runs_nothing_again() {
    let shop = Shop::open_with(router(), often).await;
    let logs = Logs::collect();
    assert_eq!(send(&shop, "/charge", "done").await.status(), 201);
    let held = shop.probe.hold().await;
    let _first = running(&shop, "/charge", "held").await;
    looks(&shop).await;
    shop.store.tell(Verb::Renew, Fault::Down);
    jump(&shop, 25).await;
    eventually(async || !refusals(&logs).is_empty()).await;
    looks(&shop).await;
    assert_eq!(shop.records().await, 2);
    assert_eq!(refusals(&logs).len(), 1, "told once: {:?}", refusals(&logs));
    let told = refusal(send(&shop, "/charge", "held").await).await;
    assert_eq!(told, (409, "idempotency-outcome-unknown".to_owned()));
    assert_eq!(shop.probe.started(), 2, "nothing ran again");
    shop.runtime.confirm_purge();
    eventually(async || shop.records().await == 1).await;
    assert_eq!(shop.record("purge.charge", "held").await.op, "purge.charge", "in doubt, so it stays");
    looks(&shop).await;
    assert_eq!(refusals(&logs).len(), 1);
    drop(held);
}

#[tokio::test]
async fn scenario_58_a_clock_that_is_set_right_again_needs_no_operator() {
    let shop = Shop::open_with(router(), often).await;
    let logs = Logs::collect();
    send(&shop, "/charge", "k1").await;
    looks(&shop).await;
    jump(&shop, 25).await;
    eventually(async || !refusals(&logs).is_empty()).await;
    jump(&shop, -25).await;
    looks(&shop).await;
    assert_eq!(shop.records().await, 1);
    send(&shop, "/short", "k2").await;
    let hour = shop.place.hours(1);
    shop.sql(&format!("update idem_key set guard_until = guard_until - {hour} where op = 'purge.short'")).await;
    eventually(async || shop.records().await == 1).await;
}

#[tokio::test]
async fn clause_24_a_first_look_after_long_removes_much_only_when_told_to() {
    let quiet = Shop::open(router()).await;
    fill(&quiet, 1_200, 2, -3600).await;
    last_purge_was(&quiet, 2).await;
    let logs = Logs::collect();
    let one = Shop::open_on(Arc::clone(&quiet.place), router(), often).await;
    let two = Shop::open_on(Arc::clone(&quiet.place), router(), often).await;
    eventually(async || refusals(&logs).len() == 2).await;
    looks(&one).await;
    looks(&two).await;
    assert_eq!(quiet.records().await, 1_200);
    assert!(refusals(&logs)[0].contains("records=1200 of=1200"), "{:?}", refusals(&logs));
    one.runtime.confirm_purge();
    eventually(async || quiet.records().await == 0).await;
    fill(&quiet, 1, 2, -3600).await;
    one.runtime.start_draining();
    eventually(async || quiet.records().await == 0).await; // by the other, which nobody told
    assert_eq!(refusals(&logs).len(), 2);
}

#[tokio::test]
async fn clause_24_a_first_look_after_long_may_remove_a_little() {
    let quiet = Shop::open(router()).await;
    fill(&quiet, 1_000, 2, -3600).await;
    last_purge_was(&quiet, 72).await;
    let logs = Logs::collect();
    let shop = Shop::open_on(Arc::clone(&quiet.place), router(), often).await;
    eventually(async || shop.records().await == 0).await;
    assert!(refusals(&logs).is_empty());
}

#[tokio::test]
async fn scenario_65_what_is_in_doubt_is_not_purged_when_its_windows_are_over() {
    let shop = Shop::open_with(router(), often).await;
    assert_eq!(failing(&shop, "/late", "doubtful").await.status(), 500);
    assert_eq!(send(&shop, "/late", "done").await.status(), 201);
    shop.pass(365 * DAY).await;
    eventually(async || shop.records().await == 1).await;
    looks(&shop).await;
    let told = refusal(failing(&shop, "/late", "doubtful").await).await;
    assert_eq!(told, (409, "idempotency-outcome-unknown".to_owned()));
    assert_eq!(shop.probe.effects(), 2);
}

/// C-12: the record survives; the answer does not.
#[tokio::test]
async fn clause_12_an_answer_goes_with_its_window_and_the_record_with_its_refusals() {
    let shop = Shop::open_with(router(), often).await;
    assert_eq!(send(&shop, "/late", "k1").await.status(), 201);
    looks(&shop).await;
    let answers = format!("select count(headers) from {}", shop.place.backend().answers());
    assert_eq!(shop.count(&answers).await, 1);
    shop.pass(HOUR + Duration::from_secs(30)).await;
    eventually(async || shop.count(&answers).await == 0).await;
    let told = refusal(send(&shop, "/late", "k1").await).await;
    assert_eq!(told, (410, "idempotency-result-expired".to_owned()));
    shop.pass(2 * HOUR + Duration::from_secs(60)).await;
    eventually(async || shop.records().await == 0).await;
    assert!(seen(send(&shop, "/late", "k1").await).await.ran());
}

#[tokio::test]
async fn scenario_97_a_retry_during_a_purge_gets_the_old_answer_or_a_fresh_run() {
    let shop = Shop::open_with(router(), often).await;
    for round in 0..20 {
        let key = format!("k{round}");
        let first = seen(send(&shop, "/short", &key).await).await;
        let before = shop.probe.effects();
        let moved = shop.pass(Duration::from_secs(3600));
        let (_, answers) = tokio::join!(
            moved,
            futures_util::future::join_all((0..8).map(|_| async { send(&shop, "/short", &key).await }))
        );
        let mut ran = 0;
        for answer in answers {
            if answer.status() == 409 {
                assert_eq!(refusal(answer).await.1, "idempotency-in-progress");
                continue;
            }
            let answer = seen(answer).await;
            ran += usize::from(!answer.replayed);
            assert_eq!(answer.status, 201);
            let fresh = format!("effect {}", before + 1);
            assert!(answer.body == fresh || answer.replayed && answer.body == first.body, "{answer:?} after {first:?}");
        }
        assert!(ran <= 1);
        assert_eq!(shop.probe.effects(), before + ran);
    }
}
