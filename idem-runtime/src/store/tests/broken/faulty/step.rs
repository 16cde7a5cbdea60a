//! Steps.

use tokio::task::yield_now;

use super::{super::super::super::memory::step::Kept, transaction::Pending, *};
use crate::store::{OpenTransaction, StepDecisions};

impl Faulty {
    /// Runs a verb for a run that has its record, or is taken for one that has.
    fn as_owner<T>(&self, record: RecordId, attempt: Attempt, verb: impl FnOnce(&mut Held, Millis, Attempt) -> T) -> T {
        let (any_attempt, any_state) = match self.fault {
            Fault::NotesForAnybody => (true, false),
            Fault::NotesAfterTheEnd => (false, true),
            Fault::NotesUnfenced | Fault::ChecksThenNotes => (true, true),
            _ => (false, false),
        };
        self.locked(|held, now| {
            let late = |row: &Row| self.fault == Fault::ComparesTheLeaseOfSteps && row.lease_until <= now;
            let Some(before) = held.records.get(&record).map(|kept| kept.row.clone()) else {
                return verb(held, now, attempt);
            };
            if late(&before) {
                return verb(held, now, Attempt::random());
            }
            let attempt = if any_attempt { before.attempt } else { attempt };
            if any_state {
                let row = held.records.get_mut(&record).map(|kept| &mut kept.row);
                row.into_iter().for_each(|row| row.state = State::InFlight);
            }
            let done = verb(held, now, attempt);
            held.records.get_mut(&record).into_iter().for_each(|kept| kept.row = before.clone());
            done
        })
    }

    /// Whether the run has its record, and then somebody else's turn.
    async fn checked(&self, record: RecordId, attempt: Attempt) -> bool {
        if self.fault != Fault::ChecksThenNotes {
            return true;
        }
        let has = self.locked(|held, _| held.epoch_of(record, attempt).is_some());
        yield_now().await;
        has
    }

    /// The steps of a record, to be changed.
    fn kept<T>(&self, record: RecordId, change: impl FnOnce(&mut Vec<Kept>, Option<Fence>) -> T) -> T {
        self.locked(|held, _| {
            let epoch = held.records.get(&record).map(|kept| kept.row.epoch);
            change(held.steps.entry(record).or_default(), epoch)
        })
    }

    fn take_for_its_own(&self, record: RecordId) {
        if self.fault == Fault::ShowsAnySteps {
            self.kept(record, |steps, epoch| {
                steps.iter_mut().for_each(|kept| kept.epoch = epoch.unwrap_or(kept.epoch));
            });
        }
    }

    pub(super) async fn start_some(&self, starts: &[StartStep]) -> Vec<Started> {
        let mut started = Vec::new();
        for start in starts {
            let has = self.checked(start.record, start.attempt).await;
            started.push(if has { self.start_one(start) } else { Started::Lost });
        }
        if self.fault == Fault::AnswersStepsInReverse {
            started.reverse();
        }
        started
    }

    fn start_one(&self, start: &StartStep) -> Started {
        self.take_for_its_own(start.record);
        let before = self.kept(start.record, |steps, _| steps.clone());
        let started = self.as_owner(start.record, start.attempt, |held, now, attempt| {
            let started = held.start_step(&StartStep { attempt, ..start.clone() }, now);
            let kept = held.steps.get_mut(&start.record).into_iter().flatten();
            for kept in kept.filter(|kept| started != Started::Lost && kept.step.name == start.name) {
                match self.fault {
                    Fault::LetsStepsBeNotedAnew => (kept.step.kind, kept.step.input) = (start.kind, start.input),
                    Fault::CountsStepsFromTheirLastStart => kept.started_at = now,
                    _ => {}
                }
            }
            match self.fault {
                Fault::LetsStepsBeNotedAnew | Fault::CountsStepsFromTheirLastStart => {
                    held.start_step(&StartStep { attempt, ..start.clone() }, now)
                }
                _ => started,
            }
        });
        if self.fault == Fault::NotesStepsAtTheirEnd {
            self.kept(start.record, |steps, _| *steps = before);
        }
        started
    }

