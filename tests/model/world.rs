//! What there is: the record, the workers, what they have done outside, what clients were told. No rule of the store.

use idem_runtime::state::{Facts, Reason, State};

/// What a request asks for. Two different ones are enough for a mismatch.
pub(crate) type Payload = u8;

/// The random id of a run, here a number that is never used twice. Nobody's is [`NOBODY`].
pub(crate) type Attempt = u8;

/// The attempt of a record that was settled: the old one can write no more.
pub(crate) const NOBODY: Attempt = 0;

/// A final answer that reports a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Answer {
    /// For whose payload it was made.
    pub(crate) payload: Payload,
    /// The run whose effect it reports.
    pub(crate) effect: Attempt,
    /// Put together by whoever settled a doubt. Another text than the run's own, so it counts as another answer.
    pub(crate) settled: bool,
}

/// What a provider keeps of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Effect {
    /// What the provider dedupes by, if it does.
    pub(crate) key: u8,
    pub(crate) answer: Answer,
}

/// What a store keeps. Its instants are told by events: an end that has passed is a `true`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools, reason = "independent instants, as in `Facts`")]
pub(crate) struct Row {
    pub(crate) state: State,
    pub(crate) reason: Option<Reason>,
    pub(crate) attempt: Attempt,
    pub(crate) fence: u8,
    /// The fence of the claim by which the key started afresh.
    pub(crate) epoch: u8,
    pub(crate) payload: Payload,
    pub(crate) answer: Option<Answer>,
    pub(crate) lease_over: bool,
    pub(crate) result_over: bool,
    pub(crate) guard_over: bool,
    pub(crate) quarantine_over: bool,
    /// Its operation may be run again, in its window.
    pub(crate) reruns: bool,
    pub(crate) rerun_over: bool,
}

impl Row {
    /// The facts of nobody in particular.
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            state: self.state,
            reason: self.reason,
            mine: false,
            same_payload: false,
            lease_over: self.lease_over,
            result_over: self.result_over,
            guard_over: self.guard_over,
            quarantine_over: self.quarantine_over,
            rerun_over: self.rerun_over,
            reruns: self.reruns,
            continued: self.fence != self.epoch && self.reruns,
        }
    }
}

/// A run, as the process sees it that runs it. Nothing tells it that its lease is over, so each of its steps may come
/// at any later time: a worker that does not move for a while is what SIGSTOP makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Run {
    pub(crate) attempt: Attempt,
    pub(crate) fence: u8,
    pub(crate) epoch: u8,
    pub(crate) payload: Payload,
    /// What its effect, or the provider's memory of one, gave it.
    pub(crate) answer: Option<Answer>,
    /// Its body has not been silent for longer than it can live.
    pub(crate) may_act: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Worker {
    Idle,
    Running(Run),
    /// Its body is gone, its request is on its way.
    Sent(Run),
    /// Its write was not accepted: it has yet to look at what is stored instead.
    Lost(Payload),
}

/// Between the look of a hook or an operator at the provider and the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Look {
    /// The fence of the record, for compare-and-set.
    pub(crate) fence: u8,
    /// What was found; `None`: nothing at all.
    pub(crate) found: Option<Answer>,
}

/// Everything. One key: keys do not meet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) row: Option<Row>,
    /// The row of a transaction that is not committed; its lock keeps all others out.
    pub(crate) open: Option<Row>,
    /// Sorted: workers differ in nothing but what they do, so states that differ in their order are one.
    pub(crate) workers: [Worker; 3],
    pub(crate) settling: Option<Look>,
    /// A purge has picked the record and will remove it.
    pub(crate) purging: bool,
    /// Effects since the key last started anew by right: after its windows.
    pub(crate) effects: Vec<Effect>,
    /// The final answer that clients have been told since then.
    pub(crate) told: Option<Answer>,
    /// The largest fence that the key ever had.
    pub(crate) fence: u8,
    /// How often something has happened that is bounded.
    pub(crate) runs: u8,
    pub(crate) expiries: u8,
    pub(crate) windows: u8,
    pub(crate) hooks: u8,
    /// Invariants that a step broke, as bits.
    pub(crate) broken: u16,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            row: None,
            open: None,
            workers: [Worker::Idle; 3],
            settling: None,
            purging: false,
            effects: Vec::new(),
            told: None,
            fence: 0,
            runs: 0,
            expiries: 0,
            windows: 0,
            hooks: 0,
            broken: 0,
        }
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.workers.iter().filter_map(|worker| match worker {
            Worker::Running(run) => Some(run),
            Worker::Idle | Worker::Sent(_) | Worker::Lost(_) => None,
        })
    }

    /// What may still act.
    pub(crate) fn runs_mut(&mut self) -> impl Iterator<Item = &mut Run> {
        self.workers.iter_mut().filter_map(|worker| match worker {
            Worker::Running(run) | Worker::Sent(run) => Some(run),
            Worker::Idle | Worker::Lost(_) => None,
        })
    }

    /// Requests without a body.
    pub(crate) fn sent(&self) -> impl Iterator<Item = &Run> {
        self.workers.iter().filter_map(|worker| match worker {
            Worker::Sent(run) => Some(run),
            Worker::Idle | Worker::Running(_) | Worker::Lost(_) => None,
        })
    }

    /// Replaces the first worker that is `before`, if there is one.
    pub(crate) fn turn(&mut self, before: Worker, after: Worker) -> bool {
        let Some(worker) = self.workers.iter_mut().find(|worker| **worker == before) else { return false };
        *worker = after;
        true
    }

    /// The record is open, and nobody is known to run: an operator may settle it.
    pub(crate) fn in_doubt(&self) -> Option<&Row> {
        let open = |row: &&Row| match row.state {
            State::InDoubt | State::Resumable => true,
            State::InFlight => row.lease_over,
            _ => false,
        };
        self.row.as_ref().filter(open)
    }
}
