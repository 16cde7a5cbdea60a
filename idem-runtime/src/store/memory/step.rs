//! Steps.

use super::Held;
use crate::{
    key::RecordId,
    store::{Attempt, EndStep, Fence, Resolve, StartStep, Started, Step, StepDecision, StepEnded, row::Millis},
};

/// A step as it is kept; its age counts from `started_at`.
#[derive(Clone)]
pub(in crate::store) struct Kept {
    pub(in crate::store) epoch: Fence,
    pub(in crate::store) started_at: Millis,
    pub(in crate::store) step: Step,
}

impl Kept {
    fn shown(&self, now: Millis) -> Step {
        Step { age: now.since(self.started_at), ..self.step.clone() }
    }
}

impl Held {
    /// The epoch of the record while it is in flight for the attempt.
    pub(in crate::store) fn epoch_of(&self, record: RecordId, attempt: Attempt) -> Option<Fence> {
        let row = &self.records.get(&record)?.row;
        row.held_by(attempt).then_some(row.epoch)
    }

    pub(in crate::store) fn start_step(&mut self, start: &StartStep, now: Millis) -> Started {
        let Some(epoch) = self.epoch_of(start.record, start.attempt) else { return Started::Lost };
        let steps = self.steps.entry(start.record).or_default();
        if let Some(kept) = steps.iter().find(|kept| kept.epoch == epoch && kept.step.name == start.name) {
            return Started::Step(kept.shown(now));
        }
        let StartStep { name, kind, input, .. } = start.clone();
        let step = Step { name, kind, input, result: None, age: now.since(now) };
        steps.push(Kept { epoch, started_at: now, step: step.clone() });
        Started::Step(step)
    }

    pub(in crate::store) fn end_step(&mut self, end: &EndStep) -> StepEnded {
        let Some(epoch) = self.epoch_of(end.record, end.attempt) else { return StepEnded::Lost };
        let mut steps = self.steps.get_mut(&end.record).into_iter().flatten();
        let Some(kept) = steps.find(|kept| kept.epoch == epoch && kept.step.name == end.name) else {
            return StepEnded::Lost;
        };
        kept.step.result.get_or_insert_with(|| end.result.clone());
        StepEnded::Stored
    }

    /// Writes what is decided about single steps, which are open.
    pub(in crate::store) fn decide(&mut self, resolve: &Resolve, epoch: Fence) {
        let Some(steps) = self.steps.get_mut(&resolve.record) else { return };
        for (name, decision) in resolve.to.decisions() {
            let is_it = |kept: &Kept| kept.epoch == epoch && kept.step.name == name;
            match decision {
                StepDecision::Done(result) => {
                    steps
                        .iter_mut()
                        .filter(|kept| is_it(kept))
                        .for_each(|kept| kept.step.result = Some(result.clone()));
                }
                StepDecision::NotDone => steps.retain(|kept| !is_it(kept)),
                StepDecision::AskAgain => {}
            }
        }
    }

    pub(in crate::store) fn steps(&self, record: RecordId, now: Millis) -> Vec<Step> {
        let epoch = self.records.get(&record).map(|kept| kept.row.epoch);
        let steps = self.steps.get(&record).into_iter().flatten();
        steps.filter(|kept| Some(kept.epoch) == epoch).map(|kept| kept.shown(now)).collect()
    }
}
