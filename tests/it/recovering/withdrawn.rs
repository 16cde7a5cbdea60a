//! A deploy took `rerun_deduped` away.

use super::*;

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
