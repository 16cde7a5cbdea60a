//! Scenarios 48 and 60 to 62, clause 33: doubts that settle themselves by a hook.

mod backlog;
mod quarantine;
mod withdrawn;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, http::StatusCode, routing::post};
use idem_runtime::{
    Builder, InDoubt, RecordId, Recovery, StoredResponse,
    state::{Reason, State},
};
use serde_json::json;

use crate::support::{App, Fault, Logs, Place, Shop, Verb, eventually, handler, problem, seen};

handler!(charge, op = "recovering.charge");
handler!(patient, op = "recovering.patient", in_flight = wait("15s"));
handler!(alone, op = "recovering.alone");
handler!(brief, op = "recovering.brief", timeout = "1s");

const LONG: Duration = Duration::from_secs(11 * 60);
/// The time of the lease's grace, and what a look for doubts may leave out.
const A_WHILE: Duration = Duration::from_secs(6);

/// What the hooks of a test ask.
#[derive(Clone, Default)]
struct Bank {
    says: Arc<Mutex<Says>>,
    asked: Arc<Mutex<Vec<InDoubt>>>,
    /// Holds a No between the look and the answer.
    gate: Arc<tokio::sync::RwLock<()>>,
}

#[derive(Clone, Copy, Default)]
enum Says {
    Yes,
    No,
    #[default]
    Nothing,
    Panics,
    Hangs,
}

impl Bank {
    fn says(&self, says: Says) {
        *self.says.lock().unwrap() = says;
    }

    fn asked(&self) -> Vec<InDoubt> {
        self.asked.lock().unwrap().clone()
    }

    async fn is_asked(&self, times: usize) {
        eventually(async || self.asked().len() >= times).await;
    }

    async fn find(self, doubt: InDoubt) -> Recovery {
        self.asked.lock().unwrap().push(doubt);
        let says = *self.says.lock().unwrap();
        match says {
            Says::Yes => {
                let answer = StoredResponse::http((StatusCode::CREATED, [("location", "/things/7")], "found")).await;
                Recovery::Completed(answer.unwrap(), vec![("bank".to_owned(), "tx_7".to_owned())])
            }
            Says::No => {
                drop(self.gate.read().await);
                Recovery::NotApplied
            }
            Says::Nothing => Recovery::StillUnknown { retry_in: Some(Duration::ZERO) },
            Says::Panics => panic!("the test says so"),
            Says::Hangs => std::future::pending().await,
        }
    }

    fn hooks(&self, builder: Builder) -> Builder {
        let (one, other, brief) = (self.clone(), self.clone(), self.clone());
        builder
            .sweep_every(Duration::from_millis(20))
            .recover("recovering.charge", move |doubt| one.clone().find(doubt))
            .recover("recovering.patient", move |doubt| other.clone().find(doubt))
            .recover("recovering.brief", move |doubt| brief.clone().find(doubt))
    }

    async fn shop(&self) -> Shop {
        Shop::open_with(router(), |builder| self.hooks(builder)).await
    }
}

fn router() -> Router<App> {
    Router::new()
        .route("/charge", post(charge))
        .route("/patient", post(patient))
        .route("/alone", post(alone))
        .route("/brief", post(brief))
}

async fn failed(shop: &Shop, path: &str, key: &str) {
    assert_eq!(shop.post(path, key).json(&json!({"status": 500})).send().await.unwrap().status(), 500);
}

async fn retry(shop: &Shop, key: &str) -> reqwest::Response {
    shop.post("/charge", key).json(&json!({"status": 500})).send().await.unwrap()
}

async fn stands(shop: &Shop, key: &str) -> State {
    shop.record("recovering.charge", key).await.state
}

/// A run that is held before its effect, and whose process looks frozen.
async fn silent(shop: &Shop, key: &str) -> tokio::task::JoinHandle<reqwest::Response> {
    let post = shop.post("/charge", key).json(&json!({}));
    let started = shop.probe.started();
    let first = tokio::spawn(async move { post.send().await.unwrap() });
    eventually(async || shop.probe.started() > started).await;
    shop.freeze().await;
    shop.pass(A_WHILE).await;
    first
}

