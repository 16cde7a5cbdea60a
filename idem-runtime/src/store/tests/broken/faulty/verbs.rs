//! One record at a time.

use bytes::Bytes;
use tokio::task::yield_now;

use super::{super::super::super::row::Ending, *};
use crate::{
    conformance::steps::TTL,
    state::{Reason, State},
};

impl Faulty {
    pub(super) async fn claim_one(&self, claim: &Claim) -> Claimed {
        let mut claim = claim.clone();
        let look = |asker| self.locked(|held, now| held.look(&claim.peek(), asker, now));
        let take = || self.locked(|held, now| held.take(&claim, now));
        let stands = |state| self.row(claim.record).is_some_and(|row| row.state == state);
        match (self.fault, look(Some(&claim))) {
            (Fault::ChecksThenTakes, None) => {
                yield_now().await;
                return take();
            }
            (Fault::OverwritesTheLive, Some(Claimed::Found(Found::InFlight { .. })))
            | (Fault::RunsDoubtsAgain, Some(Claimed::Found(Found::InDoubt(_)))) => return take(),
            (Fault::OverwritesTheSilent, Some(Claimed::Found(Found::InDoubt(_)))) if stands(State::InFlight) => {
                return take();
            }
            (Fault::RunsAgainForAnybody, Some(Claimed::Found(Found::InDoubt(_)))) if stands(State::Resumable) => {
                return take();
            }
            (Fault::GivesAnyRecordAWindow, _) if !claim.rerun.is_zero() => {
                self.change(claim.record, |row| {
                    row.rerun_until = row.rerun_until.max(row.lease_until.plus(claim.rerun))
                });
            }
            (Fault::ShutsOwnersOut, Some(_)) => {
                if let Some(found) = look(None) {
                    return found;
                }
            }
            (Fault::PurgesTheLive, _) => {
                self.locked(|held, now| held.records.retain(|_, kept| kept.row.expires_at > now));
            }
            (Fault::ComparesDigestsOnly, _) => claim.fingerprint = self.same_algorithm(claim.peek()),
            (Fault::ComparesNoScope, _) => claim.fingerprint = self.without_scope(claim.peek()),
            (Fault::ComparesNoFingerprint, _) => claim.fingerprint = self.any_payload(claim.peek()).fingerprint,
            _ => {}
        }
        let scope = self.locked(|held, _| held.records.get(&claim.record).map(|kept| kept.scope.clone()));
        let tries = self.row(claim.record).map(|row| row.tries);
        let claimed = self.keeping_the_answer(claim.record, || self.locked(|held, now| held.claim(&claim, now)));
        if let (Fault::KeepsTheFirstScope, Some(scope)) = (self.fault, scope) {
            self.locked(|held, _| held.records.get_mut(&claim.record).map(|kept| kept.scope = scope));
        }
        if let (Fault::KeepsCountingTries, Some(tries)) = (self.fault, tries) {
            self.change(claim.record, |row| row.tries = tries);
        }
        if let (Fault::BeginsAnewWhatGoesOn, Claimed::Owner(owned)) = (self.fault, &claimed) {
            self.change(claim.record, |row| row.epoch = row.fence);
            return Claimed::Owner(Owned { epoch: owned.fence, ..*owned });
        }
        if let (Fault::CountsTheWindowFromTheLastRun, Claimed::Owner(_)) = (self.fault, &claimed) {
            let until = self.locked(|_, now| now.plus(claim.rerun));
            self.change(claim.record, |row| row.rerun_until = row.rerun_until.max(until));
        }
        if let (Fault::CountsFencesPerRecord, Claimed::Owner(owned)) = (self.fault, &claimed) {
            let fence = Fence(owned.attempts.into());
            let epoch = if owned.continues() { owned.epoch } else { fence };
            self.change(claim.record, |row| (row.fence, row.epoch) = (fence, epoch));
            return Claimed::Owner(Owned { fence, epoch, ..*owned });
        }
        claimed
    }

