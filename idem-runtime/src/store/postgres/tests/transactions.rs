//! Bodies that write into the database of the records, over the user's pool.

use sqlx::{Postgres, postgres::PgPoolOptions};

use super::*;
use crate::{
    conformance::{
        recorded::{end_of, is, noted, start_of},
        steps::{QUARANTINE, claim, found, own, reply, rerunnable, resolve, retry, run},
        transactions::Body,
    },
    state::Reason,
    store::{
        Begin, Begun, Claim, Claimed, Commit, Committed, Finish, Found, OpenTransaction, Outcome, Resolution,
        StepBegun, Store, open::Open,
    },
};

mod prepared {
    use super::*;
    store_conformance!(bodies fresh);

    async fn fresh() -> ((), PostgresStore, Place) {
        let place = place().await;
        ((), place.store(), place)
    }
}

mod simple {
    use super::*;
    store_conformance!(bodies fresh);

    async fn fresh() -> ((), PostgresStore, Place) {
        let place = place().await;
        ((), place.store().with_simple_protocol(), place)
    }
}

async fn place() -> Place {
    let place = Place::new();
    place.migrated().await;
    place.execute("create table work (n integer)").await;
    place
}

async fn send(transaction: &mut OpenTransaction, sql: String) -> Result<(), sqlx::Error> {
    let open = transaction.downcast_mut::<Open<Postgres>>().unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut **open).await.map(drop)
}

#[async_trait::async_trait]
impl Body for Place {
    async fn write(&self, transaction: &mut OpenTransaction) {
        send(transaction, format!("insert into {}.work values (1)", self.schema)).await.unwrap();
    }
    async fn written(&self) -> u64 {
        self.number("select count(*) from work").await.try_into().unwrap()
    }
    async fn commit(&self, transaction: &mut OpenTransaction) -> bool {
        send(transaction, "commit".into()).await.is_ok()
    }
    async fn roll_back(&self, transaction: &mut OpenTransaction) {
        send(transaction, "rollback".into()).await.unwrap();
    }
    async fn cut_off(&self, transaction: &mut OpenTransaction) -> bool {
        let open = transaction.downcast_mut::<Open<Postgres>>().unwrap();
        let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut **open).await.unwrap();
        let cut = sqlx::query_scalar("select pg_terminate_backend($1, 5000)").bind(pid);
        cut.fetch_one(&mut self.raw().await).await.unwrap()
    }
}

/// The store's own connections are made by the pool's options, but are not set up by the program.
#[tokio::test]
async fn check_looks_at_the_sessions_that_bodies_get() {
    let place = place().await;
    for (set, word) in [
        ("set synchronous_commit = off", "synchronous_commit"),
        ("set default_transaction_read_only = on", "default_transaction_read_only"),
        ("set session_replication_role = replica", "session_replication_role"),
    ] {
        let set_up = PgPoolOptions::new().after_connect(move |connection, _| {
            Box::pin(async move { sqlx::raw_sql(set).execute(connection).await.map(drop) })
        });
        let store = PostgresStore::new(&set_up.connect_lazy_with(place.options.clone()));
        let store = store.with_schema(&place.schema).unwrap();
        assert_eq!(store.check().await.unwrap(), [""; 0]);
        let faults = store.check_transactions().await.unwrap();
        assert!(faults.len() == 1 && faults[0].contains("of the pool") && faults[0].contains(word), "{faults:?}");
    }
    assert_eq!(place.store().check_transactions().await.unwrap(), [""; 0]);
    let isolated = place.options.clone().options([("default_transaction_isolation", "serializable")]);
    let store = place.store_with(isolated);
    assert_eq!(store.check_transactions().await.unwrap(), [""; 0]);
    let claim = claim("a");
    let begin = Begin { claim: Some(claim), limit: Duration::from_secs(5), savepoint: false, order: None };
    let Begun::Open(_, mut transaction) = store.begin(&begin).await.unwrap() else { panic!("nobody was there") };
    let open = transaction.downcast_mut::<Open<Postgres>>().unwrap();
    let level: String = sqlx::query_scalar("show transaction_isolation").fetch_one(&mut **open).await.unwrap();
    assert_eq!(level, "read committed");
}

/// To take over what is there is planned as on the store's own connections, and the body's statements as the program has set.
#[tokio::test]
async fn a_body_plans_as_its_program_has_set() {
    const SET: &str = "select concat_ws(' ', current_setting('plan_cache_mode'), current_setting('enable_seqscan'),
                                        current_setting('enable_hashjoin'), current_setting('enable_mergejoin'))";
    let place = place().await;
    let set = [("plan_cache_mode", "force_custom_plan"), ("enable_hashjoin", "off")];
    for (options, expected) in
        [(place.options.clone(), "auto on on on"), (place.options.clone().options(set), "force_custom_plan on off on")]
    {
        let store = place.store_with(options);
        for key in ["c", "d"] {
            run(&store, key, Outcome::Released(Reason::Status)).await;
        }
        for (key, savepoint) in [("a", false), ("b", true), ("c", false), ("d", true)] {
            let claim = claim(key);
            let begin = Begin { claim: Some(claim), limit: Duration::from_secs(5), savepoint, order: None };
            let Begun::Open(_, mut transaction) = store.begin(&begin).await.unwrap() else {
                panic!("nobody was there")
            };
            let open = transaction.downcast_mut::<Open<Postgres>>().unwrap();
            let planned: String = sqlx::query_scalar(SET).fetch_one(&mut **open).await.unwrap();
            assert_eq!(planned, expected);
        }
    }
}

