//! Scenario 61: "nothing happened" frees a key only when nothing can happen any more.

use super::*;

/// A quarantine that a test can wait for: no row moves this process's own clock.
const SHORT: Duration = Duration::from_secs(1);

/// Time passes, by both clocks, until the key is free.
async fn is_freed(shop: &Shop, key: &str) {
    eventually(async || {
        shop.pass(Duration::from_secs(1)).await;
        stands(shop, key).await == State::Released
    })
    .await;
}

async fn shop(bank: &Bank, quarantine: Duration) -> Shop {
    Shop::open_with(router(), |builder| bank.hooks(builder).quarantine(quarantine)).await
}

#[tokio::test]
async fn scenario_61_not_found_frees_the_key_of_a_silent_owner_only_after_quarantine() {
    let bank = Bank::default();
    bank.says(Says::No);
    let shop = shop(&bank, SHORT).await;
    let held = shop.probe.hold().await;
    let live = tokio::spawn(shop.post("/charge", "live").json(&json!({})).send());
    eventually(async || shop.probe.started() == 1).await;
    let looks = shop.store.calls(Verb::Survey);
    eventually(async || shop.store.calls(Verb::Survey) > looks + 3).await;
    assert!(bank.asked().is_empty(), "never while its owner lives");
    live.abort();

    let begun = tokio::time::Instant::now();
    let first = silent(&shop, "k").await;
    is_freed(&shop, "k").await;
    assert!(begun.elapsed() >= SHORT);
    assert!(bank.asked().iter().filter(|doubt| doubt.attempts() == 1).count() > 2, "not by the first look");
    drop(held);
    assert_ne!(first.await.unwrap().status(), 201, "its owner has lost the key");
    assert_eq!(shop.record("recovering.charge", "k").await.reason, Some(Reason::Recovery));
}

#[tokio::test]
async fn scenario_61_a_look_that_began_in_the_quarantine_frees_nothing() {
    let bank = Bank::default();
    bank.says(Says::No);
    let looks = Arc::clone(&bank.gate).write_owned().await;
    let shop = shop(&bank, SHORT).await;
    let held = shop.probe.hold().await;
    let first = silent(&shop, "k").await;
    bank.is_asked(1).await;
    shop.pass(LONG).await; // meanwhile its owner may have acted after all
    drop(looks);
    is_freed(&shop, "k").await;
    assert!(bank.asked().len() > 1, "by the next look, which began after it");
    drop(held);
    assert_ne!(first.await.unwrap().status(), 201);
}

/// As `scenario_58` for purges: the database's clock jumps, or all of the machine was suspended but for the database. The
/// owner looks silent for long enough, and its body has only just begun.
#[tokio::test]
async fn scenario_61_a_clock_that_jumped_frees_no_key_of_a_living_body() {
    let (bank, another) = (Bank::default(), Bank::default());
    let place = Arc::new(Place::new());
    let shop = Shop::open_on(Arc::clone(&place), router(), |builder| bank.hooks(builder)).await;
    let held = shop.probe.hold().await;
    let post = shop.post("/charge", "k").json(&json!({}));
    let first = tokio::spawn(async move { post.send().await.unwrap() });
    eventually(async || shop.probe.started() == 1).await;
    bank.says(Says::No);
    another.says(Says::No);
    shop.store.tell(Verb::Renew, Fault::Down);
    shop.pass(LONG).await;
    bank.is_asked(1).await;
    assert!(bank.asked()[0].silent_for() > Duration::from_secs(10 * 60));
    shop.pass(A_WHILE).await;
    bank.is_asked(2).await; // what it said at first is written down
    assert_eq!(stands(&shop, "k").await, State::InDoubt);

    let other = Shop::open_on(place, router(), |builder| another.hooks(builder)).await;
    bank.says(Says::Hangs); // so that the other comes to it
    eventually(async || {
        other.pass(Duration::from_secs(60)).await;
        another.asked().len() > 1
    })
    .await;
    assert_eq!(stands(&other, "k").await, State::InDoubt, "it knows of it only since it started");
    drop(held);
    assert_ne!(first.await.unwrap().status(), 201);
    assert_eq!(shop.probe.effects(), 1);
    assert_eq!(retry_other(&other, "k").await.status(), 409);
    assert_eq!(other.probe.effects(), 0, "no second run beside it");
}

#[tokio::test]
async fn scenario_61_not_found_frees_the_key_of_a_run_that_ended_by_its_own_report() {
    let bank = Bank::default();
    bank.says(Says::No);
    let shop = bank.shop().await;
    failed(&shop, "/charge", "k").await;
    shop.pass(A_WHILE).await;
    eventually(async || stands(&shop, "k").await == State::Released).await;
    let again = seen(retry_other(&shop, "k").await).await; // even with another payload
    assert!(again.ran());
}

/// It was dropped while it waited for its provider, who has its request.
#[tokio::test]
async fn scenario_61_not_found_frees_no_key_whose_body_was_cut_off() {
    let bank = Bank::default();
    bank.says(Says::No);
    let shop = bank.shop().await;
    let _held = shop.probe.hold().await;
    let first = shop.post("/brief", "k").json(&json!({})).send().await.unwrap();
    assert_eq!(first.status(), 504);
    shop.pass(A_WHILE).await;
    bank.is_asked(1).await;
    shop.pass(A_WHILE).await;
    bank.is_asked(2).await; // so what it said at first is written down
    let record = shop.record("recovering.brief", "k").await;
    assert_eq!((record.state, record.reason), (State::InDoubt, Some(Reason::Timeout)));
    let doubt = &bank.asked()[1];
    assert!(doubt.silent_for() >= A_WHILE * 2 && doubt.silent_for() < LONG, "{:?}", doubt.silent_for());
}
