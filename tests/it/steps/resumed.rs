//! A retry runs what is missing.

use std::time::Duration;

use idem_runtime::{
    state::{Reason, State as Stands},
    store::StepKind,
};
use reqwest::StatusCode;

use super::workshop::{Do, name, open, open_with};
use crate::support::{eventually, refusal, seen};

fn signup(then: Do) -> Vec<Do> {
    let mut steps = vec![
        Do::Row(name("user")),
        Do::Row(name("workspace")),
        Do::Run(name("permissions")),
        Do::Run(name("mail")),
        Do::Run(name("customer")),
    ];
    match then {
        Do::Panic => steps.insert(3, Do::Panic),
        then => steps[3] = then,
    }
    steps
}

#[tokio::test]
async fn scenario_80_a_retry_runs_only_what_is_missing() {
    for (key, trouble) in [("lost", Do::RunLost(name("mail"))), ("panic", Do::Panic), ("answer", Do::Answer(422))] {
        let shop = open().await;
        let runs = [signup(trouble), signup(Do::Run(name("mail")))];
        let first = shop.work("/work", key, &runs).await;
        assert!(first.status >= 400 && !first.replayed, "{first:?}");
        let shown = shop.worked(key).await;
        assert_eq!(shown.state, Stands::Resumable, "{key}");
        let recorded = shop.runtime.steps(shown.id).await.unwrap();
        let ended: Vec<_> = recorded.iter().filter(|step| step.result.is_some()).map(|step| &*step.name).collect();
        assert_eq!(ended, ["user", "workspace", "permissions"]);
        assert_eq!(recorded[0].kind, StepKind::Transaction);

        let second = shop.work("/work", key, &runs).await;
        let all = "user written; workspace written; permissions done; mail done; customer done";
        assert_eq!((second.status, second.replayed, &*second.body), (201, false, all));
        let third = shop.work("/work", key, &runs).await;
        assert_eq!((third.status, third.replayed, third.body), (201, true, second.body));
        assert_eq!(shop.rows().await, ["user", "workspace"]);
        assert_eq!(shop.effects_by_step(), ["permissions", "mail", "customer"], "{key}");
    }
}

#[tokio::test]
async fn scenario_81_another_payload_does_not_continue_it() {
    let shop = open().await;
    let runs = [vec![Do::Run(name("a")), Do::Answer(500)], vec![Do::Run(name("a"))]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 500);
    let other = shop.post("/work", "k").json(&shop.plan(&[vec![Do::Run(name("b"))]])).send().await.unwrap();
    assert_eq!(refusal(other).await, (422, "idempotency-key-reused".to_owned()));
    assert_eq!(shop.work("/work", "k", &runs).await.status, 201);
    assert_eq!(shop.effects_by_step(), ["a"]);
}

/// The process is lost after the provider's effect, before the step's end: the next run asks with the same key.
#[tokio::test]
async fn scenario_82_a_step_that_never_ended_is_asked_for_again_with_its_key() {
    let shop = open().await;
    let runs = [vec![Do::RunGate(name("charge"))], vec![Do::Run(name("charge"))]];
    let held = shop.probe.hold().await;
    let first = shop.post("/work", "k").json(&shop.plan(&runs));
    let first = tokio::spawn(async { first.send().await.unwrap() });
    eventually(async || shop.probe.started() == 1).await;
    shop.freeze().await;
    let second = shop.work("/work", "k", &runs).await;
    assert_eq!((second.status, second.replayed, &*second.body), (201, false, "charge done"));
    drop(held);
    // Scenario 85: what it still says comes too late, and what it answers is what is stored.
    let first = seen(first.await.unwrap()).await;
    assert_eq!((first.status, first.replayed, &first.body), (201, true, &second.body));
    assert_eq!(shop.effects_by_step(), ["charge"]);
}

