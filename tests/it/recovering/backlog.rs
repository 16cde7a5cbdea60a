//! What an outage leaves.

use super::*;

const MANY: usize = 30;

/// More than there are slots for. They do not wait for one look per handful.
#[tokio::test]
async fn clause_33_a_backlog_is_asked_about_at_one_go() {
    let (bank, place) = (Bank::default(), Arc::new(Place::new()));
    let quiet = Shop::open_on(Arc::clone(&place), router(), |builder| builder.sweep_every(Duration::ZERO)).await;
    for n in 0..MANY {
        failed(&quiet, "/charge", &n.to_string()).await;
    }
    quiet.pass(A_WHILE).await;
    bank.says(Says::Yes);
    let shop =
        Shop::open_on(place, router(), |builder| bank.hooks(builder).sweep_every(Duration::from_millis(500))).await;
    bank.is_asked(1).await;
    let looks = shop.store.calls(Verb::Survey);
    bank.is_asked(MANY).await;
    assert!(shop.store.calls(Verb::Survey) <= looks + 1, "one look per {} of them", MANY / 4);
    eventually(async || shop.count("select count(*) from idem_key where state = 2").await == MANY as i64).await;
}
