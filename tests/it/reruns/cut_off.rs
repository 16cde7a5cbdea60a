//! Runs that do not come to their end: too long, given up by a shutdown, dropped.

use idem_runtime::{Error, ErrorKind, Runtime};

use super::*;

#[tokio::test]
async fn clause_20_a_run_that_takes_too_long_is_run_again() {
    let shop = Shop::open(router()).await;
    let held = shop.probe.hold().await;
    let told = told(&shop, "/limited", "k1", &[]).await;
    assert_eq!((told.status, told.slug.as_str()), (504, "idempotency-body-timeout"));
    assert_eq!((&told.body["retry"], &told.body["state"]), (&json!("same-key"), &json!("resumable")));
    drop(held);
    assert_eq!(send(&shop, "/limited", "k1", &[]).await, ran("charge 0"));
}

/// Clause 23: a body that outlives its process's patience is run again by the next one.
#[tokio::test]
async fn scenario_56_a_run_that_a_shutdown_gives_up_is_run_again_elsewhere() {
    let place = Arc::new(Place::new());
    let stopping = Shop::open_on(Arc::clone(&place), router(), |builder| builder).await;
    let held = stopping.probe.hold().await;
    let first = on_a_task(&stopping, "/charge", "k1");
    eventually(async || stopping.probe.started() == 1).await;
    let drained = stopping.runtime.shutdown(Duration::from_millis(50)).await;
    assert_eq!((drained.completed, drained.in_doubt), (false, 1));
    let next = Shop::open_on(place, router(), |builder| builder).await;
    let shown = next.record("reruns.charge", "k1").await;
    assert_eq!((shown.state, shown.reason), (Stands::Resumable, Some(Reason::Shutdown)));
    assert_eq!(send(&next, "/charge", "k1", &[]).await, ran("charge 0"));
    drop((held, first));
}

/// Clause 16a: an error of a plain function, and a future that is dropped.
#[tokio::test]
async fn clause_26_a_function_that_failed_or_was_dropped_is_run_again() {
    #[idempotent(function, runtime = idem, scope = global, key = id.to_string(), op = "reruns.job", in_doubt = rerun_deduped)]
    async fn job(idem: &Runtime, probe: &Probe, id: u32, #[idem] exec: Execution) -> Result<u32, Error> {
        probe.pass().await;
        if !probe.log().iter().any(|key| key == exec.provider_key()) {
            probe.effect(exec.provider_key());
        }
        match (id, exec.attempts()) {
            (1, 1) => exec.link("", "").await.map(|()| 0), // fails
            (_, attempts) => Ok(attempts),
        }
    }
    let shop = Shop::open(router()).await;
    let (idem, probe) = (&shop.runtime, &shop.probe);
    assert_eq!(job(idem, probe, 1).await.unwrap_err().kind(), ErrorKind::InvalidLink);
    assert_eq!((job(idem, probe, 1).await.unwrap(), job(idem, probe, 1).await.unwrap()), (2, 2));
    let held = shop.probe.hold().await;
    let started = probe.started();
    tokio::select! {
        _ = job(idem, probe, 2) => unreachable!("it is held"),
        () = eventually(async || probe.started() > started) => {}
    }
    drop(held);
    let resumable = async || {
        let found = idem.find("reruns.job", idem_runtime::Global, "2").await.unwrap();
        found.is_some_and(|record: idem_runtime::Record| record.reason == Some(Reason::Cancelled))
    };
    eventually(resumable).await;
    assert_eq!(job(idem, probe, 2).await.unwrap(), 2);
    assert_eq!(probe.effects(), 2, "one of each job");
}
