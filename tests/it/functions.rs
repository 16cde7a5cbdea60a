//! Plain functions and methods, clause 16a: calls whose key comes with the job, and whose answer is a value.

use std::time::Duration;

use axum::Router;
use idem_runtime::{Error, ErrorKind, Execution, Runtime, idempotent, state::Reason, state::State as Stands};
use serde::{Deserialize, Serialize};

use crate::support::{Fault, Probe, Shop, Verb, eventually};

/// What a worker has at hand.
#[derive(Clone)]
struct Desk {
    idem: Runtime,
    probe: Probe,
}

/// A job as the queue delivers it, again and again.
#[derive(Clone, Default)]
struct Job {
    tenant: String,
    id: String,
    plan: Plan,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Plan {
    #[default]
    Succeed,
    Fail,
    FailNotApplied,
    FailFinal,
    SucceedNotApplied,
    Panic,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Receipt {
    id: String,
}

#[derive(Debug)]
enum JobError {
    Provider,
    Idempotency(Error),
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        Self::Idempotency(error)
    }
}

impl JobError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Provider => None,
            Self::Idempotency(error) => Some(error.kind()),
        }
    }
}

/// The body of all of them: pass the gate, have the effect, end as planned.
async fn perform(probe: &Probe, plan: Plan, exec: &Execution) -> Result<Receipt, JobError> {
    let response = probe.perform(&crate::support::Plan { status: None, panic: plan == Plan::Panic }).await;
    let id = response.headers()["location"].to_str().unwrap().to_owned();
    match plan {
        Plan::FailNotApplied | Plan::SucceedNotApplied => exec.not_applied(),
        Plan::FailFinal => exec.is_final(),
        Plan::Succeed | Plan::Fail | Plan::Panic => {}
    }
    match plan {
        Plan::Succeed | Plan::SucceedNotApplied | Plan::Panic => Ok(Receipt { id }),
        Plan::Fail | Plan::FailNotApplied | Plan::FailFinal => Err(JobError::Provider),
    }
}

#[idempotent(function, runtime = desk.idem, scope = job.tenant, op = "functions.capture", key = job.id, ttl = "7d")]
async fn capture(desk: &Desk, job: &Job, #[idem] exec: Execution) -> Result<Receipt, JobError> {
    perform(&desk.probe, job.plan, &exec).await
}

#[idempotent(function, runtime = desk.idem, scope = job.tenant, op = "functions.limited", key = job.id, timeout = "1s")]
async fn limited(desk: &Desk, job: &Job, #[idem] exec: Execution) -> Result<Receipt, JobError> {
    perform(&desk.probe, job.plan, &exec).await
}

impl Desk {
    #[idempotent(function, runtime = self.idem, scope = tenant, op = "functions.method", key = id)]
    async fn settle(&self, tenant: &str, id: u64, #[idem] exec: Execution) -> Result<Receipt, JobError> {
        perform(&self.probe, Plan::Succeed, &exec).await
    }
}

fn job(id: &str, plan: Plan) -> Job {
    Job { tenant: "acme".to_owned(), id: id.to_owned(), plan }
}

/// The store and the clock of a shop without a counter.
async fn open() -> (Shop, Desk) {
    let shop = Shop::open(Router::new()).await;
    let desk = Desk { idem: shop.runtime.clone(), probe: shop.probe.clone() };
    (shop, desk)
}

/// A worker of its own: a panic, or its end, is its own affair.
fn work(desk: &Desk, job: Job) -> tokio::task::JoinHandle<Result<Receipt, JobError>> {
    let desk = desk.clone();
    tokio::spawn(async move { capture(&desk, &job).await })
}

async fn kind(desk: &Desk, job: Job) -> Option<ErrorKind> {
    capture(desk, &job).await.unwrap_err().kind()
}

