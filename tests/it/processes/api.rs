//! What DESIGN.md fixes of `payments`: others script against it.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{assert_outcome_unknown, refused};
use crate::support::process::{ACME, Disk, GLOBEX, Payments, card};

const PATHS: [&str; 2] = ["/charges", "/payouts"];

async fn open() -> (Disk, Payments) {
    let disk = Disk::new().await;
    let payments = disk.start().await;
    (disk, payments)
}

#[tokio::test]
async fn scenario_01_a_payment_is_created_with_its_place_and_listed_once() {
    let (disk, payments) = open().await;
    for (n, (path, prefix)) in PATHS.into_iter().zip(["ch_", "po_"]).enumerate() {
        let first = payments.pay(path, "k1", &card("tok_visa")).await;
        let paid: Value = serde_json::from_str(&first.body).unwrap();
        let id = paid["id"].as_str().unwrap();
        assert!(id.starts_with(prefix), "{id}");
        assert_eq!(paid, json!({"id": id, "amount": 1999, "currency": "EUR", "status": "succeeded"}));
        assert_eq!((first.status, first.replayed), (201, false));
        assert_eq!(first.location.as_deref(), Some(format!("{path}/{id}").as_str()));
        let retry = payments.pay(path, "k1", &card("tok_visa")).await;
        assert!(retry.replayed);
        assert_eq!((retry.status, &retry.location, &retry.body), (201, &first.location, &first.body));
        assert_eq!(payments.listing(path, ACME).await, std::slice::from_ref(&paid));
        assert!(payments.listing(path, GLOBEX).await.is_empty());
        assert_eq!(disk.count("select count(*) from idem_link where provider = 'gateway'").await, n as i64 + 1);
    }
}

#[tokio::test]
async fn scenario_29_a_declined_card_frees_the_key() {
    let (disk, payments) = open().await;
    for (n, path) in (1..).zip(PATHS) {
        for _ in 0..2 {
            let declined = payments.pay(path, "k1", &card("tok_declined")).await;
            assert_eq!((declined.status, declined.replayed), (402, false), "asked anew");
        }
        let corrected = payments.pay(path, "k1", &card("tok_visa")).await;
        assert_eq!((corrected.status, corrected.replayed, disk.effects().await), (201, false, n));
    }
}

#[tokio::test]
async fn scenario_32_a_final_decline_is_replayed() {
    let (disk, payments) = open().await;
    for (n, path) in (1..).zip(PATHS) {
        let declined = payments.pay(path, "k1", &card("tok_declined_final")).await;
        assert_eq!((declined.status, declined.replayed), (402, false));
        let retry = payments.pay(path, "k1", &card("tok_declined_final")).await;
        assert_eq!((retry.status, retry.replayed, &retry.body), (402, true, &declined.body));
        let other = refused(&payments, path, "k1", &card("tok_visa")).await;
        assert_eq!((other.status, other.slug.as_str()), (422, "idempotency-key-reused"));
        assert_eq!(disk.effects().await, n);
        assert_eq!(payments.listing(path, ACME).await[0]["status"], "declined", "the gateway has it on record");
    }
}

#[tokio::test]
async fn scenario_35_a_gateway_that_was_not_reached_frees_the_key() {
    let (disk, payments) = open().await;
    for (n, path) in (1..).zip(PATHS) {
        for _ in 0..2 {
            let down = payments.pay(path, "k1", &card("tok_gateway_down")).await;
            assert_eq!((down.status, down.replayed), (503, false));
            assert!(down.body.contains("gateway unreachable"), "{}", down.body);
        }
        let retry = payments.pay(path, "k1", &card("tok_visa")).await;
        assert_eq!((retry.status, retry.replayed, disk.effects().await), (201, false, n));
    }
}

