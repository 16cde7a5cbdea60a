//! Records in this process's memory.

mod list;
mod purge;
mod recover;
mod resume;
pub(super) mod step;

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    Audit, Claim, Claimed, Doubts, Due, EndStep, Fence, Filter, Finish, Finished, Found, Link, Page, Peek, Purge,
    Purged, PutOff, Record, Recover, Recovering, Renewal, Renewed, Resolve, Resume, Resuming, StartStep, Started, Step,
    StepEnded, Store, StoreError, StoredResponse, Strip, Stripped, Survey,
    row::{Ending, Millis, Row},
};
use crate::{key::RecordId, state::State};

/// Keeps records in memory, for tests and for trying things out. **All are lost when the process ends**, and other
/// processes do not see them: a retry that arrives after a restart runs again.
///
/// Clones share their records. The clock is [`tokio::time::Instant`], so a test moves it by pausing tokio's time.
/// No verb waits, so a dropped future has done nothing.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    zero: Instant,
    held: Mutex<Held>,
}

#[derive(Default)]
pub(super) struct Held {
    fence: i64,
    pub(super) purged_at: Millis,
    pub(super) records: HashMap<RecordId, Kept>,
    pub(super) links: HashMap<RecordId, Vec<Link>>,
    /// Of every epoch, in the order of their starts.
    pub(super) steps: HashMap<RecordId, Vec<step::Kept>>,
    /// Each with the epoch that it is of.
    pub(super) inputs: HashMap<RecordId, (Fence, Bytes)>,
    audit: Vec<(RecordId, Fence, State, State, Audit)>,
}

#[derive(Clone)]
pub(super) struct Kept {
    pub(super) row: Row,
    op: &'static str,
    pub(super) scope: Arc<str>,
    pub(super) response: Option<StoredResponse>,
}

impl MemoryStore {
    /// An empty store. Its name says what it is: nothing in it survives the process.
    #[must_use]
    pub fn volatile() -> Self {
        Self { shared: Arc::new(Shared { zero: Instant::now(), held: Mutex::default() }) }
    }

    /// The lock is what makes a verb atomic; time is read under it, so it never runs backwards.
    pub(super) fn lock(&self) -> (MutexGuard<'_, Held>, Millis) {
        // No verb can panic half way through a change, so a poisoned lock guards sound records.
        let held = self.shared.held.lock().unwrap_or_else(PoisonError::into_inner);
        (held, Millis(0).plus(self.shared.zero.elapsed()))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (held, _) = self.lock();
        f.debug_struct("MemoryStore")
            .field("records", &held.records.len())
            .field("resolved", &held.audit.len())
            .finish_non_exhaustive()
    }
}

impl Held {
    fn next_fence(&mut self) -> Fence {
        self.fence += 1;
        Fence(self.fence)
    }

    pub(super) fn look(&self, peek: &Peek, claim: Option<&Claim>, now: Millis) -> Option<Claimed> {
        let kept = self.records.get(&peek.record)?;
        kept.row.look(peek, claim.map(|claim| claim.attempt), kept.answer(), now)
    }

    pub(super) fn claim(&mut self, claim: &Claim, now: Millis) -> Claimed {
        if let Some(found) = self.look(&claim.peek(), Some(claim), now) {
            return found;
        }
        self.take(claim, now)
    }

    /// Takes the record, whatever it is.
    pub(super) fn take(&mut self, claim: &Claim, now: Millis) -> Claimed {
        let fence = self.next_fence();
        let before = self.records.get(&claim.record).map(|kept| &kept.row);
        let row = Row::taken(before, claim, fence, now);
        let owned = row.owned();
        if let Some(input) = &claim.input {
            self.inputs.insert(claim.record, (owned.epoch, input.clone()));
        }
        self.records.insert(claim.record, Kept { row, op: claim.op, scope: Arc::clone(&claim.scope), response: None });
        Claimed::Owner(owned)
    }

    pub(super) fn finish(&mut self, finish: &Finish, now: Millis) -> Finished {
        let Some(kept) = self.records.get_mut(&finish.record) else { return Finished::Lost };
        match kept.row.finish(finish, now) {
            Ending::Lost => return Finished::Lost,
            Ending::Repeated => {}
            Ending::Moved(row) => {
                kept.row = row;
                kept.response = finish.outcome.response().cloned();
            }
        }
        Finished::Stored { ttl_left: kept.row.ttl_left(now) }
    }

    pub(super) fn renew(&mut self, renewal: &Renewal, lease_until: Millis) -> Renewed {
        match self.records.get_mut(&renewal.record) {
            Some(kept) if kept.row.held_by(renewal.attempt) => {
                kept.row.lease_until = lease_until;
                Renewed::Held
            }
            _ => Renewed::Lost,
        }
    }

    fn link(&mut self, link: &Link) {
        let links = self.links.entry(link.record).or_default();
        match links.iter_mut().find(|known| known.provider == link.provider && known.id == link.id) {
            Some(known) if link.epoch > known.epoch => *known = link.clone(),
            Some(_) => {}
            None => links.push(link.clone()),
        }
    }

    fn find(&self, record: RecordId, now: Millis) -> Option<Record> {
        let Kept { row, op, scope, .. } = self.records.get(&record)?;
        let links = self.links.get(&record).into_iter().flatten();
        let links = links.filter(|link| link.epoch == row.epoch).map(|link| (link.provider.clone(), link.id.clone()));
        #[allow(clippy::disallowed_methods, reason = "shown to operators, not decided by")]
        let wall = SystemTime::now();
        Some(row.record(record, (String::from(*op), String::from(&**scope)), links.collect(), now, wall))
    }