#[tokio::test]
async fn clause_16a_a_value_is_stored_and_given_back_typed() {
    let (shop, desk) = open().await;
    let first = capture(&desk, &job("j1", Plan::Succeed)).await.unwrap();
    assert_eq!(first, Receipt { id: "/things/1".to_owned() });
    assert_eq!(capture(&desk, &job("j1", Plan::Fail)).await.unwrap(), first, "the key alone decides");
    assert_eq!(shop.record("functions.capture", "j1").await.state, Stands::Done);
    let other = Job { tenant: "globex".to_owned(), ..job("j1", Plan::Succeed) };
    assert_ne!(capture(&desk, &other).await.unwrap(), first, "another tenant's job");
    assert_eq!(shop.probe.effects(), 2);
}

#[tokio::test]
async fn clause_16a_a_method_works_as_a_function_does() {
    let (shop, desk) = open().await;
    let first = desk.settle("acme", 7).await.unwrap();
    assert_eq!(desk.settle("acme", 7).await.unwrap(), first);
    assert_eq!((shop.probe.effects(), shop.record("functions.method", "7").await.state), (1, Stands::Done));
}

/// Case 61, as far as held operations go: another attempt of the same job may not act either, until somebody settles
/// the first.
#[tokio::test]
async fn clause_16a_an_error_holds_the_key() {
    let (shop, desk) = open().await;
    assert_eq!(kind(&desk, job("j1", Plan::Fail)).await, None, "the caller's own error");
    let record = shop.record("functions.capture", "j1").await;
    assert_eq!((record.state, record.reason), (Stands::InDoubt, Some(Reason::Status)));
    assert_eq!(kind(&desk, job("j1", Plan::Succeed)).await, Some(ErrorKind::InDoubt));
    assert_eq!(shop.probe.effects(), 1);
}

/// Cases 61 and 62 as well: what says that it rolled back runs again at once, round after round.
#[tokio::test]
async fn clause_16a_a_body_may_say_that_nothing_happened() {
    let (shop, desk) = open().await;
    for round in 0..50 {
        assert_eq!(kind(&desk, job("j1", Plan::FailNotApplied)).await, None, "round {round}");
    }
    assert!(capture(&desk, &job("j1", Plan::SucceedNotApplied)).await.is_ok());
    assert!(capture(&desk, &job("j1", Plan::Succeed)).await.is_ok());
    assert_eq!((shop.probe.effects(), shop.record("functions.capture", "j1").await.attempts), (52, 52));
}

#[tokio::test]
async fn clause_16a_a_final_error_closes_the_key() {
    let (shop, desk) = open().await;
    assert_eq!(kind(&desk, job("j1", Plan::FailFinal)).await, None);
    assert_eq!(kind(&desk, job("j1", Plan::Succeed)).await, Some(ErrorKind::ResultUnavailable));
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn clause_17_a_function_that_is_dropped_is_in_doubt_at_once() {
    let shop = Shop::open_with(Router::new(), |builder| builder.lease(Duration::from_secs(3600))).await;
    let desk = Desk { idem: shop.runtime.clone(), probe: shop.probe.clone() };
    let _held = shop.probe.hold().await;
    let worker = work(&desk, job("j1", Plan::Succeed));
    eventually(async || shop.probe.started() == 1).await;
    worker.abort();
    eventually(async || shop.state().await == 5).await; // and not only when its lease has ended
    assert_eq!(shop.record("functions.capture", "j1").await.reason, Some(Reason::Cancelled));
    assert_eq!(kind(&desk, job("j1", Plan::Succeed)).await, Some(ErrorKind::InDoubt));
}

#[tokio::test]
async fn clause_17_a_function_that_is_dropped_before_its_body_starts_gives_its_key_back() {
    let (shop, desk) = open().await;
    shop.store.tell(Verb::Claim, Fault::Slow(Duration::from_millis(100)));
    let worker = work(&desk, job("j1", Plan::Succeed));
    eventually(async || shop.store.calls(Verb::Claim) == 1).await;
    worker.abort();
    eventually(async || shop.records().await == 1 && shop.state().await == 4).await;
    assert_eq!(shop.record("functions.capture", "j1").await.reason, Some(Reason::Cancelled));
    assert_eq!(shop.probe.started(), 0);
    assert!(capture(&desk, &job("j1", Plan::Succeed)).await.is_ok());
}

#[tokio::test]
async fn clause_15_a_panic_goes_on_to_the_caller_and_holds_the_key() {
    let (shop, desk) = open().await;
    assert!(work(&desk, job("j1", Plan::Panic)).await.unwrap_err().is_panic());
    eventually(async || shop.state().await == 5).await;
    assert_eq!(shop.record("functions.capture", "j1").await.reason, Some(Reason::Panic));
    assert_eq!(kind(&desk, job("j1", Plan::Succeed)).await, Some(ErrorKind::InDoubt));
}

#[tokio::test]
async fn case_57_a_function_that_hangs_is_ended_by_its_time_limit() {
    let (shop, desk) = open().await;
    let _held = shop.probe.hold().await;
    let error = limited(&desk, &job("j1", Plan::Succeed)).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::TimedOut));
    let record = shop.record("functions.limited", "j1").await;
    assert_eq!((record.state, record.reason, shop.probe.effects()), (Stands::InDoubt, Some(Reason::Timeout), 0));
}

