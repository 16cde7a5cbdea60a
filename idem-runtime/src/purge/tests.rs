//! What a pass does when the clock jumps under it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

use super::*;
use crate::{
    key::RecordId,
    store::{
        Claim, Claimed, Due, Filter, Finish, Finished, Found, Link, Page, Peek, Purged, PutOff, Record, Recover,
        Recovering, Renewal, Renewed, Resolve, Stripped, Survey,
    },
};

/// A store whose clock is sound at each look, and has jumped when a batch comes, while `jumped`.
#[derive(Default)]
struct Jumpy {
    jumped: AtomicBool,
    strips: AtomicU32,
}

#[async_trait::async_trait]
impl Store for Jumpy {
    async fn due(&self) -> Result<Due, StoreError> {
        Ok(Due { since_purge: Duration::ZERO, records: 0, of: 0 })
    }
    async fn purge(&self, _: &Purge) -> Result<Purged, StoreError> {
        Ok(Purged { refused: self.jumped.load(SeqCst), ..Purged::default() })
    }
    async fn strip(&self, _: &Strip) -> Result<Stripped, StoreError> {
        self.strips.fetch_add(1, SeqCst);
        Ok(Stripped { answers: 1, ..Stripped::default() })
    }
    async fn claim(&self, _: &[Claim]) -> Result<Vec<Claimed>, StoreError> {
        unreachable!()
    }
    async fn peek(&self, _: &[Peek]) -> Result<Vec<Option<Found>>, StoreError> {
        unreachable!()
    }
    async fn finish(&self, _: &[Finish]) -> Result<Vec<Finished>, StoreError> {
        unreachable!()
    }
    async fn renew(&self, _: &[Renewal], _: Duration) -> Result<Vec<Renewed>, StoreError> {
        unreachable!()
    }
    async fn link(&self, _: &[Link]) -> Result<(), StoreError> {
        unreachable!()
    }
    async fn find(&self, _: RecordId) -> Result<Option<Record>, StoreError> {
        unreachable!()
    }
    async fn list(&self, _: &Filter, _: Page) -> Result<Vec<Record>, StoreError> {
        unreachable!()
    }
    async fn linked(&self, _: &str, _: &str) -> Result<Vec<Record>, StoreError> {
        unreachable!()
    }
    async fn resolve(&self, _: &Resolve) -> Result<bool, StoreError> {
        unreachable!()
    }
    async fn recover(&self, _: &Recover) -> Result<Vec<Recovering>, StoreError> {
        unreachable!()
    }
    async fn put_off(&self, _: &PutOff) -> Result<bool, StoreError> {
        unreachable!()
    }
    async fn survey(&self) -> Result<Survey, StoreError> {
        unreachable!()
    }
    async fn check(&self) -> Result<Vec<String>, StoreError> {
        unreachable!()
    }
}

#[tokio::test]
async fn scenario_58_a_batch_that_the_clock_forbids_ends_the_pass() {
    let store = Arc::new(Jumpy::default());
    let mut purger = Purger {
        store: store.clone(),
        every: Duration::from_secs(60),
        store_timeout: Duration::from_secs(5),
        lates: vec![Duration::from_secs(3600)],
        confirmed: Arc::default(),
        trust: Trust::default(),
        is_confirmed: false,
        batch: BATCH,
        stripped: None,
    };
    store.jumped.store(true, SeqCst);
    let pass = purger.pass(Instant::now()).await.unwrap().unwrap();
    assert_eq!((pass.records, pass.answers, pass.more), (0, 0, false));
    assert_eq!(store.strips.load(SeqCst), 0, "an answer is dropped by the same clock");
    store.jumped.store(false, SeqCst);
    let pass = purger.pass(Instant::now()).await.unwrap().unwrap();
    assert_eq!((pass.answers, store.strips.load(SeqCst)), (1, 1));
}
