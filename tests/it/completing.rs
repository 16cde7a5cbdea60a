//! Scenario 84, clause 25: what was interrupted goes on, though nobody calls again.

mod killed;
mod killed_steps;
mod refused;

use std::{sync::Arc, time::Duration};

use axum::Router;
use idem_runtime::{Builder, Error, ErrorKind, Execution, Interrupted, Record, Runtime, idempotent, state::State};
use serde::{Deserialize, Serialize};

use crate::support::{Logs, Place, Probe, Shop, Verb, eventually};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Signup {
    id: String,
    tenant: String,
    /// So many runs fail, after their effect.
    fails: u32,
}

fn signup(id: &str, fails: u32) -> Signup {
    Signup { id: id.to_owned(), tenant: "acme".to_owned(), fails }
}

#[idempotent(
    function,
    runtime = idem,
    scope = signup.tenant,
    op = "completing.provision",
    key = signup.id,
    in_doubt = rerun_deduped,
    input = "signup"
)]
async fn provision(idem: &Runtime, probe: &Probe, signup: Signup, #[idem] exec: Execution) -> Result<String, Error> {
    let _ = idem;
    probe.pass().await;
    if !probe.log().iter().any(|key| key == exec.provider_key()) {
        probe.effect(exec.provider_key());
    }
    if exec.attempts() <= signup.fails {
        exec.link("", "").await?;
    }
    Ok(format!("{} by run {}", signup.id, exec.attempts()))
}

/// What calls it again; `probe` is what the first call had.
fn again(probe: &Probe) -> impl Fn(Builder) -> Builder + use<> {
    let probe = probe.clone();
    move |builder| {
        let probe = probe.clone();
        builder.sweep_every(Duration::from_millis(20)).resume(
            "completing.provision",
            move |interrupted: Interrupted| {
                let probe = probe.clone();
                async move { provision(interrupted.runtime(), &probe, interrupted.input()?).await.map(drop) }
            },
        )
    }
}

async fn open(probe: &Probe) -> Shop {
    Shop::open_with(Router::new(), again(probe)).await
}

async fn record(shop: &Shop, id: &str) -> Record {
    shop.runtime.find("completing.provision", "acme", id).await.unwrap().unwrap()
}

async fn is_done(shop: &Shop, id: &str) {
    eventually(async || record(shop, id).await.state == State::Done).await;
}

const A_WHILE: Duration = Duration::from_secs(3);

#[tokio::test]
async fn scenario_84_a_failed_run_is_completed_without_its_caller() {
    let probe = Probe::default();
    let shop = open(&probe).await;
    let failed = provision(&shop.runtime, &probe, signup("s1", 1)).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::InvalidLink);
    shop.pass(A_WHILE).await;
    is_done(&shop, "s1").await;
    let late = provision(&shop.runtime, &probe, signup("s1", 1)).await.unwrap();
    assert_eq!((late.as_str(), probe.started(), probe.effects()), ("s1 by run 2", 2, 1));
}

/// A run that fails again is tried again, later and later.
#[tokio::test]
async fn clause_25_it_is_tried_until_it_is_done() {
    let probe = Probe::default();
    let shop = open(&probe).await;
    provision(&shop.runtime, &probe, signup("s1", 3)).await.unwrap_err();
    for runs in 2..=4 {
        assert_eq!(record(&shop, "s1").await.attempts, runs - 1);
        shop.pass(Duration::from_secs(10)).await;
        eventually(async || record(&shop, "s1").await.attempts == runs).await;
        eventually(async || record(&shop, "s1").await.state != State::InFlight).await;
    }
    is_done(&shop, "s1").await;
    assert_eq!(probe.effects(), 1);
}

/// Two processes look, one goes on.
#[tokio::test]
async fn scenario_84_of_two_processes_one_goes_on() {
    let (place, probe) = (Arc::new(Place::new()), Probe::default());
    let first = Shop::open_on(Arc::clone(&place), Router::new(), again(&probe)).await;
    let second = Shop::open_on(place, Router::new(), again(&probe)).await;
    let ids: Vec<String> = (0..20).map(|n| format!("s{n}")).collect();
    for id in &ids {
        provision(&first.runtime, &probe, signup(id, 1)).await.unwrap_err();
    }
    first.pass(A_WHILE).await;
    for id in &ids {
        is_done(&second, id).await;
        assert_eq!(record(&second, id).await.attempts, 2);
    }
    assert_eq!((probe.started(), probe.effects()), (40, 20));
}