    pub(super) async fn end_some(&self, ends: &[EndStep]) -> Vec<StepEnded> {
        let mut ended = Vec::new();
        for end in ends {
            let has = self.checked(end.record, end.attempt).await;
            ended.push(if has { self.end_one(end) } else { StepEnded::Lost });
        }
        if self.fault == Fault::AnswersStepsInReverse {
            ended.reverse();
        }
        ended
    }

    fn end_one(&self, end: &EndStep) -> StepEnded {
        let mut end = end.clone();
        if self.fault == Fault::TakesResultsForText {
            end.result = String::from_utf8_lossy(&end.result).into_owned().into();
        }
        self.as_owner(end.record, end.attempt, |held, now, attempt| {
            if matches!(self.fault, Fault::MakesStepsOfResults | Fault::NotesStepsAtTheirEnd) {
                let (record, name, kind) = (end.record, end.name.clone(), StepKind::Run);
                held.start_step(&StartStep { record, attempt, name, kind, input: None }, now);
            }
            let epoch = held.epoch_of(end.record, attempt);
            let steps = |held: &mut Held| {
                let steps = held.steps.get_mut(&end.record).into_iter().flatten();
                steps.filter(|kept| Some(kept.epoch) == epoch && kept.step.name == end.name).for_each(|kept| {
                    kept.step.result = None;
                });
            };
            if self.fault == Fault::ChangesResults {
                steps(held);
            }
            let ended = held.end_step(&EndStep { attempt, ..end.clone() });
            if self.fault == Fault::TakesAnEmptyResultForNone && end.result.is_empty() {
                steps(held);
            }
            ended
        })
    }

    /// Settles a record, and decides about its steps.
    pub(super) async fn resolve_one(&self, resolve: &Resolve) -> bool {
        let steps = || self.locked(|held, _| held.steps.get(&resolve.record).cloned());
        let put_back = |steps| self.kept(resolve.record, |kept, _| *kept = steps);
        let epoch = self.row(resolve.record).map(|row| row.epoch);
        match (self.fault, &resolve.to) {
            (Fault::ReleasesWhatHasActed, Resolution::Release) => {
                let before = self.kept(resolve.record, |kept, _| std::mem::take(kept));
                let resolved = self.resolve_record(resolve).await;
                put_back(before);
                resolved
            }
            (Fault::ForgetsDecisions, Resolution::ResumeWith(_)) => {
                self.resolve_record(&Resolve { to: Resolution::Resume, ..resolve.clone() }).await
            }
            (Fault::DecidesAboutAnyStep, Resolution::ResumeWith(decisions)) => {
                let open = self.steps_of(resolve.record);
                let open = |name: &str| open.iter().any(|step| step.name == name && step.result.is_none());
                let some = decisions.iter().filter(|(name, _)| open(name));
                let some = some.fold(StepDecisions::new(), |some, (name, to)| some.step(name, to.clone()));
                self.resolve_record(&Resolve { to: Resolution::ResumeWith(some), ..resolve.clone() }).await
            }
            (Fault::DecidesFirst, Resolution::ResumeWith(_)) => {
                let fits = resolve.to.fits(&self.steps_of(resolve.record));
                let before = steps();
                let resolved = self.resolve_record(resolve).await;
                if let (false, true, Some(epoch)) = (resolved, fits, epoch) {
                    put_back(before.unwrap_or_default());
                    self.locked(|held, _| held.decide(resolve, epoch));
                }
                resolved
            }
            (Fault::DoesAnewAtOnce, Resolution::ResumeWith(_)) => {
                self.resolve_record(&Resolve { quarantine: Duration::ZERO, ..resolve.clone() }).await
            }
            (Fault::KeepsWhatWasNotDone, Resolution::ResumeWith(_)) => {
                let before = steps().unwrap_or_default();
                let resolved = self.resolve_record(resolve).await;
                let has = |kept: &[Kept], one: &Kept| {
                    kept.iter().any(|kept| (kept.epoch, &kept.step.name) == (one.epoch, &one.step.name))
                };
                self.kept(resolve.record, |kept, _| {
                    let gone: Vec<_> = before.into_iter().filter(|one| !has(kept, one)).collect();
                    kept.extend(gone);
                });
                resolved
            }
            (Fault::ChecksThenDecides, Resolution::ResumeWith(_)) => {
                let steps = self.steps_of(resolve.record);
                let row =
                    self.locked(|held, now| held.records.get(&resolve.record)?.row.resolved(resolve, &steps, now));
                yield_now().await;
                yield_now().await;
                let (Some(row), Some(epoch)) = (row, epoch) else { return false };
                self.change(resolve.record, |stored| *stored = Row { fence: Fence(row.fence.0 + 1), ..row });
                self.locked(|held, _| held.decide(resolve, epoch));
                true
            }
            _ => self.resolve_record(resolve).await,
        }
    }