#[tokio::test]
async fn scenario_85_a_run_that_was_taken_over_begins_no_more_steps() {
    let shop = open().await;
    let late = vec![Do::Run(name("a")), Do::Gate, Do::Row(name("late")), Do::Run(name("late-too"))];
    let runs = [late, vec![Do::Run(name("a")), Do::Answer(500)]];
    let held = shop.probe.hold().await;
    let first = shop.post("/work", "k").json(&shop.plan(&runs));
    let first = tokio::spawn(async { first.send().await.unwrap() });
    eventually(async || shop.probe.started() == 1).await;
    shop.freeze().await;
    assert_eq!(shop.work("/work", "k", &runs).await.status, 500);
    drop(held);
    let told = first.await.unwrap();
    assert_eq!(refusal(told).await, (409, "idempotency-outcome-unknown".to_owned()));
    assert_eq!((shop.effects_by_step(), shop.rows().await), (vec![name("a")], vec![]));
}

#[tokio::test]
async fn scenario_83_a_step_is_not_asked_for_again_when_its_provider_may_have_forgotten() {
    let shop = open_with(|builder| builder.ttl(Duration::from_secs(7 * 24 * 3600))).await;
    let runs = [vec![Do::RunLost(name("charge"))], vec![Do::Run(name("charge"))]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 502);
    shop.pass(Duration::from_secs(22 * 3600)).await;
    assert_eq!(shop.worked("k").await.state, Stands::Resumable);
    shop.pass(Duration::from_secs(2 * 3600)).await;
    let late = shop.post("/work", "k").json(&shop.plan(&runs)).send().await.unwrap();
    assert_eq!(refusal(late).await, (409, "idempotency-outcome-unknown".to_owned()));
    let shown = shop.worked("k").await;
    assert_eq!((shown.state, shown.reason), (Stands::InDoubt, Some(Reason::StepUnknown)));
    assert_eq!(shop.effects_by_step(), ["charge"]);
}

#[tokio::test]
async fn case_93_each_step_has_a_key_of_its_own_and_keeps_it() {
    let shop = open().await;
    let runs = [vec![Do::Run(name("a")), Do::RunLost(name("b"))], vec![Do::Run(name("a")), Do::Run(name("b"))]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 502);
    let record = shop.worked("k").await;
    assert_eq!(shop.work("/work", "k", &runs).await.status, 201);
    let globex = shop.client.post(shop.url("/work")).bearer_auth("globex").header("idempotency-key", "k");
    assert_eq!(globex.json(&shop.plan(&runs[1..])).send().await.unwrap().status(), StatusCode::CREATED);
    let log = shop.probe.log();
    assert_eq!(shop.effects_by_step(), ["a", "b", "a", "b"], "once each, by one key each, for each tenant");
    let mut keys: Vec<_> = log.iter().map(|effect| effect.split_once(' ').unwrap().1).collect();
    keys.push(record.id.to_string().leak());
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 5);
    assert!(keys.iter().all(|key| *key != "k" && *key != record.provider_key()));
}

#[tokio::test]
async fn case_94_steps_side_by_side_are_known_by_their_names() {
    let shop = open().await;
    let names = ["a", "b", "c"].map(name).to_vec();
    let mut runs = vec![vec![Do::Join(names.clone()), Do::Answer(500)]; 20];
    runs.push(vec![Do::Join(names)]);
    for _ in 0..20 {
        assert_eq!(shop.work("/work", "k", &runs).await.status, 500);
    }
    let last = shop.work("/work", "k", &runs).await;
    assert_eq!((last.status, &*last.body), (201, "a done, b done, c done"));
    let mut effects = shop.effects_by_step();
    effects.sort_unstable();
    assert_eq!(effects, ["a", "b", "c"]);
}

/// T8a: nothing has happened, so nothing is remembered, whatever the end was.
#[tokio::test]
async fn clause_25_what_breaks_off_before_its_first_step_is_released() {
    for end in [Do::Answer(500), Do::Answer(422), Do::Panic, Do::RowFailed(name("user")), Do::NotApplied(503)] {
        let shop = open().await;
        assert!(shop.work("/work", "k", &[vec![end.clone()]]).await.status >= 400);
        assert_eq!(shop.worked("k").await.state, Stands::Released, "{end:?}");
        let corrected = shop.work("/work", "k", &[vec![], vec![Do::Run(name("a"))]]).await;
        assert_eq!((corrected.status, corrected.replayed), (201, false), "{end:?}");
    }
}