/// Whoever is cut off leaves a statement behind.
#[tokio::test]
async fn a_statement_of_a_body_has_its_limit_unless_the_program_says_one() {
    let place = place().await;
    for (options, expected) in
        [(place.options.clone(), "5s"), (place.options.clone().options([("statement_timeout", "7000")]), "7s")]
    {
        let store = place.store_with(options);
        run(&store, "taken over", Outcome::Released(Reason::Status)).await;
        for claim in [Some(claim("new")), Some(claim("taken over")), None] {
            let begin = Begin { claim, limit: Duration::from_secs(5), savepoint: false, order: None };
            let Begun::Open(_, mut transaction) = store.begin(&begin).await.unwrap() else {
                panic!("nobody was there")
            };
            let open = transaction.downcast_mut::<Open<Postgres>>().unwrap();
            let limit: String = sqlx::query_scalar("show statement_timeout").fetch_one(&mut **open).await.unwrap();
            assert_eq!(limit, expected);
        }
    }
}

/// Its own ROLLBACK gives the record to whoever comes, whose answer is not its.
#[tokio::test]
async fn case_63_a_body_that_has_rolled_back_does_not_write_over_anothers_answer() {
    let place = place().await;
    for store in [place.store(), place.store().with_simple_protocol()] {
        let key = format!("{:?}", store.protocol);
        let late = claim(&key);
        let begin = Begin { claim: Some(late.clone()), limit: Duration::from_secs(5), savepoint: false, order: None };
        let Begun::Open(_, mut transaction) = store.begin(&begin).await.unwrap() else { panic!("nobody was there") };
        place.roll_back(&mut transaction).await;
        run(&store, &key, Outcome::Done(reply("another's"))).await;
        let outcome = Outcome::Done(reply("late"));
        let finish = Finish { record: late.record, attempt: late.attempt, outcome };
        let commit = Commit { finish: Some(finish), keeps_rows: true, links: Vec::new() };
        let committed = store.commit(transaction, &commit).await.unwrap();
        assert!(matches!(committed, Committed::Lost), "{committed:?}");
        let kept = place.number("select count(*) from idem_key where body = convert_to('late', 'UTF8')").await;
        assert_eq!(kept, 0);
        found!(retry(&store, &key).await, Claimed::Found(Found::Replay(_)));
    }
}

/// A trigger that runs within the COMMIT: whether a crash right after it loses the row.
const NOTE: &str = "
    create table noted (word text);
    create function note() returns trigger language plpgsql as
      $$ begin execute format('insert into %I.noted values (current_setting(''synchronous_commit''))', tg_table_schema);
         return null; end $$;
    create constraint trigger note after insert on work deferrable initially deferred for each row execute function note()";

#[tokio::test]
async fn a_body_cannot_make_its_commit_less_durable() {
    let place = place().await;
    place.execute(NOTE).await;
    let off = place.store_with(place.options.clone().options([("synchronous_commit", "off")]));
    for store in [place.store(), place.store().with_simple_protocol(), off.clone(), off.with_simple_protocol()] {
        for claim in [Some(claim(&format!("{:p}", &raw const store))), None] {
            let begin = Begin { claim: claim.clone(), limit: Duration::from_secs(5), savepoint: false, order: None };
            let Begun::Open(_, mut transaction) = store.begin(&begin).await.unwrap() else {
                panic!("nobody was there")
            };
            send(&mut transaction, "set local synchronous_commit = off".to_owned()).await.unwrap();
            place.write(&mut transaction).await;
            let finish = claim.map(|claim| Finish {
                record: claim.record,
                attempt: claim.attempt,
                outcome: Outcome::Done(reply("x")),
            });
            let commit = Commit { finish, keeps_rows: true, links: Vec::new() };
            let committed = store.commit(transaction, &commit).await.unwrap();
            assert!(matches!(committed, Committed::Stored { .. }), "{committed:?}");
        }
        place.execute("delete from idem_key").await;
    }
    assert_eq!(place.number("select count(*) from noted where word = 'on'").await, 8);
    assert_eq!(place.number("select count(*) from noted").await, 8);
}

