//! What a run knows of its operation's steps: those of earlier runs, and its own.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    panic::Location,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;

use super::StepCall;
use crate::{
    outcome::Journaled,
    state::Reason,
    store::{Step, StepKind},
};

/// Shared by the body's [`Steps`](super::Steps) and the lease, which must know what to make of the record when the body ends or
/// is dropped.
#[derive(Default)]
pub(crate) struct Journal(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    /// As the store keeps them.
    known: HashMap<String, Known>,
    /// Where the body has named each of them in this run.
    named: HashMap<String, &'static Location<'static>>,
    /// One may have taken effect, in this run or an earlier one.
    begun: bool,
    /// One has.
    done: bool,
    /// Those that were begun, must not be run again, and have not ended.
    uncertain: HashSet<String>,
    doubt: Option<Reason>,
}

struct Known {
    kind: StepKind,
    input: Option<[u8; 32]>,
    result: Option<Bytes>,
    started: Instant,
}

/// What is known of a step before it is run.
pub(super) enum Before {
    New,
    /// Begun by an earlier run, which did not say what it came to.
    Begun {
        /// How long ago it was begun for the first time.
        age: Duration,
    },
    Done(Bytes),
    /// The program has changed: what is recorded is another step.
    Another(&'static str),
}

impl Journal {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What earlier runs have left.
    pub(crate) fn load(&self, steps: Vec<Step>) {
        let mut pages = self.pages();
        for step in steps {
            pages.begun = true;
            pages.note(step);
        }
    }

    /// The body names a step.
    ///
    /// # Errors
    /// Where it has named it before: a name is one step.
    pub(super) fn name(&self, step: &StepCall<'_>) -> Result<(), &'static Location<'static>> {
        match self.pages().named.insert(step.name.to_owned(), step.at) {
            None => Ok(()),
            Some(first) => Err(first),
        }
    }

    pub(super) fn before(&self, step: &StepCall<'_>) -> Before {
        let pages = self.pages();
        let Some(known) = pages.known.get(step.name) else { return Before::New };
        if known.kind != step.kind {
            return Before::Another("it is recorded as a step of another kind");
        }
        if known.input.is_some() && step.input.is_some() && known.input != step.input {
            return Before::Another("it is recorded with another input");
        }
        match &known.result {
            Some(result) => Before::Done(result.clone()),
            None => Before::Begun { age: known.started.elapsed() },
        }
    }

    /// The step is about to take effect. `again`: should it not end, it may be run again.
    pub(super) fn begin(&self, name: &str, again: bool) {
        let mut pages = self.pages();
        pages.begun = true;
        if !again {
            pages.uncertain.insert(name.to_owned());
        }
    }

    /// As the store keeps it now.
    pub(super) fn note(&self, step: Step) {
        self.pages().note(step);
    }

    pub(super) fn end(&self, name: &str) {
        let mut pages = self.pages();
        pages.done = true;
        pages.uncertain.remove(name);
    }

    /// Nobody but an operator can say how it goes on. The first reason counts.
    pub(super) fn doubt(&self, reason: Reason) {
        self.pages().doubt.get_or_insert(reason);
    }

    pub(crate) fn so_far(&self) -> Journaled {
        let pages = self.pages();
        let unknown = (!pages.uncertain.is_empty()).then_some(Reason::StepUnknown);
        Journaled {
            begun: pages.begun,
            done: pages.done,
            doubt: pages.doubt.or(unknown),
            left_out: pages.known.keys().any(|name| !pages.named.contains_key(name)),
        }
    }
}

impl Pages {
    fn note(&mut self, Step { name, kind, input, result, age }: Step) {
        self.done |= result.is_some();
        let now = Instant::now();
        let started = now.checked_sub(age).unwrap_or(now);
        self.known.insert(name, Known { kind, input, result, started });
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Journal").field(&self.so_far()).finish()
    }
}