    pub(super) async fn finish_one(&self, finish: &Finish) -> Finished {
        let mut finish = finish.clone();
        let before = self.row(finish.record);
        if let Outcome::Done(response) | Outcome::Rejected(response, _) = &mut finish.outcome {
            self.spoil(response);
        }
        if before.as_ref().is_some_and(|row| self.refuses(row, &finish)) {
            return Finished::Lost;
        }
        match (self.fault, &mut finish.outcome) {
            (Fault::ChecksThenFinishes, _) => {
                let ending = self.locked(|_, now| before.as_ref().map(|row| row.finish(&finish, now)));
                if let Some(Ending::Moved(row)) = ending {
                    yield_now().await;
                    self.change(finish.record, |stored| *stored = row.clone());
                    self.exchange(finish.record, finish.outcome.response().cloned());
                    return self.locked(|_, now| Finished::Stored { ttl_left: row.ttl_left(now) });
                }
            }
            (Fault::ReleasesInAnyRun, Outcome::Released(_) | Outcome::Rejected(..)) => {
                self.change(finish.record, |row| row.epoch = row.fence);
            }
            (Fault::FinishesUnfenced, _) => finish.attempt = self.anybodys(finish.record, finish.attempt),
            (Fault::LetsOwnersChangeTheirAnswer, _) => self.change(finish.record, |row| {
                if row.attempt == finish.attempt {
                    row.state = State::InFlight;
                }
            }),
            (Fault::KeepsRejectionsForTtl, Outcome::Rejected(_, keep)) => *keep = Duration::MAX,
            _ => {}
        }
        let finished = self.keeping_the_answer(finish.record, || self.locked(|held, now| held.finish(&finish, now)));
        if finished != Finished::Lost {
            self.after_finish(&finish, before).await;
        }
        finished
    }

    /// An end that a sound store takes.
    fn refuses(&self, row: &Row, finish: &Finish) -> bool {
        match self.fault {
            Fault::TakesNoEndTwice => row.state == finish.outcome.state(),
            Fault::EndsOnlyWhatIsInFlight => matches!(row.state, State::InDoubt | State::Resumable),
            Fault::ComparesTheLease => self.locked(|_, now| row.state == State::InFlight && row.lease_until <= now),
            _ => false,
        }
    }

    fn spoil(&self, response: &mut StoredResponse) {
        let body = response.body.take();
        response.body = match (self.fault, body) {
            (Fault::TakesBytesForText, Some(body)) => Some(String::from_utf8_lossy(&body).into_owned().into()),
            (Fault::KeepsNoEmptyBody, Some(body)) if body.is_empty() => None,
            (Fault::KeepsNoBodyAsEmpty, None) => Some(Bytes::new()),
            (_, body) => body,
        };
        if self.fault == Fault::MakesUpAStatus {
            response.status = response.status.or(Some(200));
        }
    }

    async fn after_finish(&self, finish: &Finish, before: Option<Row>) {
        match (self.fault, &finish.outcome) {
            (Fault::ForgetsAnswers, Outcome::Done(_)) => {
                self.locked(|held, _| held.records.remove(&finish.record));
            }
            (Fault::WritesTheStateBeforeTheAnswer, _) => {
                let answer = self.exchange(finish.record, None);
                yield_now().await;
                self.exchange(finish.record, answer);
            }
            (Fault::KeepsRejectionsBeyondTtl, Outcome::Rejected(_, keep)) => {
                let until = self.locked(|_, now| now.plus(*keep));
                self.change(finish.record, |row| row.expires_at = until);
            }
            (Fault::CountsWindowsFromTheClaimOnly, Outcome::Done(_)) => self.change(finish.record, |row| {
                let before = before.unwrap_or_else(|| row.clone());
                (row.expires_at, row.guard_until) = (before.expires_at, before.guard_until);
            }),
            _ => {}
        }
    }

