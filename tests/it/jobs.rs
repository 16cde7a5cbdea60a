//! Clauses 44 and 45: what a queue delivers again is done once, and the queue is told what to do with it.

use std::time::Duration;

use axum::Router;
use idem_runtime::{
    Builder, Error, Execution, InDoubt, Recovery, Runtime, idempotent, jobs::Redelivery, state::State as Stands,
};

use crate::support::{Probe, Shop, Verb, eventually};

/// A worker of a queue, and the provider that it charges, which dedupes.
#[derive(Clone)]
struct Worker {
    idem: Runtime,
    probe: Probe,
    /// After the charge, before the job's end.
    last: Probe,
    queue: &'static str,
}

#[derive(Debug)]
enum JobError {
    Gateway,
    Idempotency(Error),
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        Self::Idempotency(error)
    }
}

impl JobError {
    fn redelivery(&self) -> Redelivery {
        match self {
            Self::Gateway => panic!("the job's own error"),
            Self::Idempotency(error) => error.redelivery(),
        }
    }
}

impl Worker {
    /// The same key charges once, and gets the same id.
    async fn charge(&self, key: &str) -> String {
        self.probe.pass().await;
        if !self.probe.log().iter().any(|charged| charged == key) {
            self.probe.effect(key);
        }
        self.last.pass().await;
        format!("ch_{}", &key[..8])
    }
}

#[idempotent(function, runtime = worker.idem, scope = worker.queue, op = "jobs.capture", key = id, in_doubt = rerun_deduped)]
async fn capture(worker: &Worker, id: u32, fails: bool, #[idem] exec: Execution) -> Result<String, JobError> {
    let charge = worker.charge(exec.provider_key()).await;
    exec.link("gateway", &charge).await?;
    if fails { Err(JobError::Gateway) } else { Ok(charge) }
}

/// Nobody can be asked, and nothing dedupes.
#[idempotent(function, runtime = worker.idem, scope = worker.queue, op = "jobs.held", key = id)]
async fn held(worker: &Worker, id: u32, #[idem] exec: Execution) -> Result<String, JobError> {
    worker.charge(exec.provider_key()).await;
    Err(JobError::Gateway)
}

#[idempotent(function, runtime = worker.idem, scope = worker.queue, op = "jobs.asked", key = id, timeout = "1s")]
async fn asked(worker: &Worker, id: u32, #[idem] exec: Execution) -> Result<String, JobError> {
    Ok(worker.charge(exec.provider_key()).await)
}

async fn open_with(configure: impl FnOnce(Builder) -> Builder) -> (Shop, Worker) {
    let shop = Shop::open_with(Router::new(), configure).await;
    let worker = worker(&shop, &shop);
    (shop, worker)
}

/// One over `shop`, with the provider of the other.
fn worker(shop: &Shop, provider: &Shop) -> Worker {
    Worker { idem: shop.runtime.clone(), probe: provider.probe.clone(), last: Probe::default(), queue: "acme" }
}

fn deliver(worker: &Worker, id: u32) -> tokio::task::JoinHandle<Result<String, JobError>> {
    let worker = worker.clone();
    tokio::spawn(async move { capture(&worker, id, false).await })
}

#[tokio::test]
async fn scenario_92_a_job_that_is_delivered_while_it_runs_is_given_back_for_later() {
    let (shop, worker) = open_with(|builder| builder).await;
    let held = shop.probe.hold().await;
    let first = deliver(&worker, 1);
    eventually(async || shop.probe.started() == 1).await;
    match capture(&worker, 1, false).await.unwrap_err().redelivery() {
        Redelivery::Retry { after } => assert!(after >= Duration::from_secs(1), "{after:?}"),
        other => panic!("{other:?}"),
    }
    drop(held);
    let first = first.await.unwrap().unwrap();
    assert_eq!(capture(&worker, 1, false).await.unwrap(), first, "and then it can be acknowledged");
    assert_eq!(shop.probe.effects(), 1);
}

/// And case 98: the duplicate gets the first one's id.
#[tokio::test]
async fn scenario_93_a_job_that_died_after_the_charge_does_not_charge_again() {
    let (shop, worker) = open_with(|builder| builder.lease(Duration::from_secs(3600))).await;
    let held = worker.last.hold().await;
    let first = deliver(&worker, 1);
    eventually(async || worker.last.started() == 1).await;
    first.abort();
    drop(held);
    eventually(async || shop.record("jobs.capture", "1").await.state == Stands::Resumable).await;
    let charge = capture(&worker, 1, false).await.unwrap();
    assert_eq!(capture(&worker, 1, false).await.unwrap(), charge, "a delivery after that: the same id");
    assert_eq!((shop.probe.effects(), shop.probe.started()), (1, 2));
    let linked = shop.runtime.find_by_link("gateway", &charge).await.unwrap();
    let job = shop.record("jobs.capture", "1").await;
    assert_eq!((linked.len(), linked[0].id, linked[0].attempts), (1, job.id, 2), "the charge knows its job");
    assert_eq!(job.links, [("gateway".to_owned(), charge)], "and the job its charge");
}

