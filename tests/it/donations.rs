//! `payments`' form: whatever a browser does with it, one donation. What a real one does is in `in_a_browser`.

mod browser;
mod in_a_browser;

use reqwest::{Client, redirect::Policy};
use serde_json::{Value, json};

use crate::support::{
    Seen,
    process::{Disk, Payments},
    seen,
};

/// Follows no redirect.
fn client() -> Client {
    Client::builder().no_proxy().redirect(Policy::none()).build().unwrap()
}

/// The hidden key of the form in a page.
fn key(page: &str) -> String {
    let (_, rest) = page.split_once(r#"name="key" value=""#).unwrap_or_else(|| panic!("no form in {page}"));
    rest.split_once('"').unwrap().0.to_owned()
}

async fn open(payments: &Payments) -> String {
    let page = client().get(payments.url("/donate")).send().await.unwrap();
    assert_eq!(
        (page.status().as_u16(), &page.headers()["content-type"]),
        (200, &"text/html; charset=utf-8".parse().unwrap())
    );
    // With `no-store` a browser's back button may show another key; without `private` a proxy could share one out.
    assert_eq!(page.headers()["cache-control"], "private, no-cache");
    key(&page.text().await.unwrap())
}

async fn give(payments: &Payments, key: &str, amount: &str) -> Seen {
    let form = [("key", key), ("amount", amount)];
    seen(client().post(payments.url("/donations")).form(&form).send().await.unwrap()).await
}

/// Every donation that the API lists: nobody's token is needed.
async fn given(payments: &Payments) -> Vec<Value> {
    let response = client().get(payments.url("/donations")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let mut listing: Value = response.json().await.unwrap();
    serde_json::from_value(listing["items"].take()).unwrap()
}

#[tokio::test]
async fn scenario_23_a_form_sent_again_is_one_donation_and_leads_to_the_same_thanks() {
    let disk = Disk::new().await;
    let payments = disk.start().await;
    let key = open(&payments).await;
    let first = give(&payments, &key, "1999").await;
    let location = first.location.unwrap();
    let id = location.strip_prefix("/donations/").unwrap();
    assert!(first.status == 303 && !first.replayed && id.starts_with("do_"), "{} {location}", first.status);
    let again = give(&payments, &key, "1999").await;
    assert_eq!((again.status, again.replayed, again.location.as_deref()), (303, true, Some(&*location)));
    assert_eq!(given(&payments).await, [json!({"id": id, "amount": 1999, "currency": "EUR"})]);
    let thanks = seen(client().get(payments.url(&location)).send().await.unwrap()).await;
    assert!(thanks.status == 200 && thanks.body.contains("You gave 19.99 EUR"), "{}", thanks.body);
    assert_eq!(client().get(payments.url("/donations/do_1")).send().await.unwrap().status(), 404);
}

/// Clicks that nobody counted, on two machines.
#[tokio::test]
async fn scenario_23_a_form_sent_many_times_at_once_is_one_donation() {
    let disk = Disk::new().await;
    let (one, other) = (disk.start().await, disk.start().await);
    let key = open(&one).await;
    let clicks = (0..10).map(|click| give(if click % 2 == 0 { &one } else { &other }, &key, "500"));
    let shown = futures_util::future::join_all(clicks).await;
    let places: Vec<_> = shown.iter().map(|seen| (seen.status, &seen.location)).collect();
    assert!(places.iter().all(|place| *place == (303, &shown[0].location)), "{places:?}");
    assert_eq!((given(&one).await.len(), disk.count("select count(*) from donations").await), (1, 1));
}

#[tokio::test]
async fn scenario_23_another_amount_in_a_used_form_is_refused_in_words_and_with_a_new_form() {
    let disk = Disk::new().await;
    let payments = disk.start().await;
    let used = open(&payments).await;
    give(&payments, &used, "500").await;
    let refused = give(&payments, &used, "9900").await;
    assert_eq!((refused.status, refused.location), (422, None));
    assert!(refused.body.contains("You have sent this form before, with another amount"), "{}", refused.body);
    assert_eq!(given(&payments).await.len(), 1);
    assert_eq!(give(&payments, &used, "500").await.status, 303, "the first one stands");
    let fresh = key(&refused.body);
    assert_ne!(fresh, used);
    assert_eq!(give(&payments, &fresh, "9900").await.status, 303);
    let amounts: Vec<_> = given(&payments).await.iter().map(|donation| donation["amount"].clone()).collect();
    assert_eq!(amounts, [500, 9900]);
}

#[tokio::test]
async fn scenario_23_pages_have_keys_of_their_own() {
    let disk = Disk::new().await;
    let payments = disk.start().await;
    for _ in 0..2 {
        give(&payments, &open(&payments).await, "500").await;
    }
    assert_eq!(given(&payments).await.len(), 2, "whoever fills in two pages means two");
}

/// Short keys would be other people's as well.
#[tokio::test]
async fn clause_11_a_form_without_a_page_s_key_or_an_amount_gives_nothing() {
    let disk = Disk::new().await;
    let payments = disk.start().await;
    let own = open(&payments).await;
    for (key, amount) in [("1", "500"), ("", "500"), (&own, ""), (&own, "all"), (&own, "0"), (&own, "-5")] {
        assert_eq!(give(&payments, key, amount).await.status, 422, "{key:?}, {amount:?}");
    }
    assert_eq!((given(&payments).await.len(), disk.records().await), (0, 0));
    assert_eq!(give(&payments, &own, "500").await.status, 303, "nothing has happened under its key");
}
