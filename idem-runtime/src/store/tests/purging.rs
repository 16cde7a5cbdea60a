//! Purges beside claims and replays, for the stores that several processes share.

use std::{
    collections::HashMap,
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
};

use futures_util::future::join_all;

use super::*;
use crate::{
    conformance::steps::{GUARD, TTL, claim, claim_one, finish, found, is_owner, reply, run},
    state::State,
};

/// Keys that are due are purged and claimed again at once, in rounds: each is claimed by one, and stays. `stores` stand
/// for processes.
pub(in crate::store) async fn reclaimed(stores: &[Arc<dyn Store>], clock: &dyn Clock, rounds: usize, keys: usize) {
    for n in 0..keys {
        run(&stores[0], &n.to_string(), Outcome::Done(reply("x"))).await;
    }
    for _ in 0..rounds {
        clock.pass(GUARD * 2).await;
        let purges = stores.iter().map(|store| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let mut removed = 0;
                for _ in 0..10 {
                    removed += store.purge(&Purge::at_any_time(keys as u32 / 4)).await.unwrap().records;
                }
                removed
            })
        });
        let claimers = stores.iter().map(|store| {
            let store = Arc::clone(store);
            let mut claims: Vec<Claim> = (0..keys).map(|n| claim(&n.to_string())).collect();
            fastrand::shuffle(&mut claims);
            tokio::spawn(async move {
                let mut owned = Vec::new();
                for claims in claims.chunks(5) {
                    let claimed = store.claim(claims).await.unwrap();
                    let won = claims.iter().zip(&claimed).filter(|(_, claimed)| is_owner(claimed));
                    owned.extend(won.map(|(claim, _)| claim.clone()));
                }
                owned
            })
        });
        let (purges, claimers): (Vec<_>, Vec<_>) = (purges.collect(), claimers.collect());
        let owned: Vec<Claim> = join_all(claimers).await.into_iter().flat_map(Result::unwrap).collect();
        let removed: u32 = join_all(purges).await.into_iter().map(Result::unwrap).sum();
        assert!(removed as usize <= keys, "one more than once");
        let owners: HashMap<_, _> = owned.iter().map(|claim| (claim.record, claim.attempt)).collect();
        assert_eq!((owned.len(), owners.len()), (keys, keys), "each key has one owner");
        for (record, attempt) in owners {
            let found = stores[0].find(record).await.unwrap().expect("a live claim was purged");
            assert_eq!((found.state, found.attempt), (State::InFlight, attempt));
        }
        for claim in &owned {
            found!(finish(&stores[0], claim, Outcome::Done(reply("y"))).await, Finished::Stored { .. });
        }
    }
}

/// Retries while their records run out, are stripped and are purged: the old answer whole, a refusal, or a fresh run.
pub(in crate::store) async fn replayed(stores: &[Arc<dyn Store>], clock: &dyn Clock, rounds: usize) {
    const KEYS: usize = 20;
    for round in 0..rounds {
        let key = move |n: usize| format!("{round}-{n}");
        for n in 0..KEYS {
            run(&stores[0], &key(n), Outcome::Done(reply("old"))).await;
        }
        let last = stores[0].find(claim(&key(KEYS - 1)).record).await.unwrap().unwrap().epoch;
        let over = Arc::new(AtomicBool::new(false));
        let tidy = {
            let (store, over) = (Arc::clone(&stores[0]), Arc::clone(&over));
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    store.strip(&Strip { late: GUARD, back: GUARD, after: None, limit: 1_000 }).await.unwrap();
                    store.purge(&Purge::at_any_time(3)).await.unwrap();
                }
            })
        };
        let retries: Vec<_> = stores
            .iter()
            .map(|store| {
                let (store, over) = (Arc::clone(store), Arc::clone(&over));
                tokio::spawn(async move {
                    let mut runs = 0;
                    while !over.load(Ordering::Relaxed) {
                        for n in 0..KEYS {
                            let claim = claim(&key(n));
                            match claim_one(&store, &claim).await {
                                Claimed::Owner(_) => {
                                    let end = finish(&store, &claim, Outcome::Done(reply("new"))).await;
                                    found!(end, Finished::Stored { .. });
                                    runs += 1;
                                }
                                Claimed::Found(Found::Replay(replay)) => {
                                    assert!([reply("old"), reply("new")].contains(&replay.response), "{replay:?}");
                                }
                                Claimed::Found(Found::Expired | Found::InFlight { .. }) => {}
                                Claimed::Found(half) => panic!("half: {half:?}"),
                            }
                        }
                    }
                    runs
                })
            })
            .collect();
        clock.pass(TTL).await; // from here on they are refused, and stripped
        clock.pass(GUARD).await; // and run afresh, or are purged first
        let fresh = async |n| {
            let found = stores[0].find(claim(&key(n)).record).await.unwrap();
            found.is_some_and(|record| record.state == State::Done && record.epoch > last)
        };
        for n in 0..KEYS {
            for _ in 0..100 {
                if fresh(n).await {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        over.store(true, Ordering::Relaxed);
        tidy.await.unwrap();
        let runs: usize = join_all(retries).await.into_iter().map(Result::unwrap).sum();
        assert!(runs <= KEYS, "each ran afresh at most once: {runs}");
    }
}
