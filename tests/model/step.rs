//! What can happen next: every step of every worker, of time, of whoever settles, and of the purge.

use idem_runtime::state::{Event, Reason, State};
use stateright::{Model, Property};

use crate::{
    config::{Config, CutOff, Dedupe, Mode, Release, Settler},
    invariant::Invariant,
    reached::Reached,
    store::Ended,
    world::{Answer, Attempt, Payload, Run, Worker, World},
};

/// One step. Runs are told apart by their attempt, so that a path can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A request comes in and is told what the record says, or runs.
    Request(Payload),
    /// The body acts outside of the database.
    Act(Attempt),
    /// The outcome is stored; in a transaction, effect and outcome are committed.
    Complete(Attempt),
    /// The same, and the reply is lost.
    CompleteUnheard(Attempt),
    /// A 5xx, an error, a panic, a time-out. The body has ended.
    Fail(Attempt),
    /// Its body is cut off while it waits for the provider, and reports that.
    CutOff(Attempt),
    /// The request of a body that was cut off has its effect.
    Arrive(Attempt),
    /// A client error that is given back: nothing happened.
    Release(Attempt),
    /// A client error that is kept for a while.
    Reject(Attempt),
    /// A shutdown gives the body up while it may still act.
    GiveUp(Attempt),
    Renew(Attempt),
    Crash(Attempt),
    /// Whoever lost looks at what is stored.
    ReadAgain(Payload),
    LeaseEnds,
    QuarantineEnds,
    RerunWindowEnds,
    ReplayWindowEnds,
    GuardEnds,
    /// A hook or an operator looks at the provider.
    Look,
    Settle,
    PurgePicks,
    Purge,
    Strip,
}

/// A configuration, as the checker takes it.
pub(crate) struct Checked {
    pub(crate) config: Config,
    pub(crate) invariants: Vec<Invariant>,
    pub(crate) reached: Vec<Reached>,
}

/// Of what the checker looks at in each state.
pub(crate) type Condition = fn(&Checked, &World) -> bool;

impl Model for Checked {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World::new()]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        use Step::{
            Act, Arrive, Complete, CompleteUnheard, Crash, Fail, GiveUp, GuardEnds, LeaseEnds, Look, Purge, PurgePicks,
            QuarantineEnds, ReadAgain, Reject, Release, Renew, ReplayWindowEnds, Request, Settle, Strip,
        };
        steps.extend([Request(0), Request(1), LeaseEnds, ReplayWindowEnds, GuardEnds, Strip]);
        for run in world.runs().map(|run| run.attempt) {
            let all = [Act, Complete, CompleteUnheard, Fail, Release, Reject, GiveUp, Renew, Crash];
            steps.extend(all.map(|step| step(run)));
            steps.extend((self.config.cut_off != CutOff::Never).then_some(Step::CutOff(run)));
        }
        steps.extend(world.sent().map(|run| Arrive(run.attempt)));
        for payload in [0, 1] {
            if world.workers.contains(&Worker::Lost(payload)) {
                steps.push(ReadAgain(payload));
            }
        }
        if self.config.settler.is_some() {
            steps.extend([Look, Settle, QuarantineEnds]);
        }
        if self.config.rerun_ends {
            steps.push(Step::RerunWindowEnds);
        }
        if self.config.purge.is_some() {
            steps.extend([PurgePicks, Purge]);
        }
    }

    fn next_state(&self, before: &World, step: Step) -> Option<World> {
        let mut world = before.clone();
        world.step(&self.config, step);
        if world == *before {
            return None; // told off, or nothing to do
        }
        world.workers.sort_unstable();
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = self.invariants.iter().copied().map(Invariant::property);
        let sometimes = self.reached.iter().copied().map(Reached::property);
        always
            .map(|(name, holds)| Property::always(name, holds))
            .chain(sometimes.map(|(name, holds)| Property::sometimes(name, holds)))
            .collect()
    }
}