/// T8b.
#[tokio::test]
async fn clause_25_what_nobody_continues_is_in_doubt_in_the_end() {
    let shop = open().await;
    let runs = [vec![Do::Run(name("a")), Do::Answer(500)], vec![Do::Run(name("a"))]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 500);
    shop.pass(Duration::from_secs(25 * 3600)).await;
    let shown = shop.worked("k").await;
    assert_eq!((shown.state, shown.reason), (Stands::InDoubt, Some(Reason::Abandoned)));
    let late = shop.post("/work", "k").json(&shop.plan(&runs)).send().await.unwrap();
    assert_eq!(refusal(late).await, (409, "idempotency-outcome-unknown".to_owned()));
}

/// Clause 13: an answer that is not final says nothing about the steps before it.
#[tokio::test]
async fn clause_13_after_a_step_only_the_body_itself_can_say_that_it_is_over() {
    let shop = open().await;
    let fails = |end: Do| [vec![Do::RunLost(name("a")), Do::Answer(201)], vec![Do::Run(name("a")), end]];
    for (key, end, then) in [
        ("422", Do::Answer(422), Stands::Resumable),
        ("final", Do::Final(402), Stands::Done),
        ("not-applied", Do::NotApplied(422), Stands::Resumable), // it is done, whatever the body says
    ] {
        let runs = fails(end);
        assert_eq!(shop.work("/work", key, &runs).await.status, 502);
        let _ = shop.work("/work", key, &runs).await;
        assert_eq!(shop.worked(key).await.state, then, "{key}");
    }
    // A provider that refused before anything happened: the corrected payload may run.
    let refused = [vec![Do::Whatever(vec![Do::RunLost(name("b"))]), Do::NotApplied(402)]];
    assert_eq!(shop.work("/work", "refused", &refused).await.status, 402);
    assert_eq!(shop.worked("refused").await.state, Stands::Released);
}

/// A time-out cuts the body off in the middle of a step.
#[tokio::test]
async fn clause_20_a_step_that_is_cut_off_is_run_again() {
    let shop = open().await;
    let runs = [vec![Do::RunGate(name("slow"))], vec![Do::Run(name("slow"))]];
    let held = shop.probe.hold().await;
    let first = shop.post("/short", "k").json(&shop.plan(&runs)).send().await.unwrap();
    assert_eq!(refusal(first).await, (504, "idempotency-body-timeout".to_owned()));
    assert_eq!(shop.record("steps.short", "k").await.state, Stands::Resumable);
    drop(held);
    assert_eq!(shop.work("/short", "k", &runs).await.status, 201);
    assert_eq!(shop.effects_by_step(), ["slow"]);
}

#[tokio::test]
async fn clause_07_without_a_key_steps_just_run() {
    let shop = open().await;
    let plan = shop.plan(&[vec![Do::Row(name("user")), Do::Run(name("mail")), Do::Once(name("fax"))]]);
    for _ in 0..2 {
        let sent = shop.client.post(shop.url("/optional")).bearer_auth("acme").json(&plan).send().await.unwrap();
        let status = sent.headers()["idempotency-status"].clone();
        assert_eq!((sent.status().as_u16(), status.to_str().unwrap()), (201, "ignored"));
    }
    assert_eq!(shop.records().await, 0);
    assert_eq!((shop.rows().await.len(), shop.effects_by_step().len()), (2, 4));
}

