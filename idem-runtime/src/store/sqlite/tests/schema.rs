//! The tables, and the checks at start.

use std::collections::BTreeSet;

use super::*;
use crate::{
    conformance::steps::{claim, own},
    store::{Claim, Store, sqlite::sql},
};

#[tokio::test]
async fn check_asks_for_migrations_and_is_content_with_them() {
    let place = Place::new();
    let store = place.store().await;
    let faults = store.check().await.unwrap();
    assert!(faults.len() == 1 && faults[0].contains("store.migrate().await?"), "{faults:?}");
    assert_eq!(store.claim(&[claim("a")]).await.unwrap_err().kind, StoreErrorKind::Setup);
    store.migrate().await.unwrap();
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    let fence = own(&store, &claim("a")).await.fence;
    assert_eq!(fence.0, 1, "the probe drew none");
}

#[tokio::test]
async fn tables_of_a_newer_version_are_left_alone() {
    let place = Place::new();
    let store = place.migrated().await;
    place.execute("update idem_meta set schema = 99").await;
    let faults = store.check().await.unwrap();
    assert!(faults.len() == 1 && faults[0].contains("schema 99"), "{faults:?}");
    let error = store.migrate().await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Setup);
    assert!(error.source.to_string().contains("schema 99"));
    assert_eq!(place.number("select schema from idem_meta").await, 99);
}

#[tokio::test]
async fn check_finds_all_faults_at_once() {
    let place = Place::new();
    place.migrated().await;
    let read_only = SqliteStore::with_options(place.options().pragma("query_only", "on")).await.unwrap();
    let faults = read_only.check().await.unwrap();
    assert!(faults.len() == 1 && faults[0].contains("query_only"), "{faults:?}");

    let other = Place::new();
    other.store().await;
    let store = SqliteStore::with_options(other.options().pragma("query_only", "on")).await.unwrap();
    let mut writer = store.writer.acquire().await.unwrap();
    sqlx::raw_sql("pragma synchronous = off; pragma foreign_keys = off").execute(&mut *writer).await.unwrap();
    drop(writer);
    let faults = store.check().await.unwrap();
    let found: Vec<bool> = ["synchronous", "foreign_keys", "store.migrate()", "query_only"]
        .iter()
        .map(|word| faults.iter().any(|fault| fault.contains(word)))
        .collect();
    assert_eq!(found, [true; 4], "{faults:?}");
    assert_eq!(other.number("select count(*) from sqlite_schema").await, 0, "the probe left nothing");
}

#[tokio::test]
async fn case_50_migrations_of_the_application_are_not_touched() {
    let place = Place::new();
    let store = place.store().await;
    place
        .execute(
            "create table _sqlx_migrations (version integer primary key, description text);
             insert into _sqlx_migrations values (1, 'users'), (2, 'orders'), (3, 'stock');
             create table users (id integer); pragma user_version = 3;",
        )
        .await;
    for _ in 0..2 {
        store.migrate().await.unwrap();
    }
    own(&store, &claim("a")).await;
    store.migrate().await.unwrap();
    assert_eq!(place.number("select count(*) from _sqlx_migrations").await, 3);
    assert_eq!(place.number("pragma user_version").await, 3);
    assert_eq!(place.number("select schema from idem_meta").await, 1);
    assert_eq!(place.number("select fence from idem_meta").await, 1, "a second migration changes nothing");
    let mut raw = place.raw().await;
    let tables: Vec<String> =
        sqlx::query_scalar("select name from sqlite_schema where type = 'table'").fetch_all(&mut raw).await.unwrap();
    let ours = BTreeSet::from([
        "idem_meta",
        "idem_key",
        "idem_response",
        "idem_link",
        "idem_input",
        "idem_step",
        "idem_order",
        "idem_audit",
        "idem_unfinished",
    ]);
    let theirs = BTreeSet::from(["_sqlx_migrations", "users"]);
    assert_eq!(tables.iter().map(String::as_str).collect::<BTreeSet<_>>(), &ours | &theirs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn case_50_eight_at_once_open_and_migrate_a_new_file() {
    for _ in 0..5 {
        let place = Place::new();
        let url = place.url();
        let starts: Vec<_> = (0..8)
            .map(|_| {
                let url = url.clone();
                tokio::spawn(async move {
                    let store = SqliteStore::connect(&url).await?;
                    store.migrate().await?;
                    store.check().await
                })
            })
            .collect();
        for start in starts {
            assert_eq!(start.await.unwrap().unwrap(), Vec::<String>::new());
        }
        assert_eq!(place.number("select count(*) from idem_meta").await, 1);
    }
}

#[tokio::test]
async fn case_35_the_database_itself_keeps_records_apart() {
    const INSERT: &str = "insert into idem_key (kid, scope, op, state, reason, fence, attempt, attempts, epoch, fp_alg,
        fp, lease_until, created_at, expires_at, guard_until)
        values (?1, 'acme', 'charge', 1, 0, 1, zeroblob(16), 1, 0, 1, zeroblob(32), 0, 0, 0, 0)";
    let place = Place::new();
    place.migrated().await;
    let (mut one, mut two) = (place.raw().await, place.raw().await);
    let insert = |key| sqlx::query(INSERT).bind(claim(key).record.as_bytes().to_vec());
    insert("a").execute(&mut one).await.unwrap();
    let twice = insert("a").execute(&mut two).await.unwrap_err();
    assert!(twice.as_database_error().unwrap().is_unique_violation(), "{twice}");
    insert("b").execute(&mut two).await.unwrap();
    let typed = sqlx::raw_sql("update idem_key set state = 'done'").execute(&mut one).await;
    assert!(typed.is_err(), "strict");
}

#[tokio::test]
async fn case_44_deadlines_are_milliseconds_of_the_databases_clock() {
    let place = Place::new();
    let store = place.migrated().await;
    let two_seconds = Claim { lease: Duration::from_secs(2), ..claim("a") };
    own(&store, &two_seconds).await;
    let columns: (i64, i64, i64, i64) = sqlx::query_as(
        "select lease_until - now, created_at - now, expires_at - now, guard_until - now
           from idem_key, (select cast(unixepoch('now', 'subsec') * 1000 as integer) as now)",
    )
    .fetch_one(&mut place.raw().await)
    .await
    .unwrap();
    let (lease, created, expires, guard) = columns;
    for (found, meant) in [(lease, 2_000), (created, 0), (expires, 24 * 3_600_000), (guard, 48 * 3_600_000)] {
        assert!(found.abs_diff(meant) <= 200, "{found} is not about {meant}");
    }
}

#[tokio::test]
async fn claims_completions_and_renewals_find_their_records_by_the_index() {
    let place = Place::new();
    place.migrated().await;
    let mut raw = place.raw().await;
    let all: [&'static _; 4] = [&sql::LOOK, &sql::CLAIM, &sql::FINISH, &sql::RENEW];
    for (statements, rows) in all.into_iter().flat_map(|statements| [(statements, 1), (statements, 20)]) {
        for statement in statements.text(rows).0.split(';') {
            let plan = sqlx::query(sqlx::AssertSqlSafe(format!("explain query plan {statement}")));
            let steps = plan.fetch_all(&mut raw).await.unwrap();
            let steps: Vec<String> = steps.iter().map(|row| sqlx::Row::get(row, "detail")).collect();
            let scanned =
                ["SCAN k", "SCAN p", "SCAN idem_"].map(|scan| steps.iter().any(|step| step.starts_with(scan)));
            assert_eq!(scanned, [false; 3], "{steps:?} of {statement}");
        }
    }
}