#[tokio::test]
async fn scenario_60_what_the_hook_finds_is_what_retries_get() {
    let bank = Bank::default();
    let shop = bank.shop().await;
    failed(&shop, "/charge", "k").await;
    let told = problem(retry(&shop, "k").await).await;
    assert_eq!((told.status, told.slug.as_str(), told.retry_after), (409, "idempotency-outcome-unknown", Some(5)));
    assert_eq!((told.body["retry"].as_str(), told.body["safe_new_key"].as_bool()), (Some("same-key"), Some(false)));
    shop.pass(A_WHILE).await;
    bank.is_asked(1).await;
    bank.says(Says::Yes);
    shop.pass(A_WHILE).await;
    eventually(async || stands(&shop, "k").await == State::Done).await;
    let again = seen(retry(&shop, "k").await).await;
    assert_eq!((again.status, again.replayed, again.body.as_str()), (201, true, "found"));
    assert_eq!((again.location.as_deref(), shop.probe.effects()), (Some("/things/7"), 1));

    let record = shop.record("recovering.charge", "k").await;
    assert_eq!(record.reason, Some(Reason::Recovery));
    assert_eq!(record.links, [("bank".to_owned(), "tx_7".to_owned())]);
    assert_eq!(shop.count("select count(*) from idem_audit where who = 'recovery hook'").await, 1);
    let doubt = &bank.asked()[0];
    assert_eq!((doubt.op(), doubt.record(), doubt.scope()), ("recovering.charge", record.id, "acme"));
    assert_eq!((doubt.reason(), doubt.attempts(), doubt.tries()), (Reason::Status, 1, 1));
    assert_eq!(doubt.provider_key().len(), 64);
    let shown = format!("{doubt:?}");
    assert!(!shown.contains("acme") && !shown.contains(doubt.provider_key()), "{shown}");
    shop.pass(A_WHILE + Duration::from_secs(24 * 3600)).await;
    assert_eq!(retry(&shop, "k").await.status(), 500, "it guards its key for as long as any answer");
}

#[tokio::test]
async fn scenario_60_a_client_that_waits_waits_for_the_hook_too() {
    let bank = Bank::default();
    let shop = bank.shop().await;
    failed(&shop, "/patient", "k").await;
    shop.pass(A_WHILE).await;
    let waiting = tokio::spawn(shop.post("/patient", "k").json(&json!({"status": 500})).send());
    bank.is_asked(2).await;
    assert!(!waiting.is_finished());
    bank.says(Says::Yes);
    shop.pass(A_WHILE).await;
    let answer = seen(waiting.await.unwrap().unwrap()).await;
    assert_eq!((answer.status, answer.replayed, answer.body.as_str()), (201, true, "found"));
}

async fn retry_other(shop: &Shop, key: &str) -> reqwest::Response {
    shop.post("/charge", key).json(&json!({})).send().await.unwrap()
}

#[tokio::test]
async fn scenario_62_two_processes_ask_about_each_doubt_once() {
    let bank = Bank::default();
    bank.says(Says::Yes);
    let place = Arc::new(Place::new());
    let quiet = Shop::open_on(Arc::clone(&place), router(), |builder| builder.sweep_every(Duration::ZERO)).await;
    for n in 0..10 {
        failed(&quiet, "/charge", &n.to_string()).await;
    }
    quiet.pass(A_WHILE).await;
    let one = Shop::open_on(Arc::clone(&place), router(), |builder| bank.hooks(builder)).await;
    let other = Shop::open_on(place, router(), |builder| bank.hooks(builder)).await;
    eventually(async || one.count("select count(*) from idem_key where state = 2").await == 10).await;
    let looks = other.store.calls(Verb::Survey);
    eventually(async || other.store.calls(Verb::Survey) > looks + 2).await;
    let mut asked: Vec<RecordId> = bank.asked().iter().map(InDoubt::record).collect();
    asked.sort_by_key(|id| *id.as_bytes());
    asked.dedup();
    assert_eq!((asked.len(), bank.asked().len()), (10, 10));
}

/// Each look at a provider that hangs takes its time; those of others do not wait for it.
#[tokio::test]
async fn clause_33_a_provider_that_hangs_keeps_no_other_operation_waiting() {
    let (hangs, finds) = (Bank::default(), Bank::default());
    hangs.says(Says::Hangs);
    finds.says(Says::Yes);
    let (one, other) = (hangs.clone(), finds.clone());
    let shop = Shop::open_with(router(), |builder| {
        builder
            .sweep_every(Duration::from_millis(20))
            .recover("recovering.charge", move |doubt| one.clone().find(doubt))
            .recover("recovering.patient", move |doubt| other.clone().find(doubt))
    })
    .await;
    for n in 0..20 {
        failed(&shop, "/charge", &n.to_string()).await;
    }
    shop.pass(A_WHILE).await;
    hangs.is_asked(8).await;
    let looks = shop.store.calls(Verb::Survey);
    eventually(async || shop.store.calls(Verb::Survey) > looks + 3).await;
    failed(&shop, "/patient", "k").await;
    shop.pass(A_WHILE).await;
    eventually(async || shop.record("recovering.patient", "k").await.state == State::Done).await;
    assert_eq!(hangs.asked().len(), 8);
}

#[tokio::test]
async fn scenario_48_an_owner_that_comes_after_a_recovery_serves_what_is_stored() {
    let bank = Bank::default();
    let logs = Logs::collect();
    let shop = bank.shop().await;
    let held = shop.probe.hold().await;
    let first = silent(&shop, "k").await;
    bank.says(Says::Yes);
    eventually(async || {
        shop.pass(Duration::from_secs(1)).await;
        stands(&shop, "k").await == State::Done
    })
    .await;
    drop(held);
    let first = seen(first.await.unwrap()).await;
    assert_eq!((first.status, first.replayed, first.body.as_str()), (201, true, "found"), "not its own answer");
    let again = seen(retry_other(&shop, "k").await).await;
    assert_eq!((again.status, again.body.as_str()), (201, "found"));
    assert!(logs.all().iter().any(|line| line.text.contains("the lease was lost")));
}

