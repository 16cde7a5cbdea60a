//! Clause 33: an operator, or a hook, lets it be run again.

use idem_runtime::{ErrorKind, Record};

use super::*;
use crate::support::handler;

handler!(held, op = "reruns.held");

async fn resume(shop: &Shop, seen: &Record) -> Result<Record, ErrorKind> {
    let by = Audit { who: "ops".into(), why: "the provider still knows the key".into() };
    shop.runtime.resolve(seen.id, seen.fence, Resolution::Resume, by).await.map_err(|error| error.kind())
}

#[tokio::test]
async fn clause_33_an_operator_lets_it_be_run_again() {
    let shop = Shop::open_with(router(), |builder| builder.provider_window(HOUR)).await;
    let script = ["500", "500", "ok"];
    assert_eq!(send(&shop, "/charge", "k1", &script).await.0, 500);
    shop.pass(HOUR + Duration::from_secs(5)).await;
    let refused = told(&shop, "/charge", "k1", &script).await;
    assert_eq!(refused.slug, "idempotency-outcome-unknown");
    let seen = shop.record("reruns.charge", "k1").await;
    let resumed = resume(&shop, &seen).await.unwrap();
    assert_eq!((resumed.state, resumed.reason), (Stands::Resumable, Some(Reason::Operator)));
    assert_eq!(resume(&shop, &seen).await.unwrap_err(), ErrorKind::Conflict, "something has happened since");
    assert_eq!(send(&shop, "/charge", "k1", &script).await.0, 500, "it runs, and fails again");
    shop.pass(HOUR / 2).await;
    assert_eq!(send(&shop, "/charge", "k1", &script).await, ran("charge 0"), "in the window that began anew");
    assert_eq!(shop.probe.effects(), 1, "by the same provider key");
    let done = shop.record("reruns.charge", "k1").await;
    assert_eq!((done.attempts, done.epoch), (3, seen.epoch));
    assert_eq!(resume(&shop, &done).await.unwrap_err(), ErrorKind::Conflict, "it is done");
}

#[tokio::test]
async fn clause_33_what_is_never_run_again_is_not_resumed() {
    let shop = Shop::open(router().route("/held", post(held))).await;
    let failed = shop.post("/held", "k1").json(&json!({"status": 500})).send().await.unwrap();
    assert_eq!(failed.status(), 500);
    let seen = shop.record("reruns.held", "k1").await;
    let by = Audit { who: "ops".into(), why: "once more".into() };
    let refused = shop.runtime.resolve(seen.id, seen.fence, Resolution::Resume, by).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("never run again"), "{refused}");
    let still = shop.record("reruns.held", "k1").await;
    assert_eq!((still.state, still.fence), (Stands::InDoubt, seen.fence));
}

#[tokio::test]
async fn clause_33_a_hook_lets_it_be_run_again() {
    let configure = |builder: idem_runtime::Builder| {
        let hook = |_| async { Recovery::Resume };
        builder.provider_window(HOUR).recover("reruns.recovered", hook).sweep_every(Duration::from_millis(20))
    };
    let shop = Shop::open_with(router(), configure).await;
    let script = ["500", "ok"];
    assert_eq!(send(&shop, "/recovered", "k1", &script).await.0, 500);
    shop.pass(HOUR * 2).await;
    eventually(async || {
        let shown = shop.record("reruns.recovered", "k1").await;
        (shown.state, shown.reason) == (Stands::Resumable, Some(Reason::Recovery))
    })
    .await;
    assert_eq!(send(&shop, "/recovered", "k1", &script).await, ran("charge 0"));
    assert_eq!(shop.probe.effects(), 1);
}

/// It says something that its operation does not; the record stays with whoever can settle it.
#[tokio::test]
async fn clause_33_a_hook_resumes_nothing_that_is_held() {
    let configure = |builder: idem_runtime::Builder| {
        builder.recover("reruns.held", |_| async { Recovery::Resume }).sweep_every(Duration::from_millis(20))
    };
    let shop = Shop::open_with(router().route("/held", post(held)), configure).await;
    assert_eq!(shop.post("/held", "k1").json(&json!({"status": 500})).send().await.unwrap().status(), 500);
    for tries in [1, 2] {
        shop.pass(Duration::from_secs(60)).await;
        eventually(async || shop.record("reruns.held", "k1").await.tries == tries).await;
    }
    assert_eq!(shop.record("reruns.held", "k1").await.state, Stands::InDoubt);
}
