//! What a person does: double click, go back and send again, load again, change the amount.

use std::collections::BTreeMap;

use super::{browser::Browser, given};
use crate::support::{
    Backend,
    process::{Disk, Payments},
};

const FORM: &str = "Donate";
const THANKS: &str = "Thank you";
const KEY: &str = "input[name=key]";
const AMOUNT: &str = "input[name=amount]";
const BUTTON: &str = "button";
const CLICK_TWICE: &str = "const button = document.querySelector('button');
    setTimeout(() => button.click(), 0);
    setTimeout(() => button.click(), 150);";

async fn open(browser: &Browser, payments: &Payments) {
    browser.open(&payments.url("/donate")).await;
    browser.shows(FORM).await;
}

/// How many times the form has been sent, by how it ended.
async fn sent(payments: &Payments) -> BTreeMap<String, u64> {
    let metrics = payments.client().get(payments.url("/metrics")).send().await.unwrap().text().await.unwrap();
    let counts = metrics.lines().filter_map(|line| {
        let (outcome, count) = line.strip_prefix("idem_requests_total{op=\"donate\",outcome=\"")?.split_once("\"} ")?;
        Some((outcome.to_owned(), count.parse().unwrap()))
    });
    counts.filter(|(_, count)| *count > 0).collect()
}

/// From now on a donation takes about a second, inside of its transaction.
async fn slow_down(disk: &Disk) {
    disk.sql(match disk.backend() {
        Backend::Sqlite => {
            "create table slow as with recursive n(i) as (select 1 union all select i + 1 from n where i < 170) select i from n;
             create trigger slowed after insert on donations begin select sum(a.i * b.i * c.i) from slow a, slow b, slow c; end"
        }
        Backend::Postgres | Backend::PgBouncer => {
            "create function slowed() returns trigger language plpgsql as 'begin perform pg_sleep(1); return null; end';
             create trigger slowed after insert on donations for each row execute function slowed()"
        }
    })
    .await;
}

#[tokio::test]
async fn scenario_23_a_double_click_is_one_donation() {
    let Some(browser) = Browser::start().await else { return };
    let disk = Disk::new().await;
    let payments = disk.start().await;
    open(&browser, &payments).await;
    browser.double_click(BUTTON).await;
    browser.shows(THANKS).await;
    assert_eq!(given(&payments).await.len(), 1);
    browser.quit().await;
}

/// A click that nothing seems to come of, and another one: the browser gives up the first request, which goes on, and shows
/// what the second one gets. By script, since `chromedriver` does not click while a page is on its way.
#[tokio::test]
async fn scenario_23_a_form_sent_again_while_the_first_is_under_way_is_one_donation() {
    let Some(browser) = Browser::start().await else { return };
    let disk = Disk::new().await;
    let payments = disk.start().await;
    slow_down(&disk).await;
    open(&browser, &payments).await;
    browser.run(CLICK_TWICE).await;
    browser.shows(THANKS).await;
    assert_eq!(given(&payments).await.len(), 1);
    browser.quit().await;
}

#[tokio::test]
async fn scenario_23_back_and_sent_again_and_loaded_again_is_one_donation() {
    let Some(browser) = Browser::start().await else { return };
    let disk = Disk::new().await;
    let payments = disk.start().await;
    open(&browser, &payments).await;
    let key = browser.value_of(KEY).await;
    browser.click(BUTTON).await;
    browser.shows(THANKS).await;
    let thanks = browser.url().await;
    for _ in 0..2 {
        browser.back().await;
        browser.shows(FORM).await;
        assert_eq!(browser.value_of(KEY).await, key, "the page that was there");
        browser.click(BUTTON).await;
        browser.shows(THANKS).await;
        assert_eq!(browser.url().await, thanks);
        browser.load_again().await;
        browser.shows(THANKS).await;
    }
    let outcomes = [("executed".to_owned(), 1), ("replayed".to_owned(), 2)];
    assert_eq!(sent(&payments).await, outcomes.into());
    assert_eq!(given(&payments).await.len(), 1);

    open(&browser, &payments).await;
    assert_ne!(browser.value_of(KEY).await, key, "a new visit is a new donation");
    browser.click(BUTTON).await;
    browser.shows(THANKS).await;
    assert_eq!(given(&payments).await.len(), 2);
    browser.quit().await;
}

#[tokio::test]
async fn scenario_23_back_and_another_amount_is_told_so_and_a_new_form_gives_it() {
    let Some(browser) = Browser::start().await else { return };
    let disk = Disk::new().await;
    let payments = disk.start().await;
    open(&browser, &payments).await;
    browser.click(BUTTON).await;
    browser.shows(THANKS).await;
    browser.back().await;
    browser.shows(FORM).await;
    browser.fill_in(AMOUNT, "9900").await;
    browser.click(BUTTON).await;
    browser.shows("This form was sent before").await;
    assert_eq!(given(&payments).await.len(), 1);
    browser.fill_in(AMOUNT, "9900").await;
    browser.click(BUTTON).await;
    browser.shows(THANKS).await;
    let amounts: Vec<_> = given(&payments).await.iter().map(|donation| donation["amount"].clone()).collect();
    assert_eq!(amounts, [500, 9900]);
    browser.quit().await;
}