impl World {
    fn step(&mut self, config: &Config, step: Step) {
        match step {
            Step::Request(payload) => self.request(config, payload),
            Step::ReadAgain(payload) => {
                if self.turn(Worker::Lost(payload), Worker::Idle) {
                    self.read_again(config, payload);
                }
            }
            Step::Act(attempt)
            | Step::Complete(attempt)
            | Step::CompleteUnheard(attempt)
            | Step::Fail(attempt)
            | Step::CutOff(attempt)
            | Step::Release(attempt)
            | Step::Reject(attempt)
            | Step::GiveUp(attempt)
            | Step::Renew(attempt)
            | Step::Crash(attempt) => {
                let Some(run) = self.runs().find(|run| run.attempt == attempt).copied() else { return };
                match config.mode {
                    Mode::Held => self.held(config, run, step),
                    Mode::OneTransaction | Mode::LeasedTransaction => self.in_transaction(config, run, step),
                }
            }
            Step::Arrive(attempt) => self.arrive(config, attempt),
            Step::LeaseEnds if self.expiries < config.expiries => self.lease_ends(config),
            Step::RerunWindowEnds => self.rerun_window_ends(),
            Step::ReplayWindowEnds if self.windows < config.windows => self.replay_window_ends(),
            Step::GuardEnds => self.guard_ends(config),
            Step::QuarantineEnds => self.quarantine_ends(),
            Step::Look if self.settling.is_none() => {
                if let Some(settler) = config.settler {
                    self.look(settler);
                }
            }
            Step::Settle => {
                if let Some(settler) = config.settler {
                    self.settle(settler);
                }
            }
            Step::PurgePicks => self.pick(),
            Step::Purge if self.purging && self.open.is_none() => self.purge(config.purge == Some(true)),
            Step::Strip => self.strip(),
            Step::LeaseEnds | Step::ReplayWindowEnds | Step::Look | Step::Purge => {}
        }
    }

    fn look(&mut self, settler: Settler) {
        // An operator who lets it be run again may do so for ever; any other decision waits for a run.
        if let Settler::Hook(_) | Settler::Operator(Release::Resume) = settler {
            if self.hooks == 2 {
                return;
            }
            self.look_at_provider(settler);
            self.hooks += u8::from(self.settling.is_some());
        } else {
            self.look_at_provider(settler);
        }
    }

    /// A step of a body that acts outside of the database.
    fn held(&mut self, config: &Config, run: Run, step: Step) {
        let stops = !config.late && self.in_doubt().is_some_and(|row| row.attempt == run.attempt);
        let (event, reason) = match step {
            Step::Crash(_) => {
                self.turn(Worker::Running(run), Worker::Idle);
                return;
            }
            Step::Act(_) => return self.act_outside(config, run),
            Step::CutOff(_) if run.answer.is_none() => return self.cut_off(config, run),
            Step::Renew(_) if config.late => return self.renew(run.attempt),
            _ if stops => return,
            Step::Complete(_) if run.answer.is_some() => (Event::Complete, None),
            Step::CompleteUnheard(_) if run.answer.is_some() => {
                self.finish(config, &run, Event::Complete, None); // it will try again, or be dropped
                return;
            }
            Step::Fail(_) if config.release_errors => (Event::Release, Some(Reason::Status)),
            Step::Fail(_) => (cannot_tell(config), Some(Reason::Status)),
            Step::Release(_) | Step::Reject(_) if !config.client_errors || run.answer.is_some() => return,
            Step::Release(_) | Step::Reject(_) if run.continues(config) => (Event::Suspend, Some(Reason::Status)),
            Step::Release(_) => (Event::Release, Some(Reason::Status)),
            Step::Reject(_) => (Event::Reject, None),
            Step::GiveUp(_) => {
                // Its process goes on for a moment; nobody waits for what the store says.
                let in_flight = self.row.as_ref().is_some_and(|row| row.state == State::InFlight);
                if in_flight {
                    self.finish(config, &run, cannot_tell(config), Some(Reason::Shutdown));
                }
                return;
            }
            _ => return,
        };
        let ended = self.finish(config, &run, event, reason);
        self.end(config, run, ended, run.answer.filter(|_| event == Event::Complete));
    }