    pub(super) async fn renew_one(&self, renewal: &Renewal, lease: Duration) -> Renewed {
        let mut renewal = *renewal;
        match self.fault {
            Fault::RenewsUnfenced => renewal.attempt = self.anybodys(renewal.record, renewal.attempt),
            Fault::ChecksThenRenews if self.row(renewal.record).is_some_and(|row| row.held_by(renewal.attempt)) => {
                yield_now().await;
                renewal.attempt = self.anybodys(renewal.record, renewal.attempt);
            }
            _ => {}
        }
        let before = self.row(renewal.record);
        let renewed = self.locked(|held, now| held.renew(&renewal, now.plus(lease)));
        if let (Fault::RenewsInWordsOnly, Some(before)) = (self.fault, before) {
            self.change(renewal.record, |row| row.lease_until = before.lease_until);
        }
        renewed
    }

    pub(super) async fn resolve_record(&self, resolve: &Resolve) -> bool {
        let mut resolve = resolve.clone();
        let before = self.row(resolve.record);
        match (self.fault, &before) {
            (Fault::ResolvesByAnyFence, Some(row)) => resolve.seen = row.fence,
            (Fault::ResolvesTheLive, Some(row)) if row.fence == resolve.seen => self.change(resolve.record, |row| {
                if matches!(row.state, State::InFlight | State::Done) {
                    (row.state, row.reason) = (State::InDoubt, Some(Reason::Status));
                }
            }),
            (Fault::BelievesTheLastRun, _) => self.change(resolve.record, |row| row.rerun_until = Millis::default()),
            (Fault::ResumesWhatIsHeld, _) if matches!(resolve.to, Resolution::Resume) => {
                self.change(resolve.record, |row| row.rerun_until = row.rerun_until.max(row.created_at.plus(TTL)));
            }
            (Fault::GuardsTheWindowsOnly, _) if !matches!(resolve.to, Resolution::Release) => {
                resolve.quarantine = Duration::ZERO;
            }
            (Fault::TakesACutForAnEnd, Some(row))
                if matches!(row.reason, Some(Reason::Timeout | Reason::Cancelled)) =>
            {
                self.change(resolve.record, |row| row.reason = Some(Reason::Status));
            }
            (Fault::IgnoresTheQuarantine, _) => resolve.quarantine = Duration::ZERO,
            (Fault::TakesVoidForRelease, _) if matches!(resolve.to, Resolution::Void) => {
                resolve.to = Resolution::Release;
            }
            (Fault::ChecksThenResolves, Some(row)) => {
                let steps = self.steps_of(resolve.record);
                let Some(row) = self.locked(|_, now| row.resolved(&resolve, &steps, now)) else { return false };
                yield_now().await;
                self.locked(|held, _| held.decide(&resolve, row.epoch));
                self.change(resolve.record, |stored| *stored = Row { fence: Fence(row.fence.0 + 1), ..row });
                self.exchange(resolve.record, resolve.to.response().cloned());
                return true;
            }
            _ => {}
        }
        let resolved = self.keeping_the_answer(resolve.record, || self.locked(|held, now| held.resolve(&resolve, now)));
        match (self.fault, before) {
            (Fault::ResolvesWithoutANewAttempt, Some(before)) => {
                self.change(resolve.record, |row| row.attempt = before.attempt);
            }
            (Fault::ResumesWithThePause, Some(before)) => {
                self.change(resolve.record, |row| row.recover_at = before.recover_at);
            }
            (Fault::ResumesInTheOldWindow, Some(before)) => {
                self.change(resolve.record, |row| row.rerun_until = before.rerun_until);
            }
            (Fault::GuardsTheQuarantineOnly, Some(before)) if resolved => self.change(resolve.record, |row| {
                row.guard_until = before.lease_until.plus(resolve.quarantine);
                row.expires_at = row.expires_at.min(row.guard_until);
            }),
            _ => {}
        }
        resolved
    }
}