#[tokio::test]
async fn clause_33_a_hook_that_panics_or_a_store_that_fails_costs_one_try() {
    let bank = Bank::default();
    let logs = Logs::collect();
    let shop = bank.shop().await;
    bank.says(Says::Panics);
    failed(&shop, "/charge", "k").await;
    shop.pass(A_WHILE).await;
    bank.is_asked(1).await;
    eventually(async || logs.all().iter().any(|line| line.text.contains("a recovery hook panicked"))).await;
    bank.says(Says::Yes);
    shop.store.tell(Verb::Resolve, Fault::Fails(1));
    shop.pass(A_WHILE).await;
    bank.is_asked(2).await;
    eventually(async || logs.all().iter().any(|line| line.text.contains("could not be stored; asking"))).await;
    assert_eq!(stands(&shop, "k").await, State::InDoubt);
    shop.store.tell(Verb::Recover, Fault::Fails(1));
    shop.pass(Duration::from_secs(60)).await; // its try is over
    eventually(async || stands(&shop, "k").await == State::Done).await;
    assert_eq!(bank.asked().last().unwrap().tries(), 3);
}

#[tokio::test]
async fn clause_33_shutdown_drops_a_hook_and_another_process_tries_later() {
    let bank = Bank::default();
    let place = Arc::new(Place::new());
    let shop = Shop::open_on(Arc::clone(&place), router(), |builder| bank.hooks(builder)).await;
    bank.says(Says::Hangs);
    failed(&shop, "/charge", "k").await;
    shop.pass(A_WHILE).await;
    bank.is_asked(1).await;
    assert!(shop.runtime.shutdown(Duration::from_secs(1)).await.completed);
    assert_eq!(stands(&shop, "k").await, State::InDoubt);

    bank.says(Says::Yes);
    let other = Shop::open_on(place, router(), |builder| bank.hooks(builder)).await;
    let looks = other.store.calls(Verb::Survey);
    eventually(async || other.store.calls(Verb::Survey) > looks + 3).await;
    assert_eq!(bank.asked().len(), 1, "the try of the first process is not over");
    other.pass(Duration::from_secs(60)).await;
    eventually(async || stands(&other, "k").await == State::Done).await;
}

#[tokio::test]
async fn clause_33_a_doubt_without_a_hook_waits_for_an_operator() {
    let bank = Bank::default();
    let shop = bank.shop().await;
    failed(&shop, "/alone", "k").await;
    shop.pass(A_WHILE).await;
    let looks = shop.store.calls(Verb::Survey);
    eventually(async || shop.store.calls(Verb::Survey) > looks + 3).await;
    assert_eq!((bank.asked().len(), shop.store.calls(Verb::Recover)), (0, 0));
    let told = problem(shop.post("/alone", "k").json(&json!({"status": 500})).send().await.unwrap()).await;
    assert_eq!((told.body["retry"].as_str(), told.retry_after), (Some("operator"), None));
}

#[tokio::test]
async fn clause_33_a_doubt_whose_hook_is_asked_no_more_waits_for_an_operator() {
    let (bank, place) = (Bank::default(), Arc::new(Place::new()));
    let quiet = Shop::open_on(Arc::clone(&place), router(), |builder| builder.sweep_every(Duration::ZERO)).await;
    failed(&quiet, "/charge", "k").await;
    quiet.sql("update idem_key set tries = 299").await;
    let shop = Shop::open_on(place, router(), |builder| bank.hooks(builder)).await;
    shop.pass(A_WHILE).await;
    bank.is_asked(1).await;
    assert_eq!(bank.asked()[0].tries(), 300);
    let told = problem(retry(&shop, "k").await).await;
    assert_eq!((told.status, told.slug.as_str()), (409, "idempotency-outcome-unknown"));
    assert_eq!((told.body["retry"].as_str(), told.retry_after), (Some("operator"), None));
    assert_eq!(shop.record("recovering.charge", "k").await.tries, 300);
    shop.pass(LONG).await;
    let looks = shop.store.calls(Verb::Survey);
    eventually(async || shop.store.calls(Verb::Survey) > looks + 3).await;
    assert_eq!(bank.asked().len(), 1);
}

#[tokio::test]
async fn clause_33_a_hook_for_nothing_is_a_fault() {
    let hook = |_: InDoubt| async { Recovery::NotApplied };
    let builder = idem_runtime::Runtime::builder(idem_runtime::MemoryStore::volatile()).namespace("shop");
    let faults = builder
        .sweep_every(Duration::ZERO)
        .serve_only(|op| op == "recovering.charge")
        .recover("recovering.chrage", hook)
        .recover("recovering.alone", hook)
        .recover("recovering.charge", hook)
        .recover("recovering.charge", hook)
        .build()
        .await
        .unwrap_err()
        .to_string();
    for fault in
        ["`recover(\"recovering.chrage\", ..)` names no operation", "leaves out", "stands twice", "`sweep_every`"]
    {
        assert_eq!(faults.matches(fault).count(), 1, "{faults}");
    }
}
