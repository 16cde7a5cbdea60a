//! What lists cost.

use super::*;
use crate::{
    conformance::steps::{record, run, survey},
    state::{Reason, State},
    store::{Filter, Outcome, Page, Store, postgres::list},
};

/// Where nearly all is settled, a list of doubts must not read what is.
#[tokio::test]
async fn a_list_of_doubts_does_not_read_the_table() {
    let place = Place::new();
    let store = place.migrated().await.with_connections(1);
    run(&store, "k", Outcome::InDoubt(Reason::Panic)).await;
    place.pass(Duration::from_secs(5)).await;
    survey(&store).await;
    place
        .execute(
            "insert into idem_key (kid, scope, op, state, fence, epoch, attempt, fp_alg, fp, lease_until, created_at, expires_at, guard_until)
             select gen_random_uuid(), 'acme', 'charge', 2, 1, 1, gen_random_uuid(), 1, '', now(), now() - interval '1 hour',
                    now() + '1 day', now() + '2 days'
               from generate_series(1, 20000);
             analyze idem_key; analyze idem_open",
        )
        .await;
    let filter = Filter::default().op("charge").state(State::InDoubt).older_than(Duration::from_secs(1));
    let found = store.list(&filter, Page::default()).await.unwrap();
    assert_eq!(found.iter().map(|found| found.id).collect::<Vec<_>>(), [record("k")]);
    let args = list::arguments(&filter, Page::default());
    let explain = super::super::argument::rendered(&store.verbs().statements.list_open, &args);
    let plan: Vec<String> = sqlx::query_scalar(AssertSqlSafe(format!("explain {explain}")))
        .fetch_all(&mut *store.verbs().connections.lend().await)
        .await
        .unwrap();
    let plan = plan.join("\n");
    assert!(!plan.contains("Seq Scan on idem_key"), "{plan}");
}
