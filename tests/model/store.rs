//! The store's verbs. What is decided is decided by `idem_runtime::state`; a wrong configuration lies to it, or asks
//! for another move.

use idem_runtime::state::{self, Event, Facts, Reason, State, Verdict};

use crate::{
    config::{Compare, Config, Mode, Release, Settler},
    invariant::By,
    world::{Answer, Attempt, Look, NOBODY, Payload, Row, Run, Worker, World},
};

/// What became of an owner's write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Stored,
    Lost,
}

impl World {
    /// A request comes in. What it is told it is told at once; if it is granted the record, its body runs.
    pub(crate) fn request(&mut self, config: &Config, payload: Payload) {
        if self.open.is_some() {
            return; // "in flight": the lock of the open transaction is not to be had
        }
        match self.verdict(config, payload) {
            Verdict::Take if self.runs < config.runs => self.take(config, payload),
            Verdict::Answered => self.replay(payload),
            _ => {}
        }
    }

    pub(crate) fn verdict(&self, config: &Config, payload: Payload) -> Verdict {
        let Some(row) = &self.row else { return Verdict::Take };
        state::claim(&Facts { same_payload: row.payload == payload, ..row.facts() }, config.rerun)
    }

    fn replay(&mut self, payload: Payload) {
        if let Some(answer) = self.row.as_ref().and_then(|row| row.answer) {
            self.tell(payload, answer);
        }
    }

    fn take(&mut self, config: &Config, payload: Payload) {
        if !self.workers.contains(&Worker::Idle) {
            return;
        }
        self.runs += 1;
        let (attempt, fence) = (self.runs, self.next_fence(config));
        let goes_on = self.row.as_ref().filter(|row| !row.state.starts_afresh());
        let (epoch, rerun_over) = goes_on.map_or((fence, !config.rerun), |row| (row.epoch, row.rerun_over));
        let reruns = config.rerun && config.mode == Mode::Held; // an older transaction commits nothing any more
        let row = Row {
            state: State::InFlight,
            reason: None,
            attempt,
            fence,
            epoch,
            payload,
            answer: None,
            lease_over: false,
            result_over: false,
            guard_over: false,
            quarantine_over: false,
            reruns,
            rerun_over,
        };
        if config.mode == Mode::OneTransaction {
            self.open = Some(row);
        } else {
            self.replace(Some(row), By::Claim);
        }
        let run = Run { attempt, fence, epoch, payload, answer: None, may_act: true };
        self.turn(Worker::Idle, Worker::Running(run));
    }

    /// From the store's sequence; the wrong way is a counter in the record.
    fn next_fence(&self, config: &Config) -> u8 {
        if config.compare == Compare::Counter {
            self.row.as_ref().map_or(1, |row| row.fence + 1)
        } else {
            self.fence + 1
        }
    }

    /// The end of a run.
    pub(crate) fn finish(&mut self, config: &Config, run: &Run, event: Event, reason: Option<Reason>) -> Ended {
        let Some(row) = &self.row else { return Ended::Lost };
        let mine = match config.compare {
            Compare::Attempt => row.attempt == run.attempt,
            Compare::Counter => row.fence == run.fence,
            Compare::Nothing => true,
        };
        let continued = row.facts().continued && !config.second_releases;
        let state = match state::next(&Facts { mine, continued, ..row.facts() }, event) {
            Some(state) => state,
            None if config.compare == Compare::Nothing => wanted(event),
            None if mine && row.state == wanted(event) => return Ended::Stored, // the reply to an earlier try was lost
            None => return Ended::Lost,
        };
        let mut row = Row { state, reason, ..row.clone() };
        match state {
            State::Done => {
                row.answer = run.answer;
                row.grant_windows();
            }
            State::InDoubt | State::Resumable => row.lease_over = true,
            _ => {}
        }
        self.replace(Some(row), By::Owner(run.attempt));
        Ended::Stored
    }

    /// The end of a run in whose transaction all else is, too. `ended`: its session was ended by the server meanwhile.
    pub(crate) fn commit(&mut self, config: &Config, run: &Run, answer: Answer) -> Ended {
        let run = Run { answer: Some(answer), ..*run };
        if config.mode == Mode::OneTransaction {
            match self.open.take_if(|open| open.attempt == run.attempt) {
                Some(open) => self.replace(Some(open), By::Claim),
                None => return Ended::Lost,
            }
        }
        let ended = self.finish(config, &run, Event::Complete, None);
        if ended == Ended::Stored {
            self.act(answer, answer.effect);
        }
        ended
    }

