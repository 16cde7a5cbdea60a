//! Going on with what was interrupted.

use bytes::Bytes;

use super::*;
use crate::store::{Resume, Resuming};

impl Faulty {
    pub(super) fn interrupted_some(&self, resume: &Resume) -> Vec<Resuming> {
        let mut resume = resume.clone();
        match self.fault {
            Fault::GoesOnWithAnyOperation => resume.ops = vec!["charge"],
            Fault::GoesOnWithoutGrace => resume.grace = Duration::ZERO,
            Fault::GoesOnWithoutLimit => resume.limit = u32::MAX,
            Fault::GivesOutAgainAtOnce => resume.lease = Duration::ZERO,
            _ => {}
        }
        self.locked(|held, now| {
            for (id, kept) in &mut held.records {
                let row = &mut kept.row;
                match self.fault {
                    Fault::GoesOnWithoutABackOff => row.attempts = 1,
                    Fault::GoesOnWithDoubts if row.state == State::InDoubt => row.state = State::Resumable,
                    Fault::GoesOnPastTheWindow if row.rerun_until > Millis::default() => {
                        row.rerun_until = now.plus(resume.lease);
                    }
                    Fault::GoesOnWithAnyInput => {
                        held.inputs.entry(*id).and_modify(|(epoch, _)| *epoch = row.epoch);
                    }
                    _ => {}
                }
            }
            held.interrupted(&resume, now)
        })
    }

    /// What a claim has kept, or has not.
    pub(super) fn kept_input(&self, claim: &Claim, before: Option<(Fence, Bytes)>) {
        let Some(epoch) = self.row(claim.record).map(|row| row.epoch) else { return };
        self.locked(|held, _| match (self.fault, before, &claim.input) {
            (Fault::KeepsTheInputsOfTheRefused, _, Some(input)) => {
                held.inputs.insert(claim.record, (epoch, input.clone()));
            }
            (Fault::KeepsTheFirstInput, Some(first), Some(_)) if first.0 == epoch => {
                held.inputs.insert(claim.record, first);
            }
            _ => {}
        });
    }
}
