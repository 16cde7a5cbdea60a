//! Steps of which nobody knows what they came to, and those who say it: clauses 26 and 33.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use idem_runtime::{
    Audit, Builder, ErrorKind, InDoubt, Record, Recovery, Resolution, StepDecision, StepDecisions,
    state::{Reason, State as Stands},
};

use super::workshop::{Do, name, open, open_with};
use crate::support::{Backend, Logs, Shop, eventually, refusal};

const LONG: Duration = Duration::from_secs(11 * 60);

async fn resolve(shop: &Shop, how: Resolution) -> Result<Record, idem_runtime::Error> {
    let seen = shop.worked("k").await;
    let by = Audit { who: "ops".into(), why: "asked the fax company".into() };
    shop.runtime.resolve(seen.id, seen.fence, how, by).await
}

fn with(step: &str, decision: StepDecision) -> Resolution {
    Resolution::ResumeWith(StepDecisions::new().step(step, decision))
}

fn sent() -> StepDecision {
    StepDecision::done("sent, as their list says").unwrap()
}

/// Why it is refused.
async fn refused(shop: &Shop, how: Resolution) -> String {
    let before = shop.worked("k").await;
    let error = resolve(shop, how).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let after = shop.worked("k").await;
    assert_eq!((after.state, after.fence), (before.state, before.fence));
    error.to_string()
}

/// In doubt about its fax.
async fn in_doubt(shop: &Shop) -> [Vec<Do>; 2] {
    let runs = [
        vec![Do::Run(name("a")), Do::OnceLost(name("fax"))],
        vec![Do::Run(name("a")), Do::Once(name("fax")), Do::Run(name("b"))],
    ];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 502);
    let shown = shop.worked("k").await;
    assert_eq!((shown.state, shown.reason), (Stands::InDoubt, Some(Reason::StepUnknown)));
    runs
}

#[tokio::test]
async fn clause_33_an_operator_says_what_a_step_came_to() {
    let shop = open().await;
    let runs = in_doubt(&shop).await;
    let told = refused(&shop, Resolution::Resume).await;
    assert!(told.contains("`fax`") && told.contains("Resolution::ResumeWith"), "{told}");
    let resumed = resolve(&shop, with("fax", sent())).await.unwrap();
    assert_eq!((resumed.state, resumed.reason), (Stands::Resumable, Some(Reason::Operator)));
    let second = shop.work("/work", "k", &runs).await;
    let all = "a done; sent, as their list says; b done";
    assert_eq!((second.status, second.replayed, &*second.body), (201, false, all));
    let third = shop.work("/work", "k", &runs).await;
    assert_eq!((third.status, third.replayed, third.body), (201, true, second.body));
    assert_eq!(shop.effects_by_step(), ["a", "fax", "b"]);
}

/// A request that was sent may be on its way, as for a release.
#[tokio::test]
async fn clause_33_what_was_not_done_is_called_again_after_the_quarantine() {
    let shop = open().await;
    let runs = in_doubt(&shop).await;
    let early = refused(&shop, with("fax", StepDecision::NotDone)).await;
    assert!(early.contains("quarantine"), "{early}");
    shop.pass(LONG).await;
    resolve(&shop, with("fax", StepDecision::NotDone)).await.unwrap();
    let second = shop.work("/work", "k", &runs).await;
    assert_eq!((second.status, &*second.body), (201, "a done; fax done; b done"));
    assert_eq!(shop.effects_by_step(), ["a", "fax", "fax", "b"], "the operator was wrong, and nobody else");
}

#[tokio::test]
async fn clause_33_only_a_step_that_is_open_is_decided_about() {
    let shop = open().await;
    in_doubt(&shop).await;
    let before = shop.runtime.steps(shop.worked("k").await.id).await.unwrap();
    for other in ["a", "absent"] {
        for decision in [sent(), StepDecision::NotDone, StepDecision::AskAgain] {
            let both = StepDecisions::new().step("fax", sent()).step(other, decision);
            let told = refused(&shop, Resolution::ResumeWith(both)).await;
            assert!(told.contains(&format!("`{other}`")), "{told}");
        }
    }
    let after = shop.runtime.steps(shop.worked("k").await.id).await.unwrap();
    let results = |steps: Vec<idem_runtime::store::Step>| steps.into_iter().map(|step| step.result).collect::<Vec<_>>();
    assert_eq!(results(after), results(before));
}

