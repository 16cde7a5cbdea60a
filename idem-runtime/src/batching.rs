//! Stands between engine and store, and sends what waits together in one statement: [`around`].
//!
//! No timer decides what belongs together. A statement that finds its lane quiet goes out at once, from the task of
//! whoever asks; what is asked while it is on its way is the next one. So nobody waits for company, and the busier the
//! store is, the more each of its statements carries. Nothing else knows of this: it is a store.

mod driver;
mod lane;
mod slice;
mod turns;
mod unsure;
mod verb;
mod width;

use std::{sync::Arc, time::Duration};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::task::TaskTracker;

use self::{
    lane::{Ground, Lane},
    verb::{Claims, EndSteps, Finishes, Peeks, StartSteps},
};
use crate::{
    key::RecordId,
    store::{
        Begin, Begun, Claim, Claimed, Commit, Committed, Due, EndStep, Filter, Finish, Finished, Found, Link,
        OpenTransaction, Page, Peek, Purge, Purged, PutOff, Record, Recover, Recovering, Renewal, Renewed, Resolve,
        Resume, Resuming, StartStep, Started, Step, StepBegun, StepEnded, Store, StoreError, StoreErrorKind, Strip,
        Stripped, Survey, Transactions,
    },
};

/// What the builder says about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// As many records as one statement carries; 1: none of this.
    pub(crate) rows: usize,
    /// As many callers as may wait for a statement, of each kind, and for a transaction to be opened.
    pub(crate) queue: usize,
    /// How long a statement is waited for that nobody in particular waits for.
    pub(crate) store_timeout: Duration,
}

/// The store that the runtime works with.
///
/// # Panics
/// Outside of a tokio runtime.
pub(crate) fn around(store: Arc<dyn Store>, limits: Limits, tasks: TaskTracker) -> Arc<dyn Store> {
    if limits.rows <= 1 { store } else { Arc::new(Batching::new(store, limits, tasks)) }
}

/// A store whose verbs for one record share their statements.
///
/// What is a slice already (claims ahead, leases, the poll for waiters) goes by: it is one statement. So does what decides
/// about time (renewals), and what is rare.
///
/// **Cancel safety.** As the store's: dropped, what a verb would have done may or may not have happened, and nothing that
/// others wait for is lost. One that has not been sent is not sent any more.
struct Batching {
    store: Arc<dyn Store>,
    /// Only one can write at a time, for as long as a body may take.
    one_writer: bool,
    claims: Arc<Lane<Claims>>,
    finishes: Arc<Lane<Finishes>>,
    peeks: Arc<Lane<Peeks>>,
    starts: Arc<Lane<StartSteps>>,
    ends: Arc<Lane<EndSteps>>,
    /// Places for those who open a transaction, and mostly wait for the connection that it is on.
    begins: Semaphore,
}

impl Batching {
    fn new(store: Arc<dyn Store>, limits: Limits, tasks: TaskTracker) -> Self {
        let ground = Arc::new(Ground::new(Arc::clone(&store), limits, tasks));
        // Where only one can write, a second statement would wait for the first, and carry less than if it had not begun.
        let one_writer = store.transactions().is_some_and(|transactions| transactions.exclusive);
        let writers = if one_writer { 1 } else { width::MOST };
        Self {
            store,
            one_writer,
            claims: Lane::new(&ground, writers),
            finishes: Lane::new(&ground, writers),
            peeks: Lane::new(&ground, width::MOST),
            starts: Lane::new(&ground, writers),
            ends: Lane::new(&ground, writers),
            begins: Semaphore::new(limits.queue.min(Semaphore::MAX_PERMITS)),
        }
    }

    /// # Errors
    /// [`StoreErrorKind::Overloaded`]
    fn place_to_begin(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        let full = |_| StoreError::new(StoreErrorKind::Overloaded, "too many open a transaction");
        self.begins.try_acquire().map_err(full)
    }

    /// A replay waits for nobody's write lock, and must not come to wait for one beside a claim that does: where it would wait for
    /// company, it is read first.
    async fn claim_one(&self, claim: &Claim) -> Result<Claimed, StoreError> {
        if self.one_writer
            && self.claims.would_wait(claim)
            && let Some(found) = self.peeks.ask(&claim.peek()).await?
        {
            return Ok(Claimed::Found(found));
        }
        self.claims.ask(claim).await
    }
}

