//! A process that kills itself at a moment of its own.

use std::{
    process::abort,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use idem_runtime::{
    Record, RecordId,
    store::{
        Begin, Begun, Claim, Claimed, Commit, Committed, Due, EndStep, Filter, Finish, Finished, Found, Link,
        OpenTransaction, Page, Peek, Purge, Purged, PutOff, Recover, Recovering, Renewal, Renewed, Resolve, StartStep,
        Started, Step, StepBegun, StepEnded, Store, StoreError, Strip, Stripped, Survey, Transactions,
    },
};

/// Each verb of a request has two moments: before it is sent, and when it has happened, before anybody is told.
pub(crate) struct Dying {
    at: u32,
    moments: AtomicU32,
    inner: Arc<dyn Store>,
}

impl Dying {
    /// Moments are counted from 1.
    pub(crate) fn new(at: u32, inner: Arc<dyn Store>) -> Self {
        Self { at, moments: AtomicU32::new(0), inner }
    }

    fn moment(&self) {
        if self.moments.fetch_add(1, Ordering::SeqCst) + 1 == self.at {
            abort(); // as SIGKILL: nothing is put in order, and nobody is told
        }
    }

    async fn at<T>(&self, verb: impl Future<Output = T>) -> T {
        self.moment();
        let answer = verb.await;
        self.moment();
        answer
    }
}

#[async_trait]
impl Store for Dying {
    async fn finish(&self, finishes: &[Finish]) -> Result<Vec<Finished>, StoreError> {
        self.at(self.inner.finish(finishes)).await
    }
    async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>, StoreError> {
        self.at(self.inner.claim(claims)).await
    }
    async fn peek(&self, peeks: &[Peek]) -> Result<Vec<Option<Found>>, StoreError> {
        self.inner.peek(peeks).await
    }
    async fn renew(&self, renewals: &[Renewal], lease: Duration) -> Result<Vec<Renewed>, StoreError> {
        self.inner.renew(renewals, lease).await
    }
    async fn link(&self, links: &[Link]) -> Result<(), StoreError> {
        self.at(self.inner.link(links)).await
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
    fn transactions(&self) -> Option<Transactions> {
        self.inner.transactions()
    }
    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        self.at(self.inner.begin(begin)).await
    }
    async fn commit(&self, transaction: OpenTransaction, commit: &Commit) -> Result<Committed, StoreError> {
        self.at(self.inner.commit(transaction, commit)).await
    }
    fn keeps_steps(&self) -> bool {
        self.inner.keeps_steps()
    }
    async fn start_steps(&self, starts: &[StartStep]) -> Result<Vec<Started>, StoreError> {
        self.at(self.inner.start_steps(starts)).await
    }
    async fn end_steps(&self, ends: &[EndStep]) -> Result<Vec<StepEnded>, StoreError> {
        self.at(self.inner.end_steps(ends)).await
    }
    async fn steps(&self, record: RecordId) -> Result<Vec<Step>, StoreError> {
        self.at(self.inner.steps(record)).await
    }
    async fn begin_step(&self, start: &StartStep, limit: Duration) -> Result<StepBegun, StoreError> {
        self.at(self.inner.begin_step(start, limit)).await
    }
    async fn commit_step(&self, transaction: OpenTransaction, end: &EndStep) -> Result<Committed, StoreError> {
        self.at(self.inner.commit_step(transaction, end)).await
    }
    async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.inner.check().await
    }
    async fn check_transactions(&self) -> Result<Vec<String>, StoreError> {
        self.inner.check_transactions().await
    }
}
