//! One call, watched from its beginning to its answer: its span, and its one ending.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use metrics::Gauge;
use tokio::time::Instant;
use tracing::{
    Span,
    field::{Empty, display},
};

use super::{Ending, Observer, meters::Meters};
use crate::{
    key::{RecordId, Scope},
    lease::Settled,
    store::{Attempt, Outcome},
};

/// Cheap to clone; all clones are of one call. What the first of them says is its ending. If all are dropped without a
/// word, nobody waited for the answer.
#[derive(Clone)]
pub(crate) struct Watch(Arc<Watched>);

struct Watched {
    observer: Arc<Observer>,
    meters: Arc<Meters>,
    scope: Option<u32>,
    span: Span,
    /// Not for somebody who fetches a result.
    counted: bool,
    ended: AtomicBool,
}

impl Watch {
    pub(super) fn new(observer: Arc<Observer>, meters: Arc<Meters>, scope: Option<&Scope>) -> Self {
        let span = tracing::info_span!(
            target: "idem::call", "idem", op = meters.op,
            outcome = Empty, replayed = Empty, record = Empty, attempt = Empty, attempts = Empty,
        );
        let scope = scope.map(Scope::short);
        Self(Arc::new(Watched { observer, meters, scope, span, counted: true, ended: AtomicBool::new(false) }))
    }

    /// One that has ended before it begins.
    pub(super) fn uncounted(observer: Arc<Observer>, meters: Arc<Meters>) -> Self {
        let ended = AtomicBool::new(true);
        Self(Arc::new(Watched { observer, meters, scope: None, span: Span::none(), counted: false, ended }))
    }

    /// What the call's work is done in, the body's included.
    pub(crate) fn span(&self) -> Span {
        self.0.span.clone()
    }

    /// It is of a call, and not of somebody who fetches a result.
    pub(crate) fn is_of_a_call(&self) -> bool {
        self.0.counted
    }

    /// The call is over.
    pub(crate) fn end(&self, ending: Ending) {
        self.0.end(ending);
    }

    /// The store has answered a claim, or failed to.
    pub(crate) fn claim_took(&self, took: Duration) {
        self.0.meters.claim_took(took);
    }

    /// A stored answer was taken for the call's although the payloads could not be compared.
    pub(crate) fn unknown_fingerprint(&self) {
        if self.0.counted {
            self.0.meters.unknown_fingerprint();
        }
    }

    /// The body starts.
    pub(crate) fn started(&self, record: RecordId, attempt: Attempt, attempts: u32) -> Running {
        let Watched { span, meters, .. } = &*self.0;
        if !span.is_disabled() {
            span.record("record", record.short()).record("attempt", display(attempt)).record("attempts", attempts);
        }
        tracing::debug!(target: "idem::engine", op = meters.op, outcome = "claimed", %attempt, attempts, record = record.short());
        let in_flight = meters.in_flight();
        in_flight.increment(1);
        Running { meters: Arc::clone(meters), in_flight, began: Instant::now() }
    }

    /// The body ran, but its transaction is not committed, as far as is known.
    pub(crate) fn given_up(&self, ending: Ending, took: Duration) {
        self.0.meters.finish_took(took);
        self.end(ending);
    }

    /// Nothing was run, and the record says that its event is done: a later one of the same object was applied before.
    pub(crate) fn passed_over(&self, record: RecordId, took: Duration) {
        let Watched { span, meters, .. } = &*self.0;
        meters.finish_took(took);
        span.record("record", record.short());
        self.end(Ending::Stale);
        tracing::debug!(target: "idem::engine", op = meters.op, outcome = Ending::Stale.as_str(), %record);
    }

    /// The body's outcome was stored, or could not be.
    pub(crate) fn settled(&self, record: RecordId, attempt: Attempt, outcome: &Outcome, how: Settled, took: Duration) {
        self.0.meters.finish_took(took);
        let ending = Ending::of_run(outcome, how);
        self.end(ending);
        // The outcome in the span's and the metrics' word; the record whole: it is what `Runtime::find_record` takes.
        let op = self.0.meters.op;
        match (how, outcome) {
            (Settled::Unrecorded, _) => {
                tracing::error!(target: "idem::engine", op, outcome = ending.as_str(), %attempt, %record, "the outcome could not be stored before the lease ended; the key is in doubt, or run again by its retry where it may be");
            }
            (Settled::Lost, _) => {
                self.0.meters.fenced();
                tracing::warn!(target: "idem::engine", op, outcome = ending.as_str(), %attempt, %record, "the lease was lost; serving what is stored");
            }
            (Settled::Withheld, _) => {
                tracing::error!(target: "idem::engine", op, outcome = ending.as_str(), %attempt, %record, "a step that an earlier run has recorded is gone from the program; the answer is withheld and the key is held");
            }
            (Settled::Stored, Outcome::InDoubt(reason)) => {
                tracing::warn!(target: "idem::engine", op, outcome = ending.as_str(), ?reason, %attempt, %record, "the outcome is unknown; the key is held");
            }
            (Settled::Stored, Outcome::Resumable(reason)) => {
                tracing::warn!(target: "idem::engine", op, outcome = ending.as_str(), ?reason, %attempt, %record, "the outcome is unknown; the next retry runs it again");
            }
            (Settled::Stored, _) => {
                tracing::debug!(target: "idem::engine", op, outcome = ending.as_str(), %attempt, %record);
            }
        }
    }
}

impl Watched {
    fn end(&self, ending: Ending) {
        let replayed = ending == Ending::Replayed;
        let first = !self.ended.swap(true, Ordering::AcqRel);
        if first {
            self.span.record("outcome", ending.as_str());
            self.meters.ended(ending);
            self.look_at_replays(ending);
        }
        // A loser is served a stored answer, too: what it came to is said before what it is told.
        if first && ending != Ending::Fenced || replayed {
            self.span.record("replayed", replayed);
        }
    }

    fn look_at_replays(&self, ending: Ending) {
        let (Some(scope), true) = (self.scope, ending.had_a_key()) else { return };
        let op = self.meters.op;
        if let Some(heavy) = self.observer.replays.saw(op, scope, ending == Ending::Replayed, Instant::now()) {
            self.meters.replay_heavy();
            let (requests, replays) = (heavy.requests, heavy.replays);
            tracing::warn!(target: "idem::engine", op, scope = format_args!("{scope:08x}"), requests, replays, "most requests of this scope are retries that were answered before; look at its client's time-out");
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.ended.load(Ordering::Acquire) {
            self.end(if std::thread::panicking() { Ending::Panicked } else { Ending::Left });
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("op", &self.0.meters.op).finish_non_exhaustive()
    }
}

/// A body that runs. Its end, whichever it is, is that of this value.
#[must_use = "a body ends when this is dropped"]
pub(crate) struct Running {
    meters: Arc<Meters>,
    in_flight: Gauge,
    began: Instant,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.in_flight.decrement(1);
        self.meters.body_took(self.began.elapsed());
    }
}