#[async_trait::async_trait]
impl Store for Batching {
    async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>, StoreError> {
        match claims {
            [claim] => Ok(vec![self.claim_one(claim).await?]),
            _ => self.store.claim(claims).await,
        }
    }
    async fn peek(&self, peeks: &[Peek]) -> Result<Vec<Option<Found>>, StoreError> {
        match peeks {
            [peek] => Ok(vec![self.peeks.ask(peek).await?]),
            _ => self.store.peek(peeks).await,
        }
    }
    async fn finish(&self, finishes: &[Finish]) -> Result<Vec<Finished>, StoreError> {
        match finishes {
            [finish] => Ok(vec![self.finishes.ask(finish).await?]),
            _ => self.store.finish(finishes).await,
        }
    }
    async fn renew(&self, renewals: &[Renewal], lease: Duration) -> Result<Vec<Renewed>, StoreError> {
        self.store.renew(renewals, lease).await
    }
    async fn link(&self, links: &[Link]) -> Result<(), StoreError> {
        self.store.link(links).await
    }
    async fn find(&self, record: RecordId) -> Result<Option<Record>, StoreError> {
        self.store.find(record).await
    }
    async fn list(&self, filter: &Filter, page: Page) -> Result<Vec<Record>, StoreError> {
        self.store.list(filter, page).await
    }
    async fn linked(&self, provider: &str, id: &str) -> Result<Vec<Record>, StoreError> {
        self.store.linked(provider, id).await
    }
    async fn resolve(&self, resolve: &Resolve) -> Result<bool, StoreError> {
        self.store.resolve(resolve).await
    }
    async fn recover(&self, recover: &Recover) -> Result<Vec<Recovering>, StoreError> {
        self.store.recover(recover).await
    }
    async fn put_off(&self, put_off: &PutOff) -> Result<bool, StoreError> {
        self.store.put_off(put_off).await
    }
    async fn interrupted(&self, resume: &Resume) -> Result<Vec<Resuming>, StoreError> {
        self.store.interrupted(resume).await
    }
    async fn survey(&self) -> Result<Survey, StoreError> {
        self.store.survey().await
    }
    async fn due(&self) -> Result<Due, StoreError> {
        self.store.due().await
    }
    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        self.store.purge(purge).await
    }
    async fn strip(&self, strip: &Strip) -> Result<Stripped, StoreError> {
        self.store.strip(strip).await
    }
    fn transactions(&self) -> Option<Transactions> {
        self.store.transactions()
    }
    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        let full = match self.place_to_begin() {
            Ok(_place) => return self.store.begin(begin).await,
            Err(full) => full,
        };
        // A replay needs none.
        let Some(claim) = &begin.claim else { return Err(full) };
        self.peeks.ask(&claim.peek()).await?.map(Begun::Found).ok_or(full)
    }
    async fn commit(&self, transaction: OpenTransaction, commit: &Commit) -> Result<Committed, StoreError> {
        self.store.commit(transaction, commit).await
    }
    fn keeps_steps(&self) -> bool {
        self.store.keeps_steps()
    }
    async fn start_steps(&self, starts: &[StartStep]) -> Result<Vec<Started>, StoreError> {
        match starts {
            [start] => Ok(vec![self.starts.ask(start).await?]),
            _ => self.store.start_steps(starts).await,
        }
    }
    async fn end_steps(&self, ends: &[EndStep]) -> Result<Vec<StepEnded>, StoreError> {
        match ends {
            [end] => Ok(vec![self.ends.ask(end).await?]),
            _ => self.store.end_steps(ends).await,
        }
    }
    async fn steps(&self, record: RecordId) -> Result<Vec<Step>, StoreError> {
        self.store.steps(record).await
    }
    async fn begin_step(&self, start: &StartStep, limit: Duration) -> Result<StepBegun, StoreError> {
        self.store.begin_step(start, limit).await
    }
    async fn commit_step(&self, transaction: OpenTransaction, end: &EndStep) -> Result<Committed, StoreError> {
        self.store.commit_step(transaction, end).await
    }
    async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.store.check().await
    }
    async fn check_transactions(&self) -> Result<Vec<String>, StoreError> {
        self.store.check_transactions().await
    }
}

#[cfg(test)]
pub(crate) mod tests;
