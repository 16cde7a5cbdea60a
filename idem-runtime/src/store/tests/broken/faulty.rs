//! The memory store's rows, with one fault.

mod fault;
mod list;
mod order;
mod purge;
mod recover;
mod resume;
mod step;
pub(super) mod transaction;
mod verbs;

pub(super) use self::fault::Fault;
use super::{
    super::super::{
        memory::Held,
        row::{Millis, Row},
    },
    *,
};
use crate::{conformance::steps::claim, fingerprint::Fingerprint, state::State};

/// See [`Fault`].
pub(super) struct Faulty {
    store: MemoryStore,
    fault: Fault,
    bodies: transaction::Shared,
}

impl Faulty {
    pub(super) fn new(fault: Fault) -> Self {
        Self { store: MemoryStore::volatile(), fault, bodies: transaction::Shared::default() }
    }

    fn locked<T>(&self, verb: impl FnOnce(&mut Held, Millis) -> T) -> T {
        let (mut held, now) = self.store.lock();
        verb(&mut held, now)
    }

    fn row(&self, record: RecordId) -> Option<Row> {
        self.locked(|held, _| held.records.get(&record).map(|kept| kept.row.clone()))
    }

    /// Changes the row, where there is one.
    fn change(&self, record: RecordId, change: impl FnOnce(&mut Row)) {
        self.locked(|held, _| held.records.get_mut(&record).map(|kept| change(&mut kept.row)));
    }

    /// Puts an answer in the place of the one that is there.
    fn exchange(&self, record: RecordId, response: Option<StoredResponse>) -> Option<StoredResponse> {
        self.locked(|held, _| std::mem::replace(&mut held.records.get_mut(&record)?.response, response))
    }

    /// The attempt that the record belongs to, for those that compare with nothing.
    fn anybodys(&self, record: RecordId, attempt: Attempt) -> Attempt {
        self.row(record).map_or(attempt, |row| row.attempt)
    }

    /// The fingerprint that the record has, likewise.
    fn any_payload(&self, peek: Peek) -> Peek {
        Peek { fingerprint: self.row(peek.record).map_or(peek.fingerprint, |row| row.fingerprint), ..peek }
    }

    /// The fingerprint that asks, as if it were of the record's algorithm.
    fn same_algorithm(&self, peek: Peek) -> Fingerprint {
        let algorithm = self.row(peek.record).map_or(Fingerprint::ALGORITHM, |row| row.fingerprint.algorithm());
        Fingerprint::from_parts(algorithm, *peek.fingerprint.digest())
    }

    /// The fingerprint that asks, as the record's own where their algorithms differ.
    fn without_scope(&self, peek: Peek) -> Fingerprint {
        let other = |row: &Row| row.fingerprint.algorithm() != peek.fingerprint.algorithm();
        self.row(peek.record).filter(other).map_or(peek.fingerprint, |row| row.fingerprint)
    }

    /// Runs a verb that cannot take an answer away.
    fn keeping_the_answer<T>(&self, record: RecordId, verb: impl FnOnce() -> T) -> T {
        let before = self.exchange(record, None);
        self.exchange(record, before.clone());
        let done = verb();
        if self.fault == Fault::LeavesOldAnswersLying {
            let after = self.exchange(record, None);
            self.exchange(record, after.or(before));
        }
        done
    }
}