    pub(super) fn steps_of(&self, record: RecordId) -> Vec<Step> {
        self.take_for_its_own(record);
        if self.fault == Fault::LeavesOldStepsLying {
            return self.kept(record, |steps, _| {
                let last = steps.last().map(|kept| kept.epoch);
                steps.iter().filter(|kept| Some(kept.epoch) == last).map(|kept| kept.step.clone()).collect()
            });
        }
        let mut steps = self.locked(|held, now| held.steps(record, now));
        if self.fault == Fault::SortsSteps {
            steps.sort_by(|a, b| a.name.cmp(&b.name));
        }
        steps
    }

    pub(super) fn begin_step_one(&self, start: &StartStep) -> StepBegun {
        let has = self.locked(|held, _| held.epoch_of(start.record, start.attempt).is_some());
        let known = self.steps_of(start.record).into_iter().find(|step| step.name == start.name);
        let over = |step: &Step| step.result.is_some() || self.fault == Fault::BeginsNoStartedStep;
        match known {
            _ if self.fault == Fault::BeginsAnyStep => {}
            _ if !has => return StepBegun::Found(Started::Lost),
            Some(step) if over(&step) => return StepBegun::Found(Started::Step(step)),
            _ => {}
        }
        if self.fault == Fault::ShowsOpenSteps {
            self.start_one(start);
        }
        if self.fault == Fault::HoldsTheRecordOfAStep {
            self.body().lock().unwrap().held.insert(start.record);
        }
        self.pending_step(start.clone())
    }

    pub(super) fn commit_step_one(&self, transaction: OpenTransaction, end: &EndStep) -> Result<Committed, StoreError> {
        let Ok(mut pending) = transaction.downcast::<Pending>() else {
            return Err(StoreError::new(StoreErrorKind::Setup, "the transaction is another store's"));
        };
        let stored = Ok(Committed::Stored { ttl_left: Duration::ZERO });
        if pending.is_gone() {
            return match self.fault {
                Fault::TakesSilenceForYes => stored,
                _ => Err(StoreError::unavailable("the session is gone")),
            };
        }
        let Some(start) = pending.step.take() else { return Ok(Committed::Lost) };
        let its_own = (end.record, end.attempt, &end.name) == (start.record, start.attempt, &start.name);
        if !its_own && self.fault != Fault::CommitsAnyStep
            || pending.is_over() && self.fault != Fault::AnswersAfterARollback
        {
            return Ok(Committed::Lost);
        }
        let unfenced = self.fault == Fault::ChecksTheRecordOfAStepFirst;
        let attempt = if unfenced { self.anybodys(start.record, start.attempt) } else { start.attempt };
        let ended = self.locked(|held, now| {
            held.start_step(&StartStep { attempt, ..start.clone() }, now);
            held.end_step(&EndStep { attempt, name: start.name.clone(), ..end.clone() })
        });
        if ended == StepEnded::Lost {
            return Ok(Committed::Lost);
        }
        if self.fault != Fault::CommitsStepsWithoutRows {
            pending.keep_rows();
        }
        stored
    }
}
