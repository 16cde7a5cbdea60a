//! `GET /metrics` of `payments`: what a dashboard is written against.

use std::collections::BTreeMap;

use crate::support::process::{Disk, Payments, card};

/// What Prometheus would read: the kind of each metric, and the value of each series.
struct Scraped {
    kinds: BTreeMap<String, String>,
    series: BTreeMap<String, f64>,
}

async fn scrape(payments: &Payments) -> Scraped {
    let response = payments.client().get(payments.url("/metrics")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/plain"));
    let (mut kinds, mut series) = (BTreeMap::new(), BTreeMap::new());
    for line in response.text().await.unwrap().lines().filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["#", "TYPE", name, kind] => assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}"),
            ["#", "HELP", name, _, ..] => assert!(name.starts_with("idem_"), "{line}"),
            [name, value] => assert!(series.insert(name.to_owned(), value.parse().unwrap()).is_none(), "{line}"),
            _ => panic!("{line}"),
        }
    }
    Scraped { kinds, series }
}

#[tokio::test]
async fn case_104_the_metrics_of_a_process_have_the_documented_names() {
    let disk = Disk::new().await;
    let payments = disk.start().await;
    for path in ["/charges", "/charges", "/payouts"] {
        assert_eq!(payments.pay(path, "s3cret", &card("tok_visa")).await.status, 201);
    }
    let Scraped { kinds, series } = scrape(&payments).await;
    for (name, kind) in [
        ("idem_requests_total", "counter"),
        ("idem_claim_seconds", "histogram"),
        ("idem_body_seconds", "histogram"),
        ("idem_finish_seconds", "histogram"),
        ("idem_in_flight", "gauge"),
    ] {
        assert_eq!(kinds.get(name).map(String::as_str), Some(kind), "{name}");
    }
    for (name, value) in [
        ("idem_requests_total{op=\"charge\",outcome=\"executed\"}", 1.0),
        ("idem_requests_total{op=\"charge\",outcome=\"replayed\"}", 1.0),
        ("idem_requests_total{op=\"payout\",outcome=\"executed\"}", 1.0),
        ("idem_in_flight{op=\"charge\"}", 0.0),
        ("idem_body_seconds_count{op=\"charge\"}", 1.0),
        ("idem_body_seconds_bucket{op=\"charge\",le=\"60\"}", 1.0),
        ("idem_claim_seconds_count{op=\"payout\"}", 1.0),
        ("idem_finish_seconds_count{op=\"charge\"}", 1.0),
    ] {
        assert_eq!(series.get(name), Some(&value), "{name} in {series:?}");
    }
    assert!(!series.keys().any(|name| name.contains("s3cret")), "{series:?}");
}