#[async_trait::async_trait]
impl Store for Faulty {
    async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>, StoreError> {
        let mut claimed = Vec::new();
        for claim in claims {
            let input = self.locked(|held, _| held.inputs.get(&claim.record).cloned());
            claimed.push(self.claim_one(claim).await);
            if self.fault == Fault::ForgetsStepsWithTheirRun
                && matches!(claimed.last(), Some(Claimed::Owner(owned)) if owned.continues())
            {
                self.locked(|held, _| held.steps.remove(&claim.record));
            }
            self.kept_input(claim, input);
        }
        if self.fault == Fault::AnswersInReverse {
            claimed.reverse();
        }
        Ok(claimed)
    }
    async fn peek(&self, peeks: &[Peek]) -> Result<Vec<Option<Found>>, StoreError> {
        let peeks: Vec<Peek> = match self.fault {
            Fault::ComparesNoFingerprint | Fault::PeeksWithoutTheFingerprint => {
                peeks.iter().map(|peek| self.any_payload(*peek)).collect()
            }
            Fault::ComparesNoScope => {
                peeks.iter().map(|peek| Peek { fingerprint: self.without_scope(*peek), ..*peek }).collect()
            }
            Fault::PeeksByDigestsOnly => {
                peeks.iter().map(|peek| Peek { fingerprint: self.same_algorithm(*peek), ..*peek }).collect()
            }
            _ => peeks.to_vec(),
        };
        let found = self.store.peek(&peeks).await?;
        if self.fault == Fault::ClaimsByPeeking {
            for peek in &peeks {
                let claim = Claim { record: peek.record, ..claim("any") };
                self.locked(|held, now| held.claim(&claim, now));
            }
        }
        Ok(found)
    }
    async fn finish(&self, finishes: &[Finish]) -> Result<Vec<Finished>, StoreError> {
        let before: Vec<_> = finishes.iter().map(|finish| (finish.record, self.row(finish.record))).collect();
        let mut finished = Vec::new();
        for finish in finishes {
            finished.push(self.finish_one(finish).await);
        }
        if self.fault == Fault::UndoesTheSlice && finished.contains(&Finished::Lost) {
            for (record, before) in before {
                self.change(record, |row| *row = before.unwrap_or_else(|| row.clone()));
            }
        }
        Ok(finished)
    }
    async fn renew(&self, renewals: &[Renewal], lease: Duration) -> Result<Vec<Renewed>, StoreError> {
        let mut renewed = Vec::new();
        for renewal in renewals {
            let held = self.bodies.lock().unwrap().held.contains(&renewal.record);
            renewed.push(if held { Renewed::Busy } else { self.renew_one(renewal, lease).await });
        }
        Ok(renewed)
    }
    async fn link(&self, links: &[Link]) -> Result<(), StoreError> {
        let mut links = links.to_vec();
        if self.fault == Fault::TakesLinksForTheCurrentEpoch {
            for link in &mut links {
                link.epoch = self.row(link.record).map_or(link.epoch, |row| row.epoch);
            }
        }
        self.store.link(&links).await
    }
    async fn find(&self, record: RecordId) -> Result<Option<Record>, StoreError> {
        let mut found = self.store.find(record).await?;
        match (self.fault, &mut found) {
            (Fault::ShowsItsOwnZero, Some(record)) => record.created_at = std::time::SystemTime::UNIX_EPOCH,
            (Fault::SortsLinks, Some(record)) => record.links.sort(),
            _ => {}
        }
        Ok(found)
    }
    async fn list(&self, filter: &Filter, page: Page) -> Result<Vec<Record>, StoreError> {
        Ok(self.list_some(filter, page).await)
    }
    async fn linked(&self, provider: &str, id: &str) -> Result<Vec<Record>, StoreError> {
        Ok(self.linked_to(provider, id))
    }
    async fn resolve(&self, resolve: &Resolve) -> Result<bool, StoreError> {
        Ok(self.resolve_one(resolve).await)
    }
    async fn recover(&self, recover: &Recover) -> Result<Vec<Recovering>, StoreError> {
        Ok(self.recover_some(recover).await)
    }
    async fn put_off(&self, put_off: &PutOff) -> Result<bool, StoreError> {
        Ok(self.put_off_one(put_off))
    }
    async fn interrupted(&self, resume: &Resume) -> Result<Vec<Resuming>, StoreError> {
        Ok(self.interrupted_some(resume))
    }
    async fn survey(&self) -> Result<Survey, StoreError> {
        let counts = |row: &Row| match self.fault {
            Fault::CountsTheLive => Some(row.state != State::Done),
            Fault::CountsReportsOnly => Some(row.state == State::InDoubt),
            _ => None,
        };
        let mut survey = self.store.survey().await?;
        self.locked(|held, _| {
            let counted: Option<Vec<_>> = held.records.values().map(|kept| counts(&kept.row)).collect();
            if let (Some(counted), Some(doubts)) = (counted, survey.doubts.first_mut()) {
                doubts.count = counted.iter().filter(|counts| **counts).count() as u64;
            }
        });
        Ok(survey)
    }
    async fn due(&self) -> Result<Due, StoreError> {
        Ok(self.due_now())
    }
    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        Ok(self.purge_some(purge).await)
    }
    async fn strip(&self, strip: &Strip) -> Result<Stripped, StoreError> {
        Ok(self.strip_some(strip))
    }
    fn transactions(&self) -> Option<Transactions> {
        let has_none = self.fault == Fault::SaysThatItHasNoTransactions;
        (!has_none).then_some(Transactions { database: "memory", exclusive: false })
    }
    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        Ok(self.begin_one(begin).await)
    }
    async fn commit(&self, transaction: OpenTransaction, commit: &Commit) -> Result<Committed, StoreError> {
        self.commit_one(transaction, commit).await
    }
    async fn start_steps(&self, starts: &[StartStep]) -> Result<Vec<Started>, StoreError> {
        Ok(self.start_some(starts).await)
    }
    async fn end_steps(&self, ends: &[EndStep]) -> Result<Vec<StepEnded>, StoreError> {
        Ok(self.end_some(ends).await)
    }
    async fn steps(&self, record: RecordId) -> Result<Vec<Step>, StoreError> {
        Ok(self.steps_of(record))
    }
    async fn begin_step(&self, start: &StartStep, _: Duration) -> Result<StepBegun, StoreError> {
        Ok(self.begin_step_one(start))
    }
    async fn commit_step(&self, transaction: OpenTransaction, end: &EndStep) -> Result<Committed, StoreError> {
        self.commit_step_one(transaction, end)
    }
    async fn check(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}