/// What cannot be stored for a body cannot be stored for an operator.
#[tokio::test]
async fn clause_33_a_decided_result_is_not_longer_than_a_steps_own() {
    let shop = open_with(|builder| builder.max_response(100)).await;
    in_doubt(&shop).await;
    let told = refused(&shop, with("fax", StepDecision::done(&"x".repeat(100)).unwrap())).await;
    assert!(told.contains("`max_response`"), "{told}");
}

/// The type is the body's affair; what does not fit is found by the run that reads it.
#[tokio::test]
async fn clause_38_a_decided_result_of_another_type_is_a_doubt() {
    let shop = open().await;
    let runs = in_doubt(&shop).await;
    resolve(&shop, with("fax", StepDecision::done(&7).unwrap())).await.unwrap();
    let told = shop.post("/work", "k").json(&shop.plan(&runs)).send().await.unwrap();
    assert_eq!(refusal(told).await, (409, "idempotency-outcome-unknown".to_owned()));
    assert_eq!(shop.worked("k").await.reason, Some(Reason::CodeChanged));
}

/// What was begun as `once` is found out by the program that can ask.
#[tokio::test]
async fn clause_26_an_operator_has_the_provider_asked_again() {
    let shop = open().await;
    let runs =
        [vec![Do::Run(name("a")), Do::OnceLost(name("fax"))], vec![Do::Run(name("a")), Do::OnceOrFind(name("fax"))]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 502);
    assert!(refused(&shop, Resolution::Resume).await.contains("`fax`"));
    resolve(&shop, with("fax", StepDecision::AskAgain)).await.unwrap();
    let second = shop.work("/work", "k", &runs).await;
    assert_eq!((second.status, &*second.body), (201, "a done; fax found"));
    assert_eq!(shop.effects_by_step(), ["a", "fax"]);
}

/// A provider has forgotten the key of a step that was begun so long ago.
#[tokio::test]
async fn clause_26_a_step_that_is_too_old_to_run_again_is_decided_about() {
    let shop = open_with(|builder| builder.provider_window(Duration::from_secs(60))).await;
    let runs = [vec![Do::RunLost(name("pay"))], vec![Do::Run(name("pay"))]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 502);
    shop.pass(LONG).await;
    let told = shop.post("/work", "k").json(&shop.plan(&runs)).send().await.unwrap();
    assert_eq!(refusal(told).await, (409, "idempotency-outcome-unknown".to_owned()));
    assert!(refused(&shop, Resolution::Resume).await.contains("`pay`"));
    let told = refused(&shop, with("pay", StepDecision::AskAgain)).await;
    assert!(told.contains("`pay`") && told.contains("`once_or_find`"), "{told}");
    resolve(&shop, with("pay", sent())).await.unwrap();
    assert_eq!(shop.work("/work", "k", &runs).await.status, 201);
    assert_eq!(shop.effects_by_step(), ["pay"]);
}

fn hooked(builder: Builder, says: impl Fn(InDoubt) -> Recovery + Send + Sync + 'static) -> Builder {
    let says = move |doubt| std::future::ready(says(doubt));
    builder.recover("steps.work", says).sweep_every(Duration::from_millis(20))
}

#[tokio::test]
async fn clause_33_a_hook_says_what_a_step_came_to() {
    let asks = |doubt: InDoubt| {
        let open = doubt.steps().iter().filter(|step| step.result.is_none());
        Recovery::ResumeWith(open.fold(StepDecisions::new(), |all, step| all.step(&step.name, sent())))
    };
    let shop = open_with(|builder| hooked(builder, asks)).await;
    let runs = [vec![Do::Run(name("a")), Do::OnceLost(name("fax"))], vec![Do::Run(name("a")), Do::Once(name("fax"))]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 502);
    eventually(async || shop.worked("k").await.state == Stands::Resumable).await;
    assert_eq!(shop.worked("k").await.reason, Some(Reason::Recovery));
    let second = shop.work("/work", "k", &runs).await;
    assert_eq!((second.status, &*second.body), (201, "a done; sent, as their list says"));
    assert_eq!(shop.effects_by_step(), ["a", "fax"]);
}

