//! Many keys from their claim to their purge, on a server of its own where nobody else writes: what each of them costs.

use super::{server::Server, *};
use crate::{
    conformance::steps::{GUARD, claim},
    store::{Claim, Claimed, Finish, Finished, Found, Outcome, Purge, Store, StoredResponse},
};

const KEYS: usize = 20_000;
const SLICE: usize = 100;
/// With bodies of 512 bytes. Pages are filled, so nearly every completion writes the indexes once more: 75 bytes of WAL a key more than
/// with pages that keep room for it, and 80 of disk less.
const WAL_PER_KEY: i64 = 1_450;
const BYTES_PER_KEY: i64 = 1_050;

const LSN: &str = "select (pg_current_wal_insert_lsn() - '0/0')::int8";
const UPDATES: &str = "select n_tup_upd from pg_stat_user_tables where relid = 'idem_key'::regclass";
const HOT: &str = "select n_tup_hot_upd from pg_stat_user_tables where relid = 'idem_key'::regclass";
const BYTES: &str = "select pg_total_relation_size('idem_key')";

fn slices() -> impl Iterator<Item = Vec<Claim>> {
    (0..KEYS).step_by(SLICE).map(|from| (from..from + SLICE).map(|n| claim(&n.to_string())).collect())
}

fn end(claim: &Claim) -> Finish {
    let response =
        StoredResponse { status: Some(201), headers: "location: /1".into(), body: Some(vec![b'x'; 512].into()) };
    Finish { record: claim.record, attempt: claim.attempt, outcome: Outcome::Done(response) }
}

async fn replay_all(store: &PostgresStore) {
    for claims in slices() {
        let claimed = store.claim(&claims).await.unwrap();
        assert!(claimed.iter().all(|claimed| matches!(claimed, Claimed::Found(Found::Replay(_)))));
    }
}

#[tokio::test]
async fn scenario_103_many_keys_from_their_claim_to_their_purge() {
    // What a key costs does not depend on when it reaches the disk.
    let server =
        Server::start(&["fsync=off", "autovacuum=off", "wal_level=minimal", "max_wal_senders=0", "max_wal_size=4GB"]);
    let place = Place::on(&server.url);
    let store = place.migrated().await.with_connections(1);
    let mut raw = place.raw().await;

    let before = number(&mut raw, LSN).await;
    for claims in slices() {
        assert!(store.claim(&claims).await.unwrap().iter().all(|claimed| matches!(claimed, Claimed::Owner(_))));
        let finished = store.finish(&claims.iter().map(end).collect::<Vec<_>>()).await.unwrap();
        assert!(finished.iter().all(|finished| matches!(finished, Finished::Stored { .. })));
    }
    let wal = (number(&mut raw, LSN).await - before) / KEYS as i64;
    let bytes = number(&mut raw, BYTES).await / KEYS as i64;

    replay_all(&store).await; // the first reads clean up the pages that the writes before them left, which is written
    let before = number(&mut raw, LSN).await;
    replay_all(&store).await;
    assert_eq!(number(&mut raw, LSN).await, before, "replays write no WAL");

    drop(store); // its session's counters are added up when it ends
    for _ in 0..100 {
        if number(&mut raw, UPDATES).await >= KEYS as i64 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (updates, hot) = (number(&mut raw, UPDATES).await, number(&mut raw, HOT).await);
    println!("{wal} B of WAL and {bytes} B per key; {hot} of {updates} updates touched no index");
    assert_eq!(updates, KEYS as i64);
    assert!(wal <= WAL_PER_KEY, "{wal} B of WAL per key");
    assert!(bytes <= BYTES_PER_KEY, "{bytes} B per key");

    place.pass(GUARD * 2).await;
    let store = place.store();
    let start = std::time::Instant::now();
    let mut purges = Vec::new();
    loop {
        let purged = store.purge(&Purge::at_any_time(1_000)).await.unwrap();
        purges.push(purged.records);
        if !purged.more {
            break;
        }
    }
    println!("purged in {:?}", start.elapsed());
    assert_eq!(purges.iter().sum::<u32>() as usize, KEYS);
    assert!(purges.iter().all(|records| *records <= 1_000));
    assert_eq!(number(&mut raw, "select count(*) from idem_key").await, 0);
}
