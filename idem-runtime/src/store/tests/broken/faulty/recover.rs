//! Tries to settle doubts.

use tokio::task::yield_now;

use super::*;
use crate::state::Reason;

impl Faulty {
    pub(super) async fn recover_some(&self, recover: &Recover) -> Vec<Recovering> {
        let mut recover = recover.clone();
        match self.fault {
            Fault::RecoversAnyOperation => recover.ops.push("refund"),
            Fault::IgnoresTheGrace => recover.grace = Duration::ZERO,
            Fault::TriesForEver => recover.tries = u32::MAX,
            Fault::TriesAtOnceAgain => recover.lease = Duration::ZERO,
            Fault::RecoversAll => recover.limit = u32::MAX,
            Fault::ChecksThenRecovers => {
                let rows = self.locked(|held, _| held.records.keys().copied().collect::<Vec<_>>());
                let rows: Vec<_> = rows.into_iter().filter_map(|id| Some((id, self.row(id)?))).collect();
                yield_now().await;
                // As they were when it looked, but for what has been settled since.
                for (id, before) in rows {
                    self.change(id, |row| {
                        if row.state == State::InDoubt {
                            (row.tries, row.recover_at) = (before.tries, before.recover_at);
                        }
                    });
                }
            }
            Fault::RecoversWhatWaits => self.locked(|held, _| {
                held.records.values_mut().for_each(|kept| kept.row.rerun_until = Millis::default());
            }),
            Fault::RecoversRuns => self.locked(|held, _| {
                for kept in held.records.values_mut().filter(|kept| kept.row.state == State::InFlight) {
                    (kept.row.state, kept.row.reason) = (State::InDoubt, Some(Reason::LeaseExpired));
                }
            }),
            _ => {}
        }
        let before =
            self.locked(|held, _| held.records.iter().map(|(id, kept)| (*id, kept.row.clone())).collect::<Vec<_>>());
        let mut taken = match self.fault {
            Fault::RecoversOpByOp => Vec::new(),
            _ => self.locked(|held, now| held.recover(&recover, now)),
        };
        if self.fault == Fault::RecoversOpByOp {
            for op in &recover.ops {
                let limit = recover.limit.saturating_sub(u32::try_from(taken.len()).unwrap_or(u32::MAX));
                let of_op = Recover { ops: vec![*op], limit, ..recover.clone() };
                taken.extend(self.locked(|held, now| held.recover(&of_op, now)));
            }
        }
        for Recovering { record, .. } in &mut taken {
            let Some((_, before)) = before.iter().find(|(id, _)| *id == record.id) else { continue };
            match self.fault {
                Fault::RecoversWithoutANewAttempt => record.attempt = before.attempt,
                Fault::RecoversWithoutANewFence => record.fence = before.fence,
                Fault::RecoversForNoReason => record.reason = Some(Reason::Recovery),
                _ => {}
            }
            let until = self.locked(|_, now| now.plus(recover.lease));
            self.change(record.id, |row| {
                (row.attempt, row.fence, row.reason) = (record.attempt, record.fence, record.reason);
                if self.fault == Fault::TakesATryForALease {
                    row.lease_until = until;
                }
            });
        }
        taken
    }

    pub(super) fn put_off_one(&self, put_off: &PutOff) -> bool {
        let mut put_off = *put_off;
        match self.fault {
            Fault::ForgetsToPutOff => return self.row(put_off.record).is_some_and(|row| row.fence == put_off.seen),
            Fault::PutsOffByAnyFence => {
                put_off.seen = self.row(put_off.record).map_or(put_off.seen, |row| row.fence);
            }
            _ => {}
        }
        self.locked(|held, now| held.put_off(&put_off, now))
    }
}
