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
    /// The end of the run is judged: whoever still has a hand on its steps begins nothing any more.
    closed: bool,
    /// One may have taken effect, in this run or an earlier one.
    begun: bool,
    /// One has, whether or not its result is stored; or a provider's id is recorded.
    done: bool,
    /// Those that were begun, must not be run again, and have not ended.
    uncertain: HashSet<String>,
    doubt: Option<Reason>,
}

struct Known {
    kind: StepKind,
    input: Option<[u8; 32]>,
    result: Option<Bytes>,
    age: Duration,
    noted: Instant,
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
            None => Before::Begun { age: known.age + known.noted.elapsed() },
        }
    }

    /// A step is about to be begun; `false` if it must not be: the run is over.
    #[must_use]
    pub(super) fn begin(&self) -> bool {
        let mut pages = self.pages();
        pages.begun |= !pages.closed;
        !pages.closed
    }

    /// A provider's id is recorded, so something has happened at the provider, in a step or outside of one.
    pub(crate) fn linked(&self) {
        let mut pages = self.pages();
        if !pages.closed {
            (pages.begun, pages.done) = (true, true);
        }
    }

    /// The step is about to take effect; should it not end, it must not be run again.
    pub(super) fn only_once(&self, name: &str) {
        self.pages().uncertain.insert(name.to_owned());
    }

    /// A step has taken effect; that is not stored yet.
    pub(super) fn acted(&self) {
        self.pages().done = true;
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

    /// What all steps have come to, for a run whose body may still begin one.
    pub(crate) fn so_far(&self) -> Journaled {
        self.pages().so_far()
    }

    /// As [`so_far`](Self::so_far), at the end of the run: nothing is begun after this.
    pub(crate) fn close(&self) -> Journaled {
        let mut pages = self.pages();
        pages.closed = true;
        pages.so_far()
    }
}

impl Pages {
    fn so_far(&self) -> Journaled {
        let pages = self;
        let unknown = (!pages.uncertain.is_empty()).then_some(Reason::StepUnknown);
        Journaled {
            begun: pages.begun,
            done: pages.done,
            doubt: pages.doubt.or(unknown),
            left_out: pages.known.keys().any(|name| !pages.named.contains_key(name)),
        }
    }

    fn note(&mut self, Step { name, kind, input, result, age }: Step) {
        self.done |= result.is_some();
        self.known.insert(name, Known { kind, input, result, age, noted: Instant::now() });
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Journal").field(&self.so_far()).finish()
    }
}
