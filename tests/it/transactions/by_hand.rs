//! Bodies that end their transaction by themselves, or keep it.

use serde_json::json;

use super::shop::open;
use crate::support::{Backend, Problem, eventually, problem, seen};

#[tokio::test]
async fn clause_16_a_commit_of_the_bodys_own_is_refused_by_the_database() {
    let shop = open().await;
    let steps = [shop.write("early"), json!({ "sql": "commit" }), json!({ "answer": 500 })];
    let first = seen(shop.order("/orders", "k", &steps).await).await;
    assert_eq!(first.status, 500);
    assert!(shop.probe.log()[0].starts_with("refused: "), "{:?}", shop.probe.log());
    assert_eq!((shop.orders().await, shop.records().await), (0, 0));
    // The connection is not in the pool in the state that this left it in.
    for n in 0..5 {
        assert!(seen(shop.order("/orders", &format!("next-{n}"), &[shop.write("next")]).await).await.ran());
    }
}

/// SQLite leaves the transaction open, and the body's success is one. Postgres undoes it, and the answer says so.
#[tokio::test]
async fn clause_16_a_success_after_a_commit_of_the_bodys_own_is_all_or_nothing() {
    let shop = open().await;
    let answer = shop.order("/orders", "k", &[shop.write("early"), json!({ "sql": "commit" })]).await;
    if shop.place.backend() == Backend::Sqlite {
        assert!(seen(answer).await.ran());
        assert_eq!((shop.orders().await, shop.state().await), (1, 2));
    } else {
        needs_a_person(&problem(answer).await);
        assert_eq!((shop.orders().await, shop.records().await), (0, 0));
    }
}

#[tokio::test]
async fn clause_16_what_is_written_after_a_rollback_of_the_bodys_own_is_reported() {
    let shop = open().await;
    for (rows, status) in [(1, 201), (2, 500)] {
        let steps =
            [shop.write("undone"), json!({ "sql": "rollback" }), shop.write("stays"), json!({ "answer": status })];
        needs_a_person(&problem(shop.order("/orders", "k", &steps).await).await);
        assert_eq!((shop.orders().await, shop.records().await), (rows, 0), "{status}");
    }
    for n in 0..5 {
        assert!(seen(shop.order("/orders", &format!("next-{n}"), &[shop.write("next")]).await).await.ran());
    }
}

/// A retry would write again what was committed by itself.
pub(super) fn needs_a_person(told: &Problem) {
    assert_eq!((told.status, told.slug.as_str()), (500, "idempotency-transaction-failed"));
    assert_eq!((&told.body["retry"], &told.body["safe_new_key"]), (&json!("operator"), &json!(false)));
    assert!(told.body["state"].is_null() && told.body["operation"].is_string(), "{}", told.body);
}

#[tokio::test]
async fn clause_16_a_refusal_that_is_kept_after_a_rollback_of_the_bodys_own_is_reported() {
    let shop = open().await;
    let steps = [shop.write("undone"), json!({ "sql": "rollback" }), shop.write("stays"), json!({ "answer": 422 })];
    needs_a_person(&problem(shop.order("/keeping", "k", &steps).await).await);
    assert_eq!((shop.orders().await, shop.records().await), (1, 0));
}

#[tokio::test]
async fn clause_16_a_statement_that_failed_undoes_a_success_where_the_database_does() {
    let shop = open().await;
    let steps = [shop.write("book"), json!({ "sql": "no such statement" })];
    let answer = shop.order("/orders", "k", &steps).await;
    if shop.place.backend() == Backend::Sqlite {
        assert!(seen(answer).await.ran());
        assert_eq!((shop.orders().await, shop.records().await), (1, 1));
    } else {
        is_undone(&problem(answer).await);
        assert_eq!((shop.orders().await, shop.records().await), (0, 0));
    }
    let answer = shop.client.post(shop.url("/optional")).bearer_auth("acme").json(&steps).send().await.unwrap();
    if shop.place.backend() == Backend::Sqlite {
        assert_eq!((answer.status().as_u16(), shop.orders().await), (201, 2));
    } else {
        assert_eq!(problem(answer).await.slug, "idempotency-transaction-failed");
        assert_eq!(shop.orders().await, 0);
    }
}

/// A fault of the program, of which nothing is kept.
fn is_undone(told: &Problem) {
    assert_eq!((told.status, told.slug.as_str()), (500, "idempotency-transaction-failed"));
    assert_eq!((&told.body["retry"], &told.body["state"]), (&json!("same-key"), &json!("released")));
}

/// The driver sends the ROLLBACK of the inner one with the next statement.
#[tokio::test]
async fn clause_16_a_transaction_of_the_bodys_own_that_it_drops_is_undone_alone() {
    let shop = open().await;
    let steps = [shop.write("book"), json!({ "nest": "dropped" })];
    assert!(seen(shop.order("/orders", "k", &steps).await).await.ran());
    let answer = shop.client.post(shop.url("/optional")).bearer_auth("acme").json(&steps).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), shop.orders().await), (201, 2));
}

#[tokio::test]
async fn clause_16_a_transaction_of_the_bodys_own_that_it_leaves_open_undoes_all() {
    let shop = open().await;
    is_undone(&problem(shop.order("/orders", "k", &[shop.write("book"), json!({ "nest": "left" })]).await).await);
    // On Postgres the closed session may take a moment to end.
    eventually(async || seen(shop.order("/orders", "k", &[shop.write("second")]).await).await.ran()).await;
    assert_eq!(shop.orders().await, 1);
}

#[tokio::test]
async fn clause_16_a_transaction_that_is_kept_is_never_committed() {
    let shop = open().await;
    let told = problem(shop.order("/orders", "k", &[shop.write("kept"), json!("keep")]).await).await;
    is_undone(&told);
    // It is undone when whoever kept it drops it.
    eventually(async || seen(shop.order("/orders", "k", &[shop.write("second")]).await).await.ran()).await;
    assert_eq!(shop.orders().await, 1);
}