    /// The end of a run in whose transaction all else is, without any effect.
    pub(crate) fn roll_back(&mut self, config: &Config, run: &Run) -> Ended {
        if config.mode == Mode::OneTransaction {
            self.open.take_if(|open| open.attempt == run.attempt);
            return Ended::Stored;
        }
        let ended = self.finish(config, run, Event::Release, Some(Reason::Status));
        if ended == Ended::Stored && config.delete_released {
            self.replace(None, By::Release);
        }
        ended
    }

    /// A ticker proves that the process lives, whoever has seen the lease end.
    pub(crate) fn renew(&mut self, attempt: Attempt) {
        if let Some(row) = &mut self.row
            && row.state == State::InFlight
            && row.attempt == attempt
        {
            (row.lease_over, row.quarantine_over) = (false, false);
        }
    }

    /// A hook or an operator looks for the effect at the provider.
    pub(crate) fn look_at_provider(&mut self, settler: Settler) {
        let Some(row) = self.in_doubt().cloned() else { return };
        let found = self.effects.first().map(|effect| Answer { settled: true, ..effect.answer });
        if found.is_some_and(|found| found.payload != row.payload) {
            return; // not the effect of this request: nobody can tell
        }
        let may_release = || state::next(&row.facts(), Event::ResolveReleased).is_some();
        let worth_it = match settler.release() {
            _ if found.is_some() => true,
            Release::Never => false,
            Release::QuarantinedAtTheLook => may_release(),
            Release::QuarantinedAtTheEnd | Release::AtOnce | Release::Void | Release::Resume => true,
        };
        if !worth_it {
            return;
        }
        let mut fence = row.fence;
        if let Settler::Hook(_) = settler {
            let Some(state) = state::next(&row.facts(), Event::Recover) else { return };
            fence = self.fence + 1;
            let reason = match row.state {
                State::InFlight => Some(Reason::LeaseExpired),
                State::Resumable => Some(Reason::Abandoned),
                _ => row.reason,
            };
            let taken = Row { state, reason, attempt: NOBODY, fence, ..row };
            self.replace(Some(taken), By::Recovery);
        }
        self.settling = Some(Look { fence, found });
    }

    /// It decides.
    pub(crate) fn settle(&mut self, settler: Settler) {
        let Some(look) = self.settling.take() else { return };
        let Some(row) = self.row.as_ref().filter(|row| row.fence == look.fence) else { return };
        let closes = look.found.is_some() || settler.release() == Release::Void;
        let event = match settler.release() {
            _ if closes => Event::ResolveDone,
            Release::Resume => Event::ResolveResumed,
            _ => Event::ResolveReleased,
        };
        let quarantine_over = row.quarantine_over || settler.release() == Release::AtOnce;
        let Some(state) = state::next(&Facts { quarantine_over, ..row.facts() }, event) else { return };
        let fence = self.fence + 1;
        let answer = look.found.filter(|_| state == State::Done);
        let mut row = Row { state, reason: Some(Reason::Operator), attempt: NOBODY, fence, answer, ..row.clone() };
        match state {
            State::Done => row.grant_windows(),
            State::Resumable => row.rerun_over = false, // its window begins anew
            _ => {}
        }
        self.replace(Some(row), By::Settler);
    }

    /// A purge finds the record.
    pub(crate) fn pick(&mut self) {
        self.purging = self.row.as_ref().is_some_and(|row| state::may_remove(&row.facts()));
    }

    /// It removes what it found. `again`: compares once more, under the lock.
    pub(crate) fn purge(&mut self, again: bool) {
        self.purging = false;
        let due = self.row.as_ref().is_some_and(|row| state::may_remove(&row.facts()));
        if due || !again {
            self.replace(None, By::Purge);
        }
    }

    /// It drops the answer.
    pub(crate) fn strip(&mut self) {
        if let Some(row) = self.row.as_mut().filter(|row| state::may_strip(&row.facts())) {
            row.answer = None;
        }
    }

    /// What a loser does: it serves what is stored.
    pub(crate) fn read_again(&mut self, config: &Config, payload: Payload) {
        if self.verdict(config, payload) == Verdict::Answered {
            self.replay(payload);
        }
    }
}

impl Row {
    /// An answer in time leaves the windows as they are; a late one gets them anew. Either way they are not over.
    fn grant_windows(&mut self) {
        (self.result_over, self.guard_over) = (false, false);
    }
}

/// What an owner's write makes of a record if nobody minds.
fn wanted(event: Event) -> State {
    match event {
        Event::Complete | Event::ResolveDone => State::Done,
        Event::Reject => State::Rejected,
        Event::Release | Event::ResolveReleased => State::Released,
        Event::Hold | Event::Recover => State::InDoubt,
        Event::Suspend | Event::ResolveResumed => State::Resumable,
        Event::Claim { .. } => State::InFlight,
    }
}
