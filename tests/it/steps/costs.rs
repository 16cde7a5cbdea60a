//! What steps cost: calls of the store, of which each but a read is a commit. The table in `idem_runtime::modes` says so.

use std::time::Duration;

use super::workshop::{Do, name, open_with};
use crate::support::{Shop, Verb};

/// No lease is renewed, however slow the machine.
async fn open() -> Shop {
    open_with(|builder| builder.lease(Duration::from_secs(60))).await
}

/// (claim and finish, start and end of a step, begin and commit of one, reads of steps and renewals)
fn calls(shop: &Shop) -> [[usize; 2]; 4] {
    let calls = |verbs: [Verb; 2]| verbs.map(|verb| shop.store.calls(verb));
    [
        calls([Verb::Claim, Verb::Finish]),
        calls([Verb::StartSteps, Verb::EndSteps]),
        calls([Verb::BeginStep, Verb::CommitStep]),
        [shop.store.calls(Verb::Steps), shop.store.calls(Verb::Renew)],
    ]
}

#[tokio::test]
async fn clause_25_each_run_and_once_is_two_commits_and_each_transaction_one() {
    let shop = open().await;
    assert_eq!(shop.work("/work", "none", &[vec![]]).await.status, 201);
    assert_eq!(calls(&shop), [[1, 1], [0, 0], [0, 0], [0, 0]], "as held mode");
    let steps = vec![Do::Run(name("a")), Do::Once(name("b")), Do::OnceOrFind(name("c")), Do::Row(name("d"))];
    assert_eq!(shop.work("/work", "all", &[steps]).await.status, 201);
    assert_eq!(calls(&shop), [[2, 2], [3, 3], [1, 1], [0, 0]]);
}

/// A run that continues another reads the steps once; what is recorded costs it nothing more.
#[tokio::test]
async fn clause_25_a_recorded_step_costs_nothing() {
    let shop = open().await;
    let steps = vec![Do::Run(name("a")), Do::Once(name("b")), Do::Row(name("d"))];
    let runs = [[steps.clone(), vec![Do::Answer(500)]].concat(), steps];
    assert_eq!(shop.work("/work", "k", &runs).await.status, 500);
    assert_eq!(calls(&shop), [[1, 1], [2, 2], [1, 1], [0, 0]]);
    assert_eq!(shop.work("/work", "k", &runs).await.status, 201);
    assert_eq!(calls(&shop), [[2, 2], [2, 2], [1, 1], [1, 0]]);
    assert!(shop.work("/work", "k", &runs).await.replayed);
    assert_eq!(calls(&shop), [[3, 2], [2, 2], [1, 1], [1, 0]], "a replay is one read");
}
