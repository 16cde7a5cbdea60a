//! A store around another one, for what stands between the two.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use idem_runtime::{
    Record, RecordId,
    store::{
        Begin, Begun, Claim, Claimed, Commit, Committed, Due, EndStep, Filter, Finish, Finished, Found, Link,
        OpenTransaction, Page, Peek, Purge, Purged, PutOff, Recover, Recovering, Renewal, Renewed, Resolve, Resume,
        Resuming, StartStep, Started, Step, StepBegun, StepEnded, Store, StoreError, Strip, Stripped, Survey,
        Transactions,
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    Claim,
    Peek,
    Finish,
    Renew,
    Link,
    /// All that operators look with.
    Find,
    Resolve,
    Survey,
    /// All that recoveries do to take and put off.
    Recover,
    Interrupted,
    /// All that looks for records that are over.
    Purge,
    Begin,
    Commit,
    StartSteps,
    EndSteps,
    /// Reads them.
    Steps,
    BeginStep,
    CommitStep,
}

/// What stands between a runtime and its store. By itself, it lets everything pass.
pub(crate) trait Between: Send + Sync + 'static {
    /// Each verb goes this way; `ask` is what the store does, once it is polled.
    fn send<T: Send>(
        &self,
        verb: Verb,
        ask: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        let _ = verb;
        ask
    }

    /// Claims are about to be sent.
    fn claiming(&self, inner: &Arc<dyn Store>, claims: &[Claim]) {
        let _ = (inner, claims);
    }

    /// What is finished in the place of this.
    fn finishing(&self, finishes: &[Finish]) -> impl Future<Output = Vec<Finish>> + Send {
        std::future::ready(finishes.to_vec())
    }

    /// What is told in the place of this.
    fn renewed(&self, renewed: Vec<Renewed>) -> Vec<Renewed> {
        renewed
    }
}

/// The store that a runtime is given.
pub(crate) struct Forwarding<B> {
    inner: Arc<dyn Store>,
    between: B,
}

impl<B> Forwarding<B> {
    pub(crate) fn new(inner: Arc<dyn Store>, between: B) -> Self {
        Self { inner, between }
    }
}

#[async_trait]
impl<B: Between> Store for Forwarding<B> {
    async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>, StoreError> {
        self.between.claiming(&self.inner, claims);
        self.between.send(Verb::Claim, self.inner.claim(claims)).await
    }
    async fn finish(&self, finishes: &[Finish]) -> Result<Vec<Finished>, StoreError> {
        let finishes = self.between.finishing(finishes).await;
        self.between.send(Verb::Finish, self.inner.finish(&finishes)).await
    }
    async fn renew(&self, renewals: &[Renewal], lease: Duration) -> Result<Vec<Renewed>, StoreError> {
        let renewed = self.between.send(Verb::Renew, self.inner.renew(renewals, lease)).await?;
        Ok(self.between.renewed(renewed))
    }
    async fn peek(&self, peeks: &[Peek]) -> Result<Vec<Option<Found>>, StoreError> {
        self.between.send(Verb::Peek, self.inner.peek(peeks)).await
    }
    async fn link(&self, links: &[Link]) -> Result<(), StoreError> {
        self.between.send(Verb::Link, self.inner.link(links)).await
    }
    async fn find(&self, record: RecordId) -> Result<Option<Record>, StoreError> {
        self.between.send(Verb::Find, self.inner.find(record)).await
    }
    async fn list(&self, filter: &Filter, page: Page) -> Result<Vec<Record>, StoreError> {
        self.between.send(Verb::Find, self.inner.list(filter, page)).await
    }
    async fn linked(&self, provider: &str, id: &str) -> Result<Vec<Record>, StoreError> {
        self.between.send(Verb::Find, self.inner.linked(provider, id)).await
    }
    async fn resolve(&self, resolve: &Resolve) -> Result<bool, StoreError> {
        self.between.send(Verb::Resolve, self.inner.resolve(resolve)).await
    }
    async fn recover(&self, recover: &Recover) -> Result<Vec<Recovering>, StoreError> {
        self.between.send(Verb::Recover, self.inner.recover(recover)).await
    }
    async fn put_off(&self, put_off: &PutOff) -> Result<bool, StoreError> {
        self.between.send(Verb::Recover, self.inner.put_off(put_off)).await
    }
    async fn interrupted(&self, resume: &Resume) -> Result<Vec<Resuming>, StoreError> {
        self.between.send(Verb::Interrupted, self.inner.interrupted(resume)).await
    }
    async fn survey(&self) -> Result<Survey, StoreError> {
        self.between.send(Verb::Survey, self.inner.survey()).await
    }
    async fn due(&self) -> Result<Due, StoreError> {
        self.between.send(Verb::Purge, self.inner.due()).await
    }
    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        self.between.send(Verb::Purge, self.inner.purge(purge)).await
    }
    async fn strip(&self, strip: &Strip) -> Result<Stripped, StoreError> {
        self.between.send(Verb::Purge, self.inner.strip(strip)).await
    }
    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        self.between.send(Verb::Begin, self.inner.begin(begin)).await
    }
    async fn commit(&self, transaction: OpenTransaction, commit: &Commit) -> Result<Committed, StoreError> {
        self.between.send(Verb::Commit, self.inner.commit(transaction, commit)).await
    }
    async fn start_steps(&self, starts: &[StartStep]) -> Result<Vec<Started>, StoreError> {
        self.between.send(Verb::StartSteps, self.inner.start_steps(starts)).await
    }
    async fn end_steps(&self, ends: &[EndStep]) -> Result<Vec<StepEnded>, StoreError> {
        self.between.send(Verb::EndSteps, self.inner.end_steps(ends)).await
    }
    async fn steps(&self, record: RecordId) -> Result<Vec<Step>, StoreError> {
        self.between.send(Verb::Steps, self.inner.steps(record)).await
    }
    async fn begin_step(&self, start: &StartStep, limit: Duration) -> Result<StepBegun, StoreError> {
        self.between.send(Verb::BeginStep, self.inner.begin_step(start, limit)).await
    }
    async fn commit_step(&self, transaction: OpenTransaction, end: &EndStep) -> Result<Committed, StoreError> {
        self.between.send(Verb::CommitStep, self.inner.commit_step(transaction, end)).await
    }
    fn transactions(&self) -> Option<Transactions> {
        self.inner.transactions()
    }
    fn keeps_steps(&self) -> bool {
        self.inner.keeps_steps()
    }
    async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.inner.check().await
    }
    async fn check_transactions(&self) -> Result<Vec<String>, StoreError> {
        self.inner.check_transactions().await
    }
}