/// Whoever comes while it is gone on with is told so, and the completer takes nothing that a retry has.
#[tokio::test]
async fn clause_25_a_retry_and_the_completer_share_one_run() {
    let probe = Probe::default();
    let shop = open(&probe).await;
    provision(&shop.runtime, &probe, signup("s1", 1)).await.unwrap_err();
    let held = probe.hold().await;
    shop.pass(A_WHILE).await;
    eventually(async || probe.started() == 2).await;
    let told = provision(&shop.runtime, &probe, signup("s1", 1)).await.unwrap_err();
    assert!(matches!(told.kind(), ErrorKind::InProgress { .. }), "{told}");
    drop(held);
    is_done(&shop, "s1").await;
    assert_eq!((probe.started(), record(&shop, "s1").await.attempts), (2, 2));
}

/// Clause 23: what is under way ends, and nothing new is begun.
#[tokio::test]
async fn clause_25_a_drain_lets_it_end() {
    let probe = Probe::default();
    let shop = open(&probe).await;
    provision(&shop.runtime, &probe, signup("s1", 1)).await.unwrap_err();
    let held = probe.hold().await;
    shop.pass(A_WHILE).await;
    eventually(async || probe.started() == 2).await;
    shop.runtime.start_draining();
    drop(held);
    is_done(&shop, "s1").await;
    let (asked, looked) = (shop.store.calls(Verb::Interrupted), shop.store.calls(Verb::Survey));
    eventually(async || shop.store.calls(Verb::Survey) > looked + 3).await;
    assert!(shop.store.calls(Verb::Interrupted) <= asked + 1, "one may have been under way");
}

/// What the runtime is dropped with goes on elsewhere.
#[tokio::test]
async fn clause_25_a_shutdown_gives_it_to_the_next_process() {
    let (place, probe) = (Arc::new(Place::new()), Probe::default());
    let stopping = Shop::open_on(Arc::clone(&place), Router::new(), again(&probe)).await;
    provision(&stopping.runtime, &probe, signup("s1", 1)).await.unwrap_err();
    let held = probe.hold().await;
    stopping.pass(A_WHILE).await;
    eventually(async || probe.started() == 2).await;
    let drained = stopping.runtime.shutdown(Duration::from_millis(50)).await;
    assert_eq!((drained.completed, drained.in_doubt), (false, 1));
    drop(held);
    let next = Shop::open_on(place, Router::new(), again(&probe)).await;
    eventually(async || record(&next, "s1").await.state != State::InFlight).await;
    next.pass(Duration::from_secs(60)).await;
    is_done(&next, "s1").await;
    assert_eq!((record(&next, "s1").await.attempts, probe.effects()), (3, 1));
}

/// The store is asked by those who have something to call only.
#[tokio::test]
async fn clause_25_where_nothing_is_called_again_the_store_is_not_asked() {
    let shop = Shop::open_with(Router::new(), |builder| builder.sweep_every(Duration::from_millis(20))).await;
    eventually(async || shop.store.calls(Verb::Survey) > 3).await;
    assert_eq!(shop.store.calls(Verb::Interrupted), 0);
}

/// Neither the argument nor the scope is in a log line.
#[tokio::test]
async fn clause_25_a_closure_that_panics_or_fails_is_called_again() {
    let (logs, probe) = (Logs::collect(), Probe::default());
    let (called, call) = (Probe::default(), probe.clone());
    let counts = called.clone();
    let shop = Shop::open_with(Router::new(), move |builder| {
        builder.sweep_every(Duration::from_millis(20)).resume(
            "completing.provision",
            move |interrupted: Interrupted| {
                let (probe, counts) = (call.clone(), counts.clone());
                async move {
                    counts.effect("called");
                    match counts.effects() {
                        1 => panic!("the test says so"),
                        2 => interrupted.input::<u32>().map(drop), // it is none
                        3 => {
                            let other = Signup { id: "other".into(), fails: 0, ..interrupted.input()? };
                            provision(interrupted.runtime(), &probe, other).await.map(drop)
                        }
                        _ => provision(interrupted.runtime(), &probe, interrupted.input()?).await.map(drop),
                    }
                }
            },
        )
    })
    .await;
    provision(&shop.runtime, &probe, Signup { tenant: "t0p-acme".into(), ..signup("s3cret", 1) }).await.unwrap_err();
    let said = || format!("{:?}", logs.all());
    // Each is judged before the next is due: by what the record says then.
    for (event, times) in
        ["panicked; trying again", "not readable as this type", "the same key and scope"].iter().zip(1..)
    {
        shop.pass(Duration::from_secs(100)).await;
        eventually(async || called.effects() == times).await;
        eventually(async || said().contains(event)).await;
    }
    shop.pass(Duration::from_secs(100)).await;
    let found = async || shop.runtime.find("completing.provision", "t0p-acme", "s3cret").await.unwrap().unwrap();
    eventually(async || found().await.state == State::Done).await;
    assert_eq!(called.effects(), 4);
    assert_eq!(found().await.attempts, 2, "what did not claim it has cost it nothing");
    eventually(async || said().contains("was completed")).await; // said after it is written
    let said = said();
    assert!(!said.contains("s3cret") && !said.contains("t0p"), "{said}");
}
