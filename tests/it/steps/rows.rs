//! Steps whose rows and result are one commit.

use idem_runtime::state::State as Stands;

use super::workshop::{Do, name, open};
use crate::support::{Backend, Fault, Verb, refusal};

#[tokio::test]
async fn clause_25_a_failed_transaction_leaves_nothing_and_runs_again() {
    let shop = open().await;
    let runs = [vec![Do::Run(name("a")), Do::RowFailed(name("user"))], vec![Do::Run(name("a")), Do::Row(name("user"))]];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 502);
    assert_eq!((shop.rows().await.len(), shop.worked("k").await.state), (0, Stands::Resumable));
    assert_eq!(shop.work("/work", "k", &runs).await.status, 201);
    assert_eq!(shop.rows().await, ["user"]);
}

/// The body's own COMMIT is refused by the database. Postgres undoes all then; SQLite leaves the transaction open, and the step
/// ends as if nothing had been said.
#[tokio::test]
async fn clause_25_a_body_cannot_commit_a_step_by_itself() {
    let shop = open().await;
    let runs = [
        vec![Do::Run(name("a")), Do::Sql(name("user"), name("commit"))],
        vec![Do::Run(name("a")), Do::Sql(name("user"), name("select 1"))],
    ];
    let first = shop.work("/work", "k", &runs).await.status;
    assert_eq!(first, if shop.place.backend() == Backend::Sqlite { 201 } else { 409 });
    assert!(shop.probe.log().iter().any(|effect| effect.starts_with("refused: ")), "{:?}", shop.probe.log());
    assert_eq!(shop.rows().await.len(), usize::from(first == 201));
    // What a body has written after it is not known, so nothing runs again by itself.
    assert_eq!(shop.work("/work", "k", &runs).await.status, if first == 201 { 201 } else { 409 });
    assert_eq!(shop.rows().await.len(), usize::from(first == 201));
    assert_eq!(shop.worked("k").await.state, if first == 201 { Stands::Done } else { Stands::InDoubt });
}

/// Whether a COMMIT without a reply counted is looked up.
#[tokio::test]
async fn scenario_54_the_reply_to_a_steps_commit_is_lost() {
    let shop = open().await;
    shop.store.tell(Verb::CommitStep, Fault::ReplyLost(1));
    let done = shop.work("/work", "k", &[vec![Do::Row(name("user")), Do::Run(name("a"))]]).await;
    assert_eq!((done.status, &*done.body), (201, "user written; a done"));
    assert_eq!(shop.rows().await, ["user"]);
}

#[tokio::test]
async fn clause_21_a_step_whose_commit_was_not_sent_is_run_again() {
    let shop = open().await;
    let runs = [vec![Do::Row(name("user"))]];
    shop.store.tell(Verb::CommitStep, Fault::Fails(1));
    let told = shop.post("/work", "k").json(&shop.plan(&runs)).send().await.unwrap();
    assert_eq!(refusal(told).await, (503, "idempotency-store-unavailable".to_owned()));
    assert_eq!(shop.worked("k").await.state, Stands::Resumable);
    assert_eq!(shop.work("/work", "k", &runs).await.status, 201);
    assert_eq!(shop.rows().await, ["user"]);
}

/// On SQLite a step inside of a transaction would wait for the writer that it holds itself.
#[tokio::test]
async fn clause_25_a_step_inside_of_a_transaction_does_not_wait_for_itself() {
    let shop = open().await;
    let nested = shop.work("/work", "k", &[vec![Do::Nested(name("outer"), name("inner"))]]).await;
    assert!(matches!(nested.status, 201 | 500), "{nested:?}");
}