/// A hand on the steps that outlives the body begins nothing after the end was judged: the key is free, and a retry would do it
/// again.
#[tokio::test]
async fn clause_25_nothing_is_begun_after_the_end_of_the_run() {
    let shop = open().await;
    let held = shop.probe.hold().await;
    assert_eq!(shop.work("/work", "k", &[vec![Do::Later(name("late")), Do::Answer(500)]]).await.status, 500);
    drop(held);
    eventually(async || shop.probe.log().contains(&name("late was refused"))).await;
    assert_eq!((shop.effects_by_step(), shop.worked("k").await.state), (vec![name("late")], Stands::Released));
}

/// The provider has acted, whatever came of the step's result: what the body says is not believed.
#[tokio::test]
async fn clause_25_an_effect_whose_result_is_not_stored_is_no_nothing() {
    let shop = open().await;
    shop.store.tell(crate::support::Verb::EndSteps, crate::support::Fault::Down);
    let runs = [vec![Do::Whatever(vec![Do::Run(name("a"))]), Do::NotApplied(503)], vec![Do::Run(name("a"))]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 503);
    assert_eq!(shop.worked("k").await.state, Stands::Resumable);
}

/// Nobody frees a key whose steps have results: all of them would happen again.
#[tokio::test]
async fn clause_33_a_release_is_refused_where_a_step_has_a_result() {
    let shop = open().await;
    assert_eq!(shop.work("/work", "k", &[vec![Do::Run(name("a")), Do::Answer(500)]]).await.status, 500);
    let record = shop.worked("k").await;
    let by = idem_runtime::Audit { who: "ops".into(), why: "test".into() };
    let refused = shop.runtime.resolve(record.id, record.fence, idem_runtime::Resolution::Release, by).await;
    assert_eq!(refused.unwrap_err().kind(), idem_runtime::ErrorKind::Conflict);
    assert_eq!(shop.worked("k").await.state, Stands::Resumable);
}

/// A provider's id is evidence of an effect, also before the first step: what it tells of must not be done by a fresh run.
#[tokio::test]
async fn clause_25_what_was_linked_has_begun() {
    let shop = open().await;
    for (key, end, stands) in [
        ("500", Do::Answer(500), Stands::Resumable),
        ("422", Do::Answer(422), Stands::Resumable),
        ("panic", Do::Panic, Stands::Resumable),
        ("not-applied", Do::NotApplied(422), Stands::Resumable), // what is linked is there, whatever the body says
    ] {
        let runs = [vec![Do::Link(name("ch_1")), end], vec![Do::Run(name("a"))]];
        assert!(shop.work("/work", key, &runs).await.status >= 400);
        assert_eq!(shop.worked(key).await.state, stands, "{key}");
        assert_eq!(shop.work("/work", key, &runs).await.status, 201);
    }
}

/// What cannot be compared is no input, and its step does not begin.
#[tokio::test]
async fn clause_25_an_input_that_is_no_json_is_its_steps_error() {
    let shop = open().await;
    let told = shop.post("/work", "k").json(&shop.plan(&[vec![Do::GivenNoJson(name("a"))]])).send().await.unwrap();
    assert_eq!(told.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!((shop.probe.effects(), shop.worked("k").await.state), (0, Stands::Released));
}

#[tokio::test]
async fn clause_26_what_is_given_to_a_step_that_can_be_asked_for_is_compared_too() {
    let shop = open().await;
    let first = vec![Do::GivenOnceOrFind(name("fax"), 1), Do::Answer(500)];
    let runs = |input| [first.clone(), vec![Do::GivenOnceOrFind(name("fax"), input)]];
    assert_eq!(shop.work("/work", "same", &runs(1)).await.status, 500);
    assert_eq!(shop.work("/work", "same", &runs(1)).await.status, 201);
    assert_eq!(shop.work("/work", "other", &runs(2)).await.status, 500);
    let told = shop.post("/work", "other").json(&shop.plan(&runs(2))).send().await.unwrap();
    assert_eq!(refusal(told).await, (409, "idempotency-outcome-unknown".to_owned()));
    assert_eq!(shop.worked("other").await.reason, Some(Reason::CodeChanged));
    assert_eq!(shop.effects_by_step(), ["fax", "fax"], "one for each key");
}