#[tokio::test]
async fn scenario_33_no_reply_from_the_gateway_holds_the_key() {
    let (disk, payments) = open().await;
    for (n, path) in (1..).zip(PATHS) {
        let first = payments.pay(path, "k1", &card("tok_fail_after_charge")).await;
        assert_eq!((first.status, first.body.as_str()), (502, r#"{"error":"no reply from the gateway"}"#));
        assert_eq!(disk.effects().await, n);
    }
    for _ in 0..2 {
        assert_outcome_unknown(&payments, "/payouts", "k1", &card("tok_fail_after_charge")).await;
    }
    assert_eq!(disk.effects().await, 2, "and the effect stays one"); // a charge settles itself: see `recovery`
}

#[tokio::test]
async fn scenario_36_a_panic_holds_the_key_and_harms_nobody_else() {
    let (disk, payments) = open().await;
    for (n, path) in (1..).zip(PATHS) {
        let first = refused(&payments, path, "k1", &card("tok_panic")).await;
        assert_eq!((first.status, first.slug.as_str()), (500, "idempotency-body-panicked"));
        assert!(!first.body.to_string().contains("the card asked for it"), "a panic's text is not for clients");
        if path == "/payouts" {
            assert_outcome_unknown(&payments, path, "k1", &card("tok_panic")).await;
        }
        assert_eq!(payments.pay(path, "k2", &card("tok_visa")).await.status, 201);
        assert_eq!(disk.effects().await, 2 * n);
    }
}

#[tokio::test]
async fn clause_13_an_invalid_payment_frees_the_key() {
    let (disk, payments) = open().await;
    for (n, path) in (1..).zip(PATHS) {
        for (amount, currency, card) in
            [(0, "EUR", "tok_visa"), (-5, "EUR", "tok_visa"), (5, "XXX", "tok_visa"), (5, "EUR", "tok_nobody")]
        {
            let invalid = json!({"amount": amount, "currency": currency, "card": card});
            let told = payments.pay(path, "k1", &invalid).await;
            assert_eq!((told.status, told.replayed), (422, false), "{invalid}");
        }
        for unfit in [json!({"amount": "5"}), json!(null)] {
            assert_eq!(payments.pay(path, "k1", &unfit).await.status, 422, "{unfit}");
        }
        assert_eq!(payments.pay(path, "k1", &card("tok_visa")).await.status, 201);
        assert_eq!(disk.effects().await, n);
    }
}

#[tokio::test]
async fn scenario_27_without_a_tenant_nothing_is_looked_up() {
    let (disk, payments) = open().await;
    payments.pay("/charges", "k1", &card("tok_visa")).await;
    for path in PATHS {
        let told = payments.pay_as("sk_test_nobody", path, "k1", &card("tok_visa")).await;
        assert_eq!((told.status, told.replayed), (401, false));
        let post = payments.client().post(payments.url(path)).header("idempotency-key", "k1").json(&card("tok_visa"));
        assert_eq!(post.send().await.unwrap().status(), 401);
        assert_eq!(payments.client().get(payments.url(path)).send().await.unwrap().status(), 401);
    }
    assert_eq!((disk.records().await, disk.effects().await), (1, 1));
}

#[tokio::test]
async fn scenario_12_without_a_key_nothing_runs() {
    let (disk, payments) = open().await;
    for path in PATHS {
        let post = payments.client().post(payments.url(path)).bearer_auth(ACME).json(&card("tok_visa"));
        let told = crate::support::problem(post.send().await.unwrap()).await;
        assert_eq!((told.status, told.slug.as_str()), (400, "idempotency-key-missing"));
    }
    assert_eq!((disk.records().await, disk.effects().await), (0, 0));
}

/// For those who call it, and without a token: what may be retried, how long, and what a retry is told.
#[tokio::test]
async fn the_operations_and_their_rules_can_be_asked_for() {
    let (_disk, payments) = open().await;
    let response = payments.client().get(payments.url("/idempotency")).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"application/json".parse().unwrap())
    );
    let told: Value = response.json().await.unwrap();
    let operations = told["operations"].as_array().unwrap();
    for op in ["charge", "payout"] {
        let operation = operations.iter().find(|operation| operation["op"] == op).expect(op);
        assert_eq!(operation["key"]["name"], "Idempotency-Key");
        assert_eq!((&operation["key"]["required"], &operation["ttl_seconds"]), (&json!(true), &json!(86400)));
        assert_eq!((&operation["scope"], &operation["in_flight"]["rule"]), (&json!("tenant"), &json!("reject")));
    }
    let ops: Vec<_> = operations.iter().map(|operation| operation["op"].as_str().unwrap()).collect();
    assert!(ops.is_sorted(), "{ops:?}");
}

/// Its health and its one line.
#[tokio::test]
async fn clause_23_a_process_starts_and_stops_without_a_fuss() {
    let (_disk, mut payments) = open().await;
    assert_eq!(payments.client().get(payments.url("/healthz")).send().await.unwrap().status(), 200);
    payments.pay("/charges", "k1", &card("tok_visa")).await;
    payments.signal(Signal::TERM);
    assert!(payments.ended().await.success());
    assert_eq!(payments.log(), format!("payments listens on http://{}\n", payments.addr()));
}

#[tokio::test]
async fn clause_23_a_database_that_is_none_of_ours_is_refused_in_words() {
    for url in ["mysql://localhost/shop", "payments.db", ""] {
        let told = Payments::refuses(url, &[]).await;
        assert!(told.contains("DATABASE_URL must begin with `sqlite://` or `postgres://`"), "{told}");
    }
    let told = Payments::refuses("postgres://localhost/shop", &[("DATABASE_POOLER", "session")]).await;
    assert!(told.contains("DATABASE_POOLER is `session`; it can be `transaction`"), "{told}");
}

#[tokio::test]
async fn clause_23_a_setting_that_cannot_be_used_is_named() {
    let disk = Disk::new().await;
    for (name, value) in [("LEASE_SECONDS", "half a minute"), ("ADDR", "nowhere")] {
        // For the backend that is a pooler; a server understands it too, and SQLite has none.
        let told = Payments::refuses(disk.url(), &[(name, value), ("DATABASE_POOLER", "transaction")]).await;
        assert!(told.contains(&format!("{name} is `{value}`")), "{told}");
    }
}

mod on_sqlite {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::support::Place;

    #[tokio::test]
    async fn clause_23_the_files_are_for_this_user_s_eyes() {
        let disk = Disk::over(Place::sqlite());
        let payments = disk.start().await;
        payments.pay("/charges", "k1", &card("tok_visa")).await;
        for name in ["payments.db", "payments.db-wal", "payments.db-shm"] {
            let mode = std::fs::metadata(disk.file(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
}