#[tokio::test]
async fn a_step_cannot_make_its_commit_less_durable() {
    let place = place().await;
    place.execute(NOTE).await;
    let off = place.store_with(place.options.clone().options([("synchronous_commit", "off")]));
    let stores = [place.store(), place.store().with_simple_protocol(), off.clone(), off.with_simple_protocol()];
    for (n, store) in stores.into_iter().enumerate() {
        let owner = claim(&n.to_string());
        own(&store, &owner).await;
        let mut transaction = open_step(&store, &owner).await;
        send(&mut transaction, "set local synchronous_commit = off".to_owned()).await.unwrap();
        place.write(&mut transaction).await;
        let committed = store.commit_step(transaction, &end_of(&owner, "order", "o1")).await.unwrap();
        assert!(matches!(committed, Committed::Stored { .. }), "{committed:?}");
    }
    assert_eq!(place.number("select count(*) from noted where word = 'on'").await, 4);
    assert_eq!(place.number("select count(*) from noted").await, 4);
}

async fn open_step(store: &PostgresStore, owner: &Claim) -> OpenTransaction {
    let begun = store.begin_step(&start_of(owner, "order"), Duration::from_secs(5)).await.unwrap();
    let StepBegun::Open(transaction) = begun else { panic!("{begun:?}") };
    transaction
}

/// It holds the step and not the record, so that it can be taken over; its successor runs the step when nothing of it can
/// be committed any more.
#[tokio::test]
async fn scenario_85_the_open_step_of_a_zombie_is_undone_and_its_successor_waits_for_that() {
    let place = place().await;
    let store = place.store();
    let zombie = Claim { lease: Duration::ZERO, ..rerunnable("a") };
    own(&store, &zombie).await;
    let mut transaction = open_step(&store, &zombie).await;
    place.write(&mut transaction).await;
    let owner = rerunnable("a");
    assert!(own(&store, &owner).await.continues());
    let waits = tokio::spawn({
        let (store, owner) = (store.clone(), owner.clone());
        async move { open_step(&store, &owner).await }
    });
    until_somebody_waits(&place).await;
    assert!(!waits.is_finished());
    let committed = store.commit_step(transaction, &end_of(&zombie, "order", "zombie")).await.unwrap();
    assert!(matches!(committed, Committed::Lost), "{committed:?}");
    let mut transaction = waits.await.unwrap();
    place.write(&mut transaction).await;
    store.commit_step(transaction, &end_of(&owner, "order", "o2")).await.unwrap();
    assert_eq!(place.written().await, 1);
    assert_eq!(noted(&store, "a").await, [is("order", Some("o2"))]);
}

/// What is inserted and committed while a release waits for the record is not in the snapshot that it began with.
#[tokio::test]
async fn scenario_85_what_a_zombies_transaction_commits_is_not_released() {
    let place = place().await;
    let store = place.store();
    place.execute(SLOW_COMMIT).await;
    let zombie = Claim { lease: Duration::ZERO, ..rerunnable("a") };
    own(&store, &zombie).await;
    let mut transaction = open_step(&store, &zombie).await;
    place.write(&mut transaction).await;
    place.pass(QUARANTINE).await;
    let seen = store.find(zombie.record).await.unwrap().unwrap().fence;
    let mut barrier = place.raw().await;
    sqlx::raw_sql("begin; lock table barrier in exclusive mode").execute(&mut barrier).await.unwrap();
    let commits = tokio::spawn({
        let store = store.clone();
        async move { store.commit_step(transaction, &end_of(&zombie, "order", "zombie")).await.unwrap() }
    });
    until_so_many_wait(&place, 1).await;
    let releases = tokio::spawn({
        let store = store.clone();
        async move { resolve(&store, "a", seen, Resolution::Release).await }
    });
    until_so_many_wait(&place, 2).await;
    sqlx::raw_sql("rollback").execute(&mut barrier).await.unwrap();
    let committed = commits.await.unwrap();
    assert!(matches!(committed, Committed::Stored { .. }), "{committed:?}");
    assert!(!releases.await.unwrap(), "it has happened");
    assert_eq!((place.written().await, noted(&store, "a").await), (1, vec![is("order", Some("zombie"))]));
    assert!(resolve(&store, "a", seen, Resolution::Resume).await);
}

/// A COMMIT after an insert into `work` waits at a barrier.
const SLOW_COMMIT: &str = "
    create table barrier ();
    create function wait() returns trigger language plpgsql as
      $$ begin execute format('lock table %I.barrier in row exclusive mode', tg_table_schema); return null; end $$;
    create constraint trigger slow after insert on work deferrable initially deferred for each row execute function wait()";

/// Postgres counts such times in 32 bits of milliseconds.
#[tokio::test]
async fn a_body_may_take_longer_than_postgres_can_count() {
    let place = place().await;
    let limit = Duration::from_secs(3650 * 24 * 3600);
    let begin = Begin { claim: Some(claim("a")), limit, savepoint: false, order: None };
    let begun = place.store().begin(&begin).await.unwrap();
    assert!(matches!(begun, Begun::Open(..)), "{begun:?}");
}