    /// Its request is before the provider. Nobody is left to hear what the store says.
    fn cut_off(&mut self, config: &Config, run: Run) {
        let reason = if config.cut_off == CutOff::TimedOut { Reason::Timeout } else { Reason::Status };
        self.finish(config, &run, Event::Hold, Some(reason));
        self.turn(Worker::Running(run), Worker::Sent(run));
    }

    /// Nobody is there any more to hear of it.
    fn arrive(&mut self, config: &Config, attempt: Attempt) {
        let Some(run) = self.sent().find(|run| run.attempt == attempt).copied() else { return };
        self.turn(Worker::Sent(run), Worker::Running(run));
        self.act_outside(config, run);
        let ran = self.runs().find(|run| run.attempt == attempt).copied();
        if let Some(run) = ran {
            self.turn(Worker::Running(run), Worker::Idle);
        }
    }

    fn act_outside(&mut self, config: &Config, run: Run) {
        if !run.may_act || run.answer.is_some() {
            return;
        }
        let key = match config.dedupe {
            Dedupe::No => run.attempt,
            Dedupe::ByRecord => 0,
            Dedupe::ByEpoch => run.epoch,
        };
        let known = self.effects.iter().find(|effect| effect.key == key).map(|effect| effect.answer);
        let answer = match known {
            Some(answer) if answer.payload != run.payload => return, // the provider refuses: its key, other parameters
            Some(answer) => answer,
            None => {
                let answer = Answer { payload: run.payload, effect: run.attempt, settled: false };
                self.act(answer, key);
                answer
            }
        };
        self.turn(Worker::Running(run), Worker::Running(Run { answer: Some(answer), ..run }));
    }

    /// A step of a body whose effect is in the transaction.
    fn in_transaction(&mut self, config: &Config, run: Run, step: Step) {
        let answer = Answer { payload: run.payload, effect: run.attempt, settled: false };
        match step {
            Step::Complete(_) => {
                let ended = self.commit(config, &run, answer);
                self.end(config, run, ended, Some(answer));
            }
            Step::CompleteUnheard(_) => {
                self.commit(config, &run, answer);
                self.turn(Worker::Running(run), Worker::Lost(run.payload));
            }
            Step::Fail(_) => {
                let ended = self.roll_back(config, &run);
                self.end(config, run, ended, None);
            }
            Step::Crash(_) => {
                self.open.take_if(|open| open.attempt == run.attempt);
                self.turn(Worker::Running(run), Worker::Idle);
            }
            _ => {}
        }
    }

    /// What an owner does once it knows whether its write counted. `answer`: what it has for its client.
    fn end(&mut self, config: &Config, run: Run, ended: Ended, answer: Option<Answer>) {
        match (ended, answer) {
            (Ended::Lost, Some(_)) if config.loser_answers => {}
            (Ended::Lost, _) => {
                self.turn(Worker::Running(run), Worker::Lost(run.payload));
                return;
            }
            (Ended::Stored, _) => {}
        }
        if let Some(answer) = answer {
            self.tell(run.payload, answer);
        }
        self.turn(Worker::Running(run), Worker::Idle);
    }
}

/// What a run says that does not know whether it took effect.
fn cannot_tell(config: &Config) -> Event {
    if config.rerun { Event::Suspend } else { Event::Hold }
}

impl Run {
    /// It must not speak for the runs before it.
    pub(crate) fn continues(&self, config: &Config) -> bool {
        self.fence != self.epoch && !config.second_releases
    }
}
