//! A store behind an `Arc` is a store.

use std::{sync::Arc, time::Duration};

use super::{
    Begin, Begun, Claim, Claimed, Commit, Committed, Due, EndStep, Filter, Finish, Finished, Found, Link,
    OpenTransaction, Page, Peek, Purge, Purged, PutOff, Record, Recover, Recovering, Renewal, Renewed, Resolve, Resume,
    Resuming, StartStep, Started, Step, StepBegun, StepEnded, Store, StoreError, Strip, Stripped, Survey, Transactions,
};
use crate::key::RecordId;

#[async_trait::async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>, StoreError> {
        (**self).claim(claims).await
    }
    async fn peek(&self, peeks: &[Peek]) -> Result<Vec<Option<Found>>, StoreError> {
        (**self).peek(peeks).await
    }
    async fn finish(&self, finishes: &[Finish]) -> Result<Vec<Finished>, StoreError> {
        (**self).finish(finishes).await
    }
    async fn renew(&self, renewals: &[Renewal], lease: Duration) -> Result<Vec<Renewed>, StoreError> {
        (**self).renew(renewals, lease).await
    }
    async fn link(&self, links: &[Link]) -> Result<(), StoreError> {
        (**self).link(links).await
    }
    async fn find(&self, record: RecordId) -> Result<Option<Record>, StoreError> {
        (**self).find(record).await
    }
    async fn list(&self, filter: &Filter, page: Page) -> Result<Vec<Record>, StoreError> {
        (**self).list(filter, page).await
    }
    async fn linked(&self, provider: &str, id: &str) -> Result<Vec<Record>, StoreError> {
        (**self).linked(provider, id).await
    }
    async fn resolve(&self, resolve: &Resolve) -> Result<bool, StoreError> {
        (**self).resolve(resolve).await
    }
    async fn recover(&self, recover: &Recover) -> Result<Vec<Recovering>, StoreError> {
        (**self).recover(recover).await
    }
    async fn put_off(&self, put_off: &PutOff) -> Result<bool, StoreError> {
        (**self).put_off(put_off).await
    }
    async fn interrupted(&self, resume: &Resume) -> Result<Vec<Resuming>, StoreError> {
        (**self).interrupted(resume).await
    }
    async fn survey(&self) -> Result<Survey, StoreError> {
        (**self).survey().await
    }
    async fn due(&self) -> Result<Due, StoreError> {
        (**self).due().await
    }
    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        (**self).purge(purge).await
    }
    async fn strip(&self, strip: &Strip) -> Result<Stripped, StoreError> {
        (**self).strip(strip).await
    }
    fn transactions(&self) -> Option<Transactions> {
        (**self).transactions()
    }
    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        (**self).begin(begin).await
    }
    async fn commit(&self, transaction: OpenTransaction, commit: &Commit) -> Result<Committed, StoreError> {
        (**self).commit(transaction, commit).await
    }
    fn keeps_steps(&self) -> bool {
        (**self).keeps_steps()
    }
    async fn start_steps(&self, starts: &[StartStep]) -> Result<Vec<Started>, StoreError> {
        (**self).start_steps(starts).await
    }
    async fn end_steps(&self, ends: &[EndStep]) -> Result<Vec<StepEnded>, StoreError> {
        (**self).end_steps(ends).await
    }
    async fn steps(&self, record: RecordId) -> Result<Vec<Step>, StoreError> {
        (**self).steps(record).await
    }
    async fn begin_step(&self, start: &StartStep, limit: Duration) -> Result<StepBegun, StoreError> {
        (**self).begin_step(start, limit).await
    }
    async fn commit_step(&self, transaction: OpenTransaction, end: &EndStep) -> Result<Committed, StoreError> {
        (**self).commit_step(transaction, end).await
    }
    async fn check(&self) -> Result<Vec<String>, StoreError> {
        (**self).check().await
    }
    async fn check_transactions(&self) -> Result<Vec<String>, StoreError> {
        (**self).check_transactions().await
    }
}
