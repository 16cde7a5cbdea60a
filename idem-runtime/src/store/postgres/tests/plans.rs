//! Each statement of the verbs that requests use: its plan is made once, while the tables are small, and must be good when
//! they are not.

use sqlx::{Row as _, postgres::PgPoolOptions};

use super::*;
use crate::{
    conformance::{
        recorded::{end_of, start_of},
        steps::{LEASE, claim, reply, run},
    },
    state::Reason,
    store::{Attempt, Begin, Begun, Claim, Commit, Committed, Finish, Link, Outcome, Renewal, Store},
};

const TABLES: [&str; 4] = ["idem_key", "idem_link", "idem_step", "idem_input"];

/// All of them, with slices of so many.
async fn ask(store: &PostgresStore, round: &str, records: usize) {
    let claims: Vec<Claim> = (0..records).map(|n| claim(&format!("{round}-{n}"))).collect();
    store.claim(&claims).await.unwrap();
    let end = |claim: &Claim, outcome| Finish { record: claim.record, attempt: claim.attempt, outcome };
    let released = || Outcome::Released(Reason::Status);
    store.finish(&claims.iter().map(|claim| end(claim, released())).collect::<Vec<_>>()).await.unwrap();
    let again = |claim: &Claim| Claim { attempt: Attempt::random(), ..claim.clone() };
    let claims: Vec<Claim> = claims.iter().map(again).collect();
    store.claim(&claims).await.unwrap(); // takes over
    store.peek(&claims.iter().map(Claim::peek).collect::<Vec<_>>()).await.unwrap();
    store.start_steps(&claims.iter().map(|claim| start_of(claim, "pay")).collect::<Vec<_>>()).await.unwrap();
    store.end_steps(&claims.iter().map(|claim| end_of(claim, "pay", "x")).collect::<Vec<_>>()).await.unwrap();
    store.steps(claims[0].record).await.unwrap();
    let renewal = |claim: &Claim| Renewal { record: claim.record, attempt: claim.attempt };
    store.renew(&claims.iter().map(renewal).collect::<Vec<_>>(), LEASE).await.unwrap();
    let epoch = store.find(claims[0].record).await.unwrap().unwrap().epoch;
    let link = |claim: &Claim| Link {
        record: claim.record,
        epoch,
        attempt: claim.attempt,
        provider: "stripe".into(),
        id: format!("ch_{}", claim.attempt),
    };
    store.link(&claims.iter().map(link).collect::<Vec<_>>()).await.unwrap();
    let ends: Vec<Finish> = claims.iter().map(|claim| end(claim, Outcome::Done(reply("x")))).collect();
    store.finish(&ends).await.unwrap();
    store.finish(&ends).await.unwrap(); // looks at what is ended
}

/// The plans that the store's only session has made and kept.
async fn plans(store: &PostgresStore) -> Vec<String> {
    let mut connection = store.verbs().connections.lend().await;
    let plans = plans_of(&mut connection).await;
    connection.give_back();
    plans
}

async fn plans_of(session: &mut PgConnection) -> Vec<String> {
    const PREPARED: &str = "select name, cardinality(parameter_types) as arguments from pg_prepared_statements
                             where statement like '%idem_%'";
    let prepared = sqlx::raw_sql(PREPARED).fetch_all(&mut *session).await.unwrap();
    let mut plans = Vec::new();
    for row in prepared {
        let (name, arguments): (String, i32) = (row.get("name"), row.get("arguments"));
        let arguments = vec!["null"; usize::try_from(arguments).unwrap()].join(", ");
        let explain = AssertSqlSafe(format!("explain execute \"{name}\" ({arguments})"));
        let plan = sqlx::raw_sql(explain).fetch_all(&mut *session).await.unwrap();
        plans.push(plan.iter().map(|line| line.get::<String, _>(0)).collect::<Vec<_>>().join("\n"));
    }
    plans
}

async fn are_good(store: &PostgresStore) {
    let plans = plans(store).await;
    assert!(plans.len() >= 10, "{}", plans.len());
    scan_nothing(&plans);
}

fn scan_nothing(plans: &[String]) {
    for plan in plans {
        for table in TABLES {
            let scan = plan.lines().find(|line| line.contains(&format!("Seq Scan on {table} ")));
            assert!(scan.is_none(), "{plan}");
        }
        assert!(!plan.contains("Hash Cond") && !plan.contains("Merge Cond"), "{plan}");
    }
}

#[tokio::test]
async fn clause_46_plans_stay_good_for_slices_of_one_and_of_many_when_the_tables_have_grown() {
    let place = Place::new();
    let store = place.migrated().await.with_connections(1);
    ask(&store, "while the tables are empty", 1).await;
    are_good(&store).await;
    place.execute(MANY).await;
    for (round, records) in [("one", 1), ("many", 100)] {
        ask(&store, round, records).await;
        are_good(&store).await;
    }
    place.execute("analyze").await; // and so makes all plans anew
    for (round, records) in [("one again", 1), ("many again", 100)] {
        ask(&store, round, records).await;
        are_good(&store).await;
    }
}

/// Over the program's pool, whose sessions are set as the server has it, and plan anew as it sees fit: after five times a plan stays,
/// made while one page is read quicker than an index.
#[tokio::test]
async fn clause_46_a_tx_goes_by_its_indexes_when_the_tables_have_grown() {
    let place = Place::new();
    place.migrated().await;
    let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(place.options.clone());
    let store = PostgresStore::new(&pool).with_schema(&place.schema).unwrap();
    for n in 0..10 {
        place.execute("vacuum (full, analyze) idem_key").await; // one page
        transact(&store, &n.to_string()).await;
    }
    place.execute(MANY).await;
    transact(&store, "grown").await;
    let mut session = pool.acquire().await.unwrap();
    let plans = plans_of(&mut session).await;
    assert_eq!(plans.len(), 3, "{plans:?}");
    scan_nothing(&plans);
}

async fn transact(store: &PostgresStore, key: &str) {
    run(store, &format!("{key}, taken over"), Outcome::Released(Reason::Status)).await;
    for claim in [claim(key), claim(&format!("{key}, taken over"))] {
        transact_one(store, claim).await;
    }
}

async fn transact_one(store: &PostgresStore, claim: Claim) {
    let begin = Begin { claim: Some(claim.clone()), limit: LEASE, savepoint: false, order: None };
    let Begun::Open(_, transaction) = store.begin(&begin).await.unwrap() else { panic!("nobody was there") };
    let finish = Finish { record: claim.record, attempt: claim.attempt, outcome: Outcome::Done(reply("x")) };
    let commit = Commit { finish: Some(finish), keeps_rows: true, links: Vec::new() };
    let committed = store.commit(transaction, &commit).await.unwrap();
    assert!(matches!(committed, Committed::Stored { .. }), "{committed:?}");
}

const MANY: &str = "
    insert into idem_key (kid, scope, op, state, fence, epoch, attempt, fp_alg, fp, lease_until, created_at, expires_at, guard_until)
    select gen_random_uuid(), 'acme', 'charge', 2, 1, 1, gen_random_uuid(), 1, '', now(), now(), now() + '1 day', now() + '2 days'
      from generate_series(1, 20000);
    insert into idem_step (kid, epoch, step, kind, input, started_at, nr)
    select kid, 1, 'pay', 1, null, now(), 1 from idem_key on conflict do nothing";
