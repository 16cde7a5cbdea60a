//! What every store makes of a record. Pure: the store brings the row, its clock's time and a lock.

use std::time::{Duration, SystemTime};

use super::{
    Attempt, Claim, Claimed, Fence, Finish, Found, Outcome, Owned, Peek, Record, Replay, Resolve, Step, StoredResponse,
};
use crate::{
    fingerprint::Fingerprint,
    key::RecordId,
    state::{self, Event, Facts, Reason, State, Verdict},
};

/// An instant of a store's clock, in milliseconds since that clock's zero: the only unit of time in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Millis(pub(super) i64);

impl Millis {
    /// This much later. Rounds up, so that no lease or window is shorter than promised.
    pub(super) fn plus(self, by: Duration) -> Self {
        let by = i64::try_from(by.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(by))
    }

    /// The time since `earlier`; zero if that is later, for a wall clock may be set back.
    pub(super) fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// What a store keeps of a record and compares.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) state: State,
    pub(super) reason: Option<Reason>,
    pub(super) fence: Fence,
    pub(super) attempt: Attempt,
    pub(super) attempts: u32,
    pub(super) epoch: Fence,
    pub(super) fingerprint: Fingerprint,
    pub(super) lease_until: Millis,
    pub(super) created_at: Millis,
    pub(super) expires_at: Millis,
    pub(super) guard_until: Millis,
    /// How often a recovery has tried to settle this run.
    pub(super) tries: u32,
    /// Before this, no recovery tries (again).
    pub(super) recover_at: Millis,
    /// Until then the operation may be run again; zero: never.
    pub(super) rerun_until: Millis,
}

/// What a finish makes of a row.
#[derive(Debug)]
pub(super) enum Ending {
    /// The row is to become this one.
    Moved(Row),
    /// It already did: the reply to an earlier try was lost.
    Repeated,
    /// It is another attempt's, or settled.
    Lost,
}

impl Row {
    /// The row of a claim that takes the record, whose row was `before`.
    pub(super) fn taken(before: Option<&Self>, claim: &Claim, fence: Fence, now: Millis) -> Self {
        let attempts = before.map_or(0, |row| row.attempts);
        let rerun_until = if claim.rerun.is_zero() { Millis::default() } else { now.plus(claim.rerun) };
        let goes_on = before.filter(|row| !row.state.starts_afresh());
        let (epoch, rerun_until) = goes_on.map_or((fence, rerun_until), |row| (row.epoch, row.rerun_until));
        Self {
            state: State::InFlight,
            reason: None,
            fence,
            attempt: claim.attempt,
            attempts: attempts + 1,
            epoch,
            fingerprint: claim.fingerprint,
            lease_until: now.plus(claim.lease),
            created_at: now,
            expires_at: now.plus(claim.ttl),
            guard_until: now.plus(claim.guard.max(claim.ttl)),
            tries: 0,
            recover_at: Millis::default(),
            rerun_until,
        }
    }

    /// What a claim by `asker` finds; `None` where it may take the record. `response` is the stored one, if any.
    pub(super) fn look(
        &self,
        peek: &Peek,
        asker: Option<Attempt>,
        response: Option<StoredResponse>,
        now: Millis,
    ) -> Option<Claimed> {
        let facts = Facts {
            mine: asker == Some(self.attempt),
            same_payload: self.fingerprint.matches(&peek.fingerprint),
            ..self.facts(now)
        };
        Some(match state::claim(&facts, peek.rerun) {
            Verdict::Take => return None,
            Verdict::Mine => Claimed::Owner(self.owned()),
            Verdict::InFlight => Claimed::Found(Found::InFlight { age: now.since(self.created_at) }),
            Verdict::InDoubt(reason) => Claimed::Found(Found::InDoubt(reason)),
            Verdict::Mismatch => Claimed::Found(Found::Mismatch),
            Verdict::Answered => Claimed::Found(self.answer(response, now)),
            Verdict::Expired => Claimed::Found(Found::Expired),
            // Another scope's record is not told of, whatever it is; of the payload nothing is known, for the state may be free.
            Verdict::Unknown if !self.fingerprint.is_of_the_scope_of(&peek.fingerprint) => {
                Claimed::Found(Found::Mismatch)
            }
            Verdict::Unknown => Claimed::Found(Found::Unknown),
        })
    }

    fn answer(&self, response: Option<StoredResponse>, now: Millis) -> Found {
        match response {
            Some(response) if response.body.is_some() => Found::Replay(Replay {
                response,
                fingerprint: self.fingerprint,
                ttl_left: self.expires_at.since(now),
                is_final: self.state == State::Done,
            }),
            response => Found::NotRetained { status: response.and_then(|response| response.status) },
        }
    }

    /// What the owner gets.
    pub(super) fn owned(&self) -> Owned {
        Owned { fence: self.fence, attempts: self.attempts, epoch: self.epoch }
    }

    /// What the end of an attempt's run makes of this row.
    pub(super) fn finish(&self, finish: &Finish, now: Millis) -> Ending {
        let mine = finish.attempt == self.attempt;
        let Some(state) = state::next(&Facts { mine, ..self.facts(now) }, finish.outcome.event()) else {
            return if mine && self.state == finish.outcome.state() { Ending::Repeated } else { Ending::Lost };
        };
        let mut row = Self { state, reason: finish.outcome.reason(), ..self.clone() };
        match finish.outcome {
            Outcome::Done(_) => row.grant_windows(now),
            Outcome::Rejected(_, keep) => row.expires_at = row.expires_at.min(now.plus(keep)),
            // A released record protects nothing; it keeps its windows, so that no index is touched.
            Outcome::Released(_) => {}
            Outcome::InDoubt(_) | Outcome::Resumable(_) => row.lease_until = row.lease_until.min(now),
        }
        Ending::Moved(row)
    }

