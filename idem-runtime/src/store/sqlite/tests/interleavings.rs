//! Pairs of verbs at one record: see `store::tests::interleavings`. All wait here, for the one write lock.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::*;
use crate::{
    conformance::{
        recorded::{end_of, start_of},
        steps::LEASE,
    },
    store::{
        Finish, Purge, Store,
        sqlite::{purge, recover, sql, step, verbs},
        tests::interleavings::{Act, STEP, Said, Stage, interleavings},
    },
};

interleavings!(Two::open);

/// A connection whose transaction is held, and a store.
struct Two {
    place: Place,
    first: Mutex<SqliteConnection>,
    sqlite: SqliteStore,
    store: Arc<dyn Store>,
}

impl Two {
    async fn open() -> Self {
        let place = Place::new();
        let sqlite = place.migrated().await;
        let first = Mutex::new(place.raw().await);
        Self { place, first, store: Arc::new(sqlite.clone()), sqlite }
    }
}

#[async_trait::async_trait]
impl Clock for Two {
    async fn pass(&self, by: Duration) {
        Shifted(self.place.file()).pass(by).await;
    }
}

#[async_trait::async_trait]
impl Stage for Two {
    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn goes_by(&self) -> bool {
        false
    }

    async fn hold(&self, act: &Act) -> Said {
        let mut first = self.first.lock().await;
        sqlx::raw_sql(sql::BEGIN).execute(&mut *first).await.unwrap();
        match act {
            Act::Claim(claim) => {
                let mut claimed = verbs::claim(&mut first, std::slice::from_ref(claim), false).await.unwrap();
                Said::Claimed(claimed.remove(0))
            }
            Act::Finish(claim) | Act::Hold(claim) => {
                let finish = Finish { record: claim.record, attempt: claim.attempt, outcome: act.outcome() };
                Said::Finished(verbs::finish(&mut first, &[finish]).await.unwrap().remove(0))
            }
            Act::Renew(claim) => {
                Said::Renewed(verbs::renew(&mut first, &[act.renewal(claim)], LEASE).await.unwrap().remove(0))
            }
            Act::Resolve(resolve) => Said::Resolved(verbs::resolve(&mut first, resolve).await.unwrap()),
            Act::Recover => Said::Recovered(recover::recover(&mut first, &Act::recovery()).await.unwrap().len()),
            Act::StartStep(claim) => Said::started(&step::start(&mut first, &[start_of(claim, STEP)]).await.unwrap()),
            Act::EndStep(claim) => Said::Ended(step::end(&mut first, &[end_of(claim, STEP, "p1")]).await.unwrap()[0]),
            Act::Purge => Said::Purged(purge::purge(&mut first, &Purge::at_any_time(1_000)).await.unwrap().records),
        }
    }

    /// It has looked, as far as it looks first, and taken the connection on which it then waits for the lock.
    async fn until_it_waits(&self) {
        let taken = async {
            while self.sqlite.writer.num_idle() > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(5), taken).await.expect("it does not wait");
    }

    async fn end(&self, commit: bool) {
        let end = if commit { "commit" } else { "rollback" };
        sqlx::raw_sql(end).execute(&mut *self.first.lock().await).await.unwrap();
    }
}
