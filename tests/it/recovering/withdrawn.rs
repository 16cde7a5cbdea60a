//! A deploy took `rerun_deduped` away, or `Steps`.

use super::*;
use crate::support::Backend;

const HOUR: Duration = Duration::from_secs(3600);

/// Its hook is not asked before the window is over, so nobody is told to wait for it.
#[tokio::test]
async fn clause_33_what_nobody_runs_again_any_more_waits_for_an_operator_until_its_window_is_over() {
    let (bank, place) = (Bank::default(), Arc::new(Place::new()));
    let before = Shop::open_on(Arc::clone(&place), router(), |builder| builder.sweep_every(Duration::ZERO)).await;
    failed(&before, "/charge", "k").await;
    let hour = place.span(HOUR);
    before.sql(&format!("update idem_key set state = 6, rerun_until = created_at + {hour}")).await;
    let shop = Shop::open_on(place, router(), |builder| bank.hooks(builder)).await;
    bank.says(Says::Yes);
    let told = problem(retry(&shop, "k").await).await;
    assert_eq!((told.status, told.slug.as_str()), (409, "idempotency-outcome-unknown"));
    assert_eq!((told.body["retry"].as_str(), told.retry_after), (Some("operator"), None));
    assert_eq!((stands(&shop, "k").await, bank.asked().len()), (State::Resumable, 0));
    shop.pass(HOUR).await;
    eventually(async || stands(&shop, "k").await == State::Done).await;
}

/// It asks by their keys, and what has happened is not released.
#[tokio::test]
async fn clause_33_a_hook_sees_the_steps_that_an_earlier_deploy_recorded() {
    let (bank, logs) = (Bank::default(), Logs::collect());
    let shop = bank.shop().await;
    failed(&shop, "/charge", "k").await;
    let is_sqlite = shop.place.backend() == Backend::Sqlite;
    let (column, value, result) = if is_sqlite { ("", "", "x'37'") } else { (", nr", ", 1", "'7'") };
    let step = format!("insert into idem_step (kid, epoch, step, kind, result, started_at{column})");
    shop.sql(&format!("{step} select kid, epoch, 'a', 3, {result}, created_at{value} from idem_key")).await;
    bank.says(Says::No);
    eventually(async || {
        shop.pass(LONG).await;
        format!("{:?}", logs.all()).contains("a step of the operation has a result")
    })
    .await;
    let steps = bank.asked().last().unwrap().steps().to_vec();
    assert_eq!(steps.iter().map(|step| &*step.name).collect::<Vec<_>>(), ["a"]);
    assert_eq!(stands(&shop, "k").await, State::InDoubt);
}
