//! The stores without a server, and what wraps a store, against the suite that every store passes.

mod broken;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(super) mod interleavings;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(super) mod purging;

use super::*;
use crate::{conformance::Clock, store_conformance};

/// Moves tokio's clock, which is the memory store's.
struct Paused;

#[async_trait::async_trait]
impl Clock for Paused {
    async fn pass(&self, by: Duration) {
        tokio::time::advance(by).await;
    }
}

mod memory {
    use super::*;
    use crate::conformance::steps::{claim, found, own, retry};

    async fn fresh() -> ((), MemoryStore) {
        ((), MemoryStore::volatile())
    }

    async fn paused() -> ((), MemoryStore, Paused) {
        tokio::time::pause();
        ((), MemoryStore::volatile(), Paused)
    }

    store_conformance!(fresh);
    store_conformance!(timed paused);
    store_conformance!(steps paused);

    #[tokio::test]
    async fn clones_share_their_records() {
        let store = MemoryStore::volatile();
        own(&store, &claim("k")).await;
        found!(retry(&store.clone(), "k").await, Claimed::Found(Found::InFlight { .. }));
        assert!(!format!("{store:?}").contains("charge"));
    }
}

mod shared {
    use std::sync::Arc;

    use super::*;

    async fn fresh() -> ((), Arc<MemoryStore>) {
        ((), Arc::new(MemoryStore::volatile()))
    }

    async fn paused() -> ((), Arc<dyn Store>, Paused) {
        tokio::time::pause();
        ((), Arc::new(MemoryStore::volatile()), Paused)
    }

    store_conformance!(fresh);
    store_conformance!(timed paused);
    store_conformance!(steps paused);
}

/// As the runtime uses it.
mod batched {
    use std::sync::Arc;

    use super::*;
    use crate::batching::tests::batched;

    async fn fresh() -> ((), Arc<dyn Store>) {
        ((), batched(MemoryStore::volatile()))
    }

    async fn paused() -> ((), Arc<dyn Store>, Paused) {
        tokio::time::pause();
        ((), batched(MemoryStore::volatile()), Paused)
    }

    store_conformance!(fresh);
    store_conformance!(timed paused);
    store_conformance!(steps paused);
}

mod wrapped {
    use super::*;

    /// What a wrapper that counts or logs is made of: each verb is passed on.
    struct PassesOn<S>(S);

    #[async_trait::async_trait]
    impl<S: Store> Store for PassesOn<S> {
        async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>, StoreError> {
            self.0.claim(claims).await
        }
        async fn peek(&self, peeks: &[Peek]) -> Result<Vec<Option<Found>>, StoreError> {
            self.0.peek(peeks).await
        }
        async fn finish(&self, finishes: &[Finish]) -> Result<Vec<Finished>, StoreError> {
            self.0.finish(finishes).await
        }
        async fn renew(&self, renewals: &[Renewal], lease: Duration) -> Result<Vec<Renewed>, StoreError> {
            self.0.renew(renewals, lease).await
        }
        async fn link(&self, links: &[Link]) -> Result<(), StoreError> {
            self.0.link(links).await
        }
        async fn find(&self, record: RecordId) -> Result<Option<Record>, StoreError> {
            self.0.find(record).await
        }
        async fn list(&self, filter: &Filter, page: Page) -> Result<Vec<Record>, StoreError> {
            self.0.list(filter, page).await
        }
        async fn linked(&self, provider: &str, id: &str) -> Result<Vec<Record>, StoreError> {
            self.0.linked(provider, id).await
        }
        async fn resolve(&self, resolve: &Resolve) -> Result<bool, StoreError> {
            self.0.resolve(resolve).await
        }
        async fn recover(&self, recover: &Recover) -> Result<Vec<Recovering>, StoreError> {
            self.0.recover(recover).await
        }
        async fn put_off(&self, put_off: &PutOff) -> Result<bool, StoreError> {
            self.0.put_off(put_off).await
        }
        async fn interrupted(&self, resume: &Resume) -> Result<Vec<Resuming>, StoreError> {
            self.0.interrupted(resume).await
        }
        async fn survey(&self) -> Result<Survey, StoreError> {
            self.0.survey().await
        }
        async fn due(&self) -> Result<Due, StoreError> {
            self.0.due().await
        }
        async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
            self.0.purge(purge).await
        }
        async fn strip(&self, strip: &Strip) -> Result<Stripped, StoreError> {
            self.0.strip(strip).await
        }
        async fn start_steps(&self, starts: &[StartStep]) -> Result<Vec<Started>, StoreError> {
            self.0.start_steps(starts).await
        }
        async fn end_steps(&self, ends: &[EndStep]) -> Result<Vec<StepEnded>, StoreError> {
            self.0.end_steps(ends).await
        }
        async fn steps(&self, record: RecordId) -> Result<Vec<Step>, StoreError> {
            self.0.steps(record).await
        }
        async fn check(&self) -> Result<Vec<String>, StoreError> {
            self.0.check().await
        }
    }

    async fn fresh() -> ((), PassesOn<MemoryStore>) {
        ((), PassesOn(MemoryStore::volatile()))
    }

    async fn paused() -> ((), PassesOn<MemoryStore>, Paused) {
        tokio::time::pause();
        ((), PassesOn(MemoryStore::volatile()), Paused)
    }

    store_conformance!(fresh);
    store_conformance!(timed paused);
    store_conformance!(steps paused);
}