/// Clause 44: not acknowledged, come back later.
#[tokio::test]
async fn scenario_92_a_job_that_is_redelivered_while_it_runs_is_in_progress() {
    let (shop, desk) = open().await;
    let held = shop.probe.hold().await;
    let first = work(&desk, job("j1", Plan::Succeed));
    eventually(async || shop.probe.started() == 1).await;
    match kind(&desk, job("j1", Plan::Succeed)).await {
        Some(ErrorKind::InProgress { retry_after }) => assert!(retry_after >= Duration::from_secs(1)),
        other => panic!("{other:?}"),
    }
    drop(held);
    let first = first.await.unwrap().unwrap();
    assert_eq!(capture(&desk, &job("j1", Plan::Succeed)).await.unwrap(), first);
    assert_eq!(shop.probe.effects(), 1);
}

/// Nobody is told "duplicate" on the word of a run that then rolls back.
#[tokio::test]
async fn case_23_a_duplicate_is_not_dropped_for_a_run_that_comes_to_nothing() {
    let (shop, desk) = open().await;
    let held = shop.probe.hold().await;
    let first = work(&desk, job("j1", Plan::FailNotApplied));
    eventually(async || shop.probe.started() == 1).await;
    assert!(matches!(kind(&desk, job("j1", Plan::Succeed)).await, Some(ErrorKind::InProgress { .. })));
    drop(held);
    assert!(first.await.unwrap().is_err());
    assert!(capture(&desk, &job("j1", Plan::Succeed)).await.is_ok(), "it runs");
    assert_eq!(shop.probe.effects(), 2);
}

#[tokio::test]
async fn clause_11_a_key_that_is_empty_or_too_long_is_invalid() {
    let (shop, desk) = open().await;
    for id in [String::new(), "x".repeat(1025)] {
        assert_eq!(kind(&desk, job(&id, Plan::Succeed)).await, Some(ErrorKind::InvalidKey));
    }
    assert!(capture(&desk, &job(&"x".repeat(1024), Plan::Succeed)).await.is_ok());
    assert_eq!(shop.probe.effects(), 1);
}

#[tokio::test]
async fn clause_21_a_function_meets_the_store_and_the_shutdown_as_a_handler_does() {
    let (shop, desk) = open().await;
    shop.store.down();
    assert!(matches!(kind(&desk, job("j1", Plan::Succeed)).await, Some(ErrorKind::Unavailable { .. })));
    shop.store.heal();
    let first = capture(&desk, &job("j2", Plan::Succeed)).await.unwrap();
    shop.runtime.start_draining();
    assert_eq!(kind(&desk, job("j3", Plan::Succeed)).await, Some(ErrorKind::Draining));
    assert_eq!(capture(&desk, &job("j2", Plan::Succeed)).await.unwrap(), first, "replays are still served");
    assert_eq!(shop.probe.effects(), 1);
}