/// A hook's "not done" counts when nothing can act any more, also by this process's own clock; until then it is asked again.
#[tokio::test]
async fn clause_33_a_hooks_not_done_waits_for_the_quarantine() {
    let says = |_| Recovery::ResumeWith(StepDecisions::new().step("fax", StepDecision::NotDone));
    let shop = open_with(|builder| hooked(builder.quarantine(Duration::from_secs(1)), says)).await;
    let runs = [vec![Do::OnceLost(name("fax"))], vec![Do::Once(name("fax"))]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 502);
    eventually(async || {
        shop.pass(LONG).await;
        shop.worked("k").await.state == Stands::Resumable
    })
    .await;
    assert!(shop.worked("k").await.silent_for >= LONG * 2, "its first words were too early");
    assert_eq!(shop.runtime.steps(shop.worked("k").await.id).await.unwrap(), []);
    assert_eq!(shop.work("/work", "k", &runs).await.status, 201);
    assert_eq!(shop.effects_by_step(), ["fax", "fax"], "the hook was wrong, and nobody else");
}

/// A body was cut off while the result of its `once` was on its way to the store: it could not know that it arrived.
#[tokio::test]
async fn clause_33_a_hook_resumes_a_doubt_of_which_every_step_has_a_result() {
    let shop = open_with(|builder| hooked(builder, |_| Recovery::Resume)).await;
    let runs = in_doubt(&shop).await;
    shop.sql("update idem_step set result = (select result from idem_step where step = 'a') where step = 'fax'").await;
    eventually(async || {
        shop.pass(LONG).await;
        shop.worked("k").await.state == Stands::Resumable
    })
    .await;
    assert_eq!(shop.worked("k").await.reason, Some(Reason::Recovery));
    assert_eq!(shop.work("/work", "k", &runs).await.status, 201);
    assert_eq!(shop.effects_by_step(), ["a", "fax", "b"]);
}

/// The next run would find the same, and so would the hook.
#[tokio::test]
async fn clause_33_a_hooks_not_done_about_what_is_never_run_again_is_told() {
    let logs = Logs::collect();
    let says = |_| Recovery::ResumeWith(StepDecisions::new().step("fax", StepDecision::NotDone));
    let shop = open_with(|builder| hooked(builder.quarantine(Duration::from_secs(1)), says)).await;
    in_doubt(&shop).await;
    let never = match shop.place.backend() {
        Backend::Sqlite => "0",
        Backend::Postgres | Backend::PgBouncer => "'epoch'",
    };
    shop.sql(&format!("update idem_key set rerun_until = {never}")).await;
    eventually(async || {
        shop.pass(LONG).await;
        format!("{:?}", logs.all()).contains("it began as an operation that never is")
    })
    .await;
    assert_eq!(shop.worked("k").await.state, Stands::InDoubt);
}

/// It would meet the same step, be in doubt again, and have its tries counted from the beginning.
#[tokio::test]
async fn clause_33_a_hook_that_only_says_resume_is_asked_no_more_in_the_end() {
    for how in [Resume::Plain, Resume::AskAgain] {
        let (logs, asked) = (Logs::collect(), Arc::new(AtomicUsize::new(0)));
        let counts = Arc::clone(&asked);
        let says = move |_| {
            counts.fetch_add(1, Ordering::SeqCst);
            match how {
                Resume::Plain => Recovery::Resume,
                Resume::AskAgain => Recovery::ResumeWith(StepDecisions::new().step("fax", StepDecision::AskAgain)),
            }
        };
        let shop = open_with(|builder| hooked(builder, says)).await;
        in_doubt(&shop).await;
        for until in [3, 300] {
            eventually(async || {
                shop.pass(LONG).await;
                shop.worked("k").await.tries >= until
            })
            .await;
            shop.sql("update idem_key set tries = 298 where tries < 298").await;
        }
        let said = || format!("{:?}", logs.all());
        eventually(async || said().contains("asked no more")).await;
        assert_eq!(shop.worked("k").await.tries, 300);
        let before = asked.load(Ordering::SeqCst);
        shop.pass(Duration::from_secs(24 * 3600)).await;
        let looked = shop.store.calls(crate::support::Verb::Survey);
        eventually(async || shop.store.calls(crate::support::Verb::Survey) > looked + 5).await;
        assert_eq!(asked.load(Ordering::SeqCst), before);
        let shown = shop.worked("k").await;
        assert_eq!((shown.state, shown.reason, shown.attempts), (Stands::InDoubt, Some(Reason::StepUnknown), 1));
        let words = match how {
            Resume::Plain => ["Recovery::ResumeWith", "`fax`"],
            Resume::AskAgain => ["`AskAgain` is for operators", "`InDoubt::step_key`"],
        };
        assert!(words.iter().all(|words| said().contains(words)), "{}", said());
        assert_eq!(shop.effects_by_step(), ["a", "fax"]);
    }
}

#[derive(Clone, Copy)]
enum Resume {
    Plain,
    AskAgain,
}