    pub(super) fn survey(&self, now: Millis) -> Survey {
        let mut doubts: BTreeMap<&str, Doubts> = BTreeMap::new();
        for (record, Kept { row, op, .. }) in &self.records {
            let Some(age) = row.doubtful_for(now) else { continue };
            let new = Doubts { op: (*op).into(), count: 0, oldest: age, record: *record };
            let of_op = doubts.entry(op).or_insert(new);
            of_op.count += 1;
            if age > of_op.oldest {
                (of_op.oldest, of_op.record) = (age, *record);
            }
        }
        Survey { doubts: doubts.into_values().collect(), behind: false }
    }

    pub(super) fn resolve(&mut self, resolve: &Resolve, now: Millis) -> bool {
        let steps = self.steps(resolve.record, now);
        let resolved = self.records.get(&resolve.record).and_then(|kept| kept.row.resolved(resolve, &steps, now));
        let Some(row) = resolved else { return false };
        self.decide(resolve, row.epoch);
        let row = Row { fence: self.next_fence(), ..row };
        let Some(kept) = self.records.get_mut(&resolve.record) else { return false };
        self.audit.push((resolve.record, resolve.seen, kept.row.settled_from(), row.state, resolve.by.clone()));
        kept.row = row;
        kept.response = resolve.to.response().cloned();
        true
    }
}

impl Kept {
    fn answer(&self) -> Option<StoredResponse> {
        self.response.clone() // a clone of shared bytes
    }
}

#[async_trait::async_trait]
impl Store for MemoryStore {
    async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>, StoreError> {
        let (mut held, now) = self.lock();
        Ok(claims.iter().map(|claim| held.claim(claim, now)).collect())
    }

    async fn peek(&self, peeks: &[Peek]) -> Result<Vec<Option<Found>>, StoreError> {
        let (held, now) = self.lock();
        Ok(peeks.iter().map(|peek| held.look(peek, None, now).and_then(Claimed::found)).collect())
    }

    async fn finish(&self, finishes: &[Finish]) -> Result<Vec<Finished>, StoreError> {
        let (mut held, now) = self.lock();
        Ok(finishes.iter().map(|finish| held.finish(finish, now)).collect())
    }

    async fn renew(&self, renewals: &[Renewal], lease: Duration) -> Result<Vec<Renewed>, StoreError> {
        let (mut held, now) = self.lock();
        Ok(renewals.iter().map(|renewal| held.renew(renewal, now.plus(lease))).collect())
    }

    async fn link(&self, links: &[Link]) -> Result<(), StoreError> {
        let (mut held, _) = self.lock();
        links.iter().for_each(|link| held.link(link));
        Ok(())
    }

    async fn find(&self, record: RecordId) -> Result<Option<Record>, StoreError> {
        let (held, now) = self.lock();
        Ok(held.find(record, now))
    }

    async fn list(&self, filter: &Filter, page: Page) -> Result<Vec<Record>, StoreError> {
        let (held, now) = self.lock();
        Ok(held.list(filter, page, now))
    }

    async fn linked(&self, provider: &str, id: &str) -> Result<Vec<Record>, StoreError> {
        let (held, now) = self.lock();
        Ok(held.linked(provider, id, now))
    }

    async fn resolve(&self, resolve: &Resolve) -> Result<bool, StoreError> {
        let (mut held, now) = self.lock();
        Ok(held.resolve(resolve, now))
    }

    async fn recover(&self, recover: &Recover) -> Result<Vec<Recovering>, StoreError> {
        let (mut held, now) = self.lock();
        Ok(held.recover(recover, now))
    }

    async fn put_off(&self, put_off: &PutOff) -> Result<bool, StoreError> {
        let (mut held, now) = self.lock();
        Ok(held.put_off(put_off, now))
    }

    async fn interrupted(&self, resume: &Resume) -> Result<Vec<Resuming>, StoreError> {
        let (mut held, now) = self.lock();
        Ok(held.interrupted(resume, now))
    }

    async fn survey(&self) -> Result<Survey, StoreError> {
        let (held, now) = self.lock();
        Ok(held.survey(now))
    }

    async fn due(&self) -> Result<Due, StoreError> {
        let (held, now) = self.lock();
        Ok(held.due(now))
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        let (mut held, now) = self.lock();
        Ok(held.purge(purge, now))
    }

    async fn strip(&self, strip: &Strip) -> Result<Stripped, StoreError> {
        let (mut held, now) = self.lock();
        Ok(held.strip(strip, now))
    }

    fn keeps_steps(&self) -> bool {
        true
    }

    async fn start_steps(&self, starts: &[StartStep]) -> Result<Vec<Started>, StoreError> {
        let (mut held, now) = self.lock();
        Ok(starts.iter().map(|start| held.start_step(start, now)).collect())
    }

    async fn end_steps(&self, ends: &[EndStep]) -> Result<Vec<StepEnded>, StoreError> {
        let (mut held, _) = self.lock();
        Ok(ends.iter().map(|end| held.end_step(end)).collect())
    }

    async fn steps(&self, record: RecordId) -> Result<Vec<Step>, StoreError> {
        let (held, now) = self.lock();
        Ok(held.steps(record, now))
    }

    async fn check(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}
