//! A store that lets statements through one by one, and fails as it is told.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::sync::Semaphore;

use super::*;

pub(super) struct Gated {
    pub(super) inner: MemoryStore,
    /// A permit lets one statement through; closed, all.
    pub(super) gate: Semaphore,
    /// The records of each statement that was sent.
    pub(super) sent: Mutex<Vec<Vec<RecordId>>>,
    /// A statement with this record is refused.
    pub(super) refused: Mutex<Option<(RecordId, StoreErrorKind)>>,
    /// Of so many statements the replies are lost.
    pub(super) lost: AtomicUsize,
    pub(super) panics: AtomicBool,
    /// Looks are not held up, and it says that only one can write.
    pub(super) one_writer: AtomicBool,
}

impl Gated {
    pub(super) fn new() -> Arc<Self> {
        let (sent, refused, lost, panics, one_writer) = Default::default();
        let inner = MemoryStore::volatile();
        Arc::new(Self { inner, gate: Semaphore::new(0), sent, refused, lost, panics, one_writer })
    }

    pub(super) fn open(&self) {
        self.gate.close();
    }

    /// Lets one statement through.
    pub(super) fn pass(&self) {
        self.gate.add_permits(1);
    }

    /// How many records each statement carried, so far.
    pub(super) fn sizes(&self) -> Vec<usize> {
        self.sent.lock().unwrap().iter().map(Vec::len).collect()
    }

    async fn through<T>(
        &self,
        records: Vec<RecordId>,
        verb: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.sent.lock().unwrap().push(records.clone());
        if let Ok(permit) = self.gate.acquire().await {
            permit.forget();
        }
        let refused = *self.refused.lock().unwrap();
        if let Some((_, kind)) = refused.filter(|(record, _)| records.contains(record)) {
            return Err(StoreError::new(kind, "the test refuses it"));
        }
        assert!(!self.panics.swap(false, Ordering::Relaxed), "the test says so");
        let told = verb.await;
        let is_lost = |left: usize| left.checked_sub(1);
        match self.lost.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_lost) {
            Ok(_) => Err(StoreError::unavailable("the test lost the reply")),
            Err(_) => told,
        }
    }
}

#[async_trait::async_trait]
impl Store for Gated {
    async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>, StoreError> {
        self.through(claims.iter().map(|claim| claim.record).collect(), self.inner.claim(claims)).await
    }
    fn transactions(&self) -> Option<Transactions> {
        let one_writer = self.one_writer.load(Ordering::Relaxed);
        one_writer.then_some(Transactions { database: "of a test", exclusive: true })
    }
    async fn peek(&self, peeks: &[Peek]) -> Result<Vec<Option<Found>>, StoreError> {
        if self.one_writer.load(Ordering::Relaxed) {
            return self.inner.peek(peeks).await;
        }
        self.through(peeks.iter().map(|peek| peek.record).collect(), self.inner.peek(peeks)).await
    }
    async fn finish(&self, finishes: &[Finish]) -> Result<Vec<Finished>, StoreError> {
        self.through(finishes.iter().map(|finish| finish.record).collect(), self.inner.finish(finishes)).await
    }
    async fn renew(&self, renewals: &[Renewal], lease: Duration) -> Result<Vec<Renewed>, StoreError> {
        self.inner.renew(renewals, lease).await
    }
    async fn link(&self, links: &[Link]) -> Result<(), StoreError> {
        self.inner.link(links).await
    }
    async fn find(&self, record: RecordId) -> Result<Option<Record>, StoreError> {
        self.inner.find(record).await
    }
    async fn list(&self, filter: &Filter, page: Page) -> Result<Vec<Record>, StoreError> {
        self.inner.list(filter, page).await
    }
    async fn linked(&self, provider: &str, id: &str) -> Result<Vec<Record>, StoreError> {
        self.inner.linked(provider, id).await
    }
    async fn resolve(&self, resolve: &Resolve) -> Result<bool, StoreError> {
        self.inner.resolve(resolve).await
    }
    async fn recover(&self, recover: &Recover) -> Result<Vec<Recovering>, StoreError> {
        self.inner.recover(recover).await
    }
    async fn put_off(&self, put_off: &PutOff) -> Result<bool, StoreError> {
        self.inner.put_off(put_off).await
    }
    async fn survey(&self) -> Result<Survey, StoreError> {
        self.inner.survey().await
    }
    async fn due(&self) -> Result<Due, StoreError> {
        self.inner.due().await
    }
    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        self.inner.purge(purge).await
    }
    async fn strip(&self, strip: &Strip) -> Result<Stripped, StoreError> {
        self.inner.strip(strip).await
    }
    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        let records = begin.claim.iter().map(|claim| claim.record).collect();
        self.through(records, async { Err(StoreError::unavailable("it keeps no transactions")) }).await
    }
    async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.inner.check().await
    }
}