    /// How much longer the answer is due; zero where there is none.
    pub(super) fn ttl_left(&self, now: Millis) -> Duration {
        match self.state {
            State::Done | State::Rejected => self.expires_at.since(now),
            State::InFlight | State::Released | State::InDoubt | State::Resumable | State::Unknown(_) => Duration::ZERO,
        }
    }

    /// The attempt still runs, so it may prolong its lease.
    pub(super) fn held_by(&self, attempt: Attempt) -> bool {
        self.state == State::InFlight && self.attempt == attempt
    }

    /// What a decision makes of this row, whose epoch has these steps, but for its new fence; `None` if it is not allowed. The
    /// new attempt is nobody's, so the old one can write no more.
    pub(super) fn resolved(&self, resolve: &Resolve, steps: &[Step], now: Millis) -> Option<Self> {
        if self.fence != resolve.seen || !resolve.to.fits(steps) {
            return None;
        }
        let quarantined = self.lease_until.plus(resolve.quarantine);
        let quarantine_over = quarantined <= now;
        let facts = Facts { quarantine_over, ..self.facts(now) };
        if resolve.to.does_anew() {
            state::next(&facts, Event::ResolveReleased)?;
        }
        let state = state::next(&facts, resolve.to.event())?;
        let mut row = Self { state, reason: Some(resolve.reason), attempt: Attempt::random(), ..self.clone() };
        if state == State::Done {
            row.grant_windows(now);
            // The first body may act until then, so the next retry must not run before, however short the windows are.
            row.guard_until = row.guard_until.max(quarantined);
        }
        if state == State::Resumable {
            row.rerun_until = now.plus(resolve.rerun);
            row.recover_at = Millis::default(); // whoever tried has said what it knows
        }
        Some(row)
    }

    /// What a decision finds: one in flight may be settled only if its lease is over, and is in doubt.
    pub(super) fn settled_from(&self) -> State {
        if self.state == State::InFlight { State::InDoubt } else { self.state }
    }

    /// The windows count from the claim. An answer that comes when half of its replay window is over or more gets both
    /// windows anew: else a run longer than its ttl, or a doubt that was settled late, would be run again by the next
    /// retry. All others stay as they are, so that a completion need not touch an index.
    fn grant_windows(&mut self, now: Millis) {
        let (ttl, guard) = (self.expires_at.since(self.created_at), self.guard_until.since(self.created_at));
        if now.since(self.created_at) >= ttl / 2 {
            self.expires_at = now.plus(ttl);
            self.guard_until = now.plus(guard);
        }
    }

    /// The record as operators see it. `wall` is the wall clock's time at `now`.
    pub(super) fn record(
        &self,
        id: RecordId,
        (op, scope): (String, String),
        links: Vec<(String, String)>,
        now: Millis,
        wall: SystemTime,
    ) -> Record {
        let (state, reason) = self.shown(now);
        Record {
            id,
            op,
            scope,
            state,
            reason,
            fence: self.fence,
            attempt: self.attempt,
            attempts: self.attempts,
            epoch: self.epoch,
            created_at: wall_time(self.created_at, now, wall),
            age: now.since(self.created_at),
            lease_left: self.lease_until.since(now),
            silent_for: now.since(self.lease_until),
            tries: self.tries,
            expires_at: wall_time(self.expires_at, now, wall),
            links,
        }
    }

    /// Where it stands for whoever looks: time moves a record without anybody writing it (T8b, T10).
    pub(super) fn shown(&self, now: Millis) -> (State, Option<Reason>) {
        let Facts { lease_over, rerun_over, .. } = self.facts(now);
        match self.state {
            State::InFlight if lease_over && rerun_over => (State::InDoubt, Some(Reason::LeaseExpired)),
            State::InFlight if lease_over => (State::Resumable, Some(Reason::LeaseExpired)),
            State::Resumable if rerun_over => (State::InDoubt, Some(Reason::Abandoned)),
            state => (state, self.reason),
        }
    }

    /// How long it has been in doubt; `None` if it is not. The lease's end is since when, as an owner's own report ends it;
    /// but while it might have been run again, it was not in doubt.
    pub(super) fn doubtful_for(&self, now: Millis) -> Option<Duration> {
        let since = match self.state {
            State::InDoubt => self.lease_until,
            _ => self.lease_until.max(self.rerun_until),
        };
        (self.shown(now).0 == State::InDoubt).then(|| now.since(since))
    }

    /// The facts of nobody in particular.
    pub(super) fn facts(&self, now: Millis) -> Facts {
        Facts {
            state: self.state,
            reason: self.reason,
            mine: false,
            same_payload: false,
            lease_over: self.lease_until <= now,
            result_over: self.expires_at <= now,
            guard_over: self.guard_until <= now,
            quarantine_over: false,
            rerun_over: self.rerun_until <= now,
            reruns: self.reruns(),
            continued: self.fence != self.epoch && self.reruns(),
        }
    }

    /// A record that is never run again has one run in an epoch, whoever has moved its fence.
    fn reruns(&self) -> bool {
        self.rerun_until > Millis::default()
    }
}

/// What the wall clock says at `instant`, if it says `wall` at `now`.
fn wall_time(instant: Millis, now: Millis, wall: SystemTime) -> SystemTime {
    let moved = if instant < now { wall.checked_sub(now.since(instant)) } else { wall.checked_add(instant.since(now)) };
    moved.unwrap_or(SystemTime::UNIX_EPOCH)
}
