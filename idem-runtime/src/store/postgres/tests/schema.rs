//! The tables, and the checks at start.

use super::*;
use crate::conformance::steps::{claim, own};
use crate::store::{Store, StoreErrorKind};

#[tokio::test]
async fn check_asks_for_migrations() {
    let place = Place::new();
    for store in [place.store(), place.store().with_simple_protocol()] {
        let faults = store.check().await.unwrap();
        assert!(faults.iter().any(|fault| fault.contains("store.migrate().await?")), "{faults:?}");
        assert_eq!(store.claim(&[claim("a")]).await.unwrap_err().kind, StoreErrorKind::Setup);
    }
    place.store().migrate().await.unwrap();
    for store in [place.store(), place.store().with_simple_protocol()] {
        let faults = store.check().await.unwrap();
        assert!(!faults.iter().any(|fault| fault.contains("migrate")), "{faults:?}");
        own(&store, &claim(&format!("{:?}", store.protocol))).await;
    }
}

#[tokio::test]
async fn tables_of_a_newer_version_are_left_alone() {
    let place = Place::new();
    let store = place.migrated().await;
    place.execute("update idem_meta set schema = 99").await;
    let faults = store.check().await.unwrap();
    assert!(faults.iter().any(|fault| fault.contains("schema 99")), "{faults:?}");
    let error = store.migrate().await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Setup);
    assert!(error.source.to_string().contains("schema 99"));
    assert_eq!(place.number("select schema::int8 from idem_meta").await, 99);
}

#[tokio::test]
async fn case_50_migrations_of_the_application_are_not_touched() {
    let place = Place::new();
    let store = place.migrated().await;
    own(&store, &claim("a")).await;
    store.migrate().await.unwrap();
    const OURS: &str = "select count(*) from pg_tables where schemaname = current_schema and tablename like 'idem\\_%'";
    assert_eq!(place.number(OURS).await, 9);
    assert_eq!(place.number("select count(*) from pg_tables where schemaname = current_schema").await, 9);
    assert_eq!(place.number("select count(*) from idem_key").await, 1, "a second migration changes nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn case_50_eight_at_once_migrate() {
    for _ in 0..5 {
        let place = Place::new();
        let starts: Vec<_> = (0..8)
            .map(|_| {
                let store = place.store();
                tokio::spawn(async move { store.migrate().await })
            })
            .collect();
        for start in starts {
            start.await.unwrap().unwrap();
        }
        assert_eq!(place.number("select count(*) from idem_meta").await, 1);
    }
}

#[tokio::test]
async fn a_role_without_the_right_to_create_may_use_what_is_there() {
    let place = Place::new();
    place.migrated().await;
    let role = format!("role_{}", place.schema);
    let schema = &place.schema;
    let grants = format!(
        "create role {role} login; grant usage on schema {schema} to {role};
         grant select, insert, update, delete on all tables in schema {schema} to {role};
         grant usage on all sequences in schema {schema} to {role}"
    );
    sqlx::raw_sql(AssertSqlSafe(grants)).execute(&mut place.raw().await).await.unwrap();
    let store = place.store_with(place.options.clone().username(&role));
    store.migrate().await.unwrap();
    own(&store, &claim("a")).await;
    let drop = format!("drop owned by {role}; drop role {role}");
    sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut place.raw().await).await.unwrap();
}

#[tokio::test]
async fn only_an_identifier_is_a_schema() {
    let store = Place::new().store();
    for name in ["", "Idem", "1a", "a b", "a\"b", "a;b", "a.b", "ä", &"a".repeat(64)] {
        assert_eq!(store.clone().with_schema(name).unwrap_err().kind, StoreErrorKind::Setup, "{name}");
    }
    for name in ["idem", "_", "a1_b", "table", &"a".repeat(63)] {
        assert!(store.clone().with_schema(name).is_ok(), "{name}");
    }
    let reserved = store.with_schema("table").unwrap();
    reserved.migrate().await.unwrap();
    own(&reserved, &claim(&fastrand::u64(..).to_string())).await;
}

#[tokio::test]
async fn texts_may_hold_anything() {
    use crate::{
        conformance::steps::find,
        store::{Claim, Link},
    };
    let place = Place::new();
    for store in [place.migrated().await, place.store().with_simple_protocol()] {
        let name = format!("{:?}", store.protocol);
        let odd = "a\0b'c\\d\"e$1 ä€𝄞";
        let claim = Claim { scope: odd.into(), ..claim(&name) };
        let epoch = own(&store, &claim).await.epoch;
        let link = Link { record: claim.record, epoch, attempt: claim.attempt, provider: "p".into(), id: odd.into() };
        store.link(&[link.clone(), link]).await.unwrap();
        assert_eq!(find(&store, &name).await.links, [("p".into(), odd.replace('\0', "\u{fffd}"))]);
    }
}