/// Real seconds pass, since it is renewals that keep the claim.
#[tokio::test]
async fn case_14_a_job_that_outlasts_its_lease_is_not_handed_to_a_second_worker() {
    let (shop, one) = open_with(|builder| builder.lease(Duration::from_secs(1))).await;
    let second =
        Shop::open_on(shop.place.clone(), Router::new(), |builder| builder.lease(Duration::from_secs(1))).await;
    let other = worker(&second, &shop);
    let held = shop.probe.hold().await;
    let first = deliver(&one, 1);
    eventually(async || shop.probe.started() == 1).await;
    eventually(async || {
        let told = capture(&other, 1, false).await.unwrap_err().redelivery();
        assert!(matches!(told, Redelivery::Retry { .. }), "{told:?}");
        shop.store.calls(Verb::Renew) >= 6
    })
    .await;
    drop(held);
    let first = first.await.unwrap().unwrap();
    assert_eq!(capture(&other, 1, false).await.unwrap(), first);
    assert_eq!((shop.probe.effects(), shop.probe.started()), (1, 1));
}

#[tokio::test]
async fn case_34_what_a_dead_worker_held_is_free_when_its_lease_is_over() {
    let (shop, dead) = open_with(|builder| builder).await;
    let second = Shop::open_on(shop.place.clone(), Router::new(), |builder| builder).await;
    let other = worker(&second, &shop);
    let held = dead.last.hold().await;
    let frozen = deliver(&dead, 1);
    eventually(async || dead.last.started() == 1).await;
    let owner = shop.record("jobs.capture", "1").await;
    assert!(owner.state == Stands::InFlight && owner.age < Duration::from_secs(60), "a listing says since when");
    shop.freeze().await;
    let charge = capture(&other, 1, false).await.unwrap();
    drop(held);
    assert_eq!(frozen.await.unwrap().unwrap(), charge, "should it live after all, it is told the same");
    assert_eq!((shop.probe.effects(), shop.probe.started()), (1, 2));
}

/// The other half: a worker that is told to stop in the middle of a job, as by a deploy.
#[tokio::test]
async fn case_34_a_job_that_a_shutdown_cut_off_need_not_wait_for_its_lease() {
    let (shop, stopped) = open_with(|builder| builder.lease(Duration::from_secs(3600))).await;
    let second = Shop::open_on(shop.place.clone(), Router::new(), |builder| builder).await;
    let other = worker(&second, &shop);
    let _held = stopped.last.hold().await;
    let _job = deliver(&stopped, 1);
    eventually(async || stopped.last.started() == 1).await;
    let drained = shop.runtime.shutdown(Duration::from_millis(50)).await;
    assert!(!drained.completed);
    assert!(capture(&other, 1, false).await.is_ok());
    assert_eq!(shop.probe.effects(), 1);
}

/// Where the provider dedupes; of what is held, `functions` tells.
#[tokio::test]
async fn case_61_a_job_that_failed_is_not_its_own_duplicate() {
    let (shop, worker) = open_with(|builder| builder).await;
    for round in 1..=5 {
        let failed = capture(&worker, 1, true).await;
        assert!(matches!(failed, Err(JobError::Gateway)), "round {round}: {failed:?}");
    }
    let charge = capture(&worker, 1, false).await.unwrap();
    assert_eq!(capture(&worker, 1, true).await.unwrap(), charge);
    assert_eq!((shop.probe.effects(), shop.probe.started()), (1, 6));
}

#[tokio::test]
async fn clause_44_a_doubt_is_parked_and_never_acknowledged() {
    let (shop, worker) = open_with(|builder| builder).await;
    assert!(matches!(held(&worker, 1).await, Err(JobError::Gateway)));
    for _ in 0..3 {
        assert_eq!(held(&worker, 1).await.unwrap_err().redelivery(), Redelivery::Park);
    }
    assert_eq!(shop.probe.effects(), 1);
}

/// The delivery that ran into its limit, and the one that met the doubt.
#[tokio::test]
async fn clause_44_a_doubt_that_a_hook_is_asked_about_is_delivered_again() {
    let hook = async |_: InDoubt| Recovery::StillUnknown { retry_in: None };
    let (shop, worker) = open_with(|builder| builder.recover("jobs.asked", hook)).await;
    let _held = shop.probe.hold().await;
    for told in ["timed out", "in doubt"] {
        let redelivery = asked(&worker, 1).await.unwrap_err().redelivery();
        assert_eq!(redelivery, Redelivery::Retry { after: Duration::from_secs(5) }, "{told}");
    }
    assert_eq!(shop.probe.effects(), 0);
}
