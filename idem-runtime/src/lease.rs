//! The owner's side of a claim: [`Lease`], and the one ticker that keeps all leases of a process alive.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::task_tracker::TaskTrackerToken};

use crate::{
    Runtime,
    call::Call,
    error::{Error, ErrorKind},
    execution::Execution,
    key::RecordId,
    observe::{Ending, Running},
    outcome::{Body, Run, allowed},
    state::Reason,
    steps::Journal,
    store::{Attempt, Finish, Finished, Outcome, Owned, Replay, StoreError},
};

mod claiming;
mod left;
mod registry;
mod ticker;

pub(crate) use claiming::{Claiming, Told};
use left::Left;
pub(crate) use registry::Leases;
pub(crate) use ticker::{GivenUp, Ticker};

/// How long to try to give a key back. A doubt needs less: the end of the lease says the same.
const GIVE_BACK: Duration = Duration::from_secs(10 * 60);

/// What was claimed ahead starts with a quarter of its lease at least. Less is left only where renewals fail: the ticker, which
/// wakes six times a lease, renews what is older than a third.
const LEAST_LEFT: u32 = 4;

/// How long to wait before the store is asked again, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// A granted claim, until its outcome is stored.
///
/// Dropping it is not an error but an outcome: what had not started is released, what had is held in doubt, or left to be
/// run again where that is allowed. The drop
/// only leaves a note for the ticker; it never blocks.
#[must_use = "dropping a lease gives the key back or holds it in doubt"]
pub(crate) struct Lease {
    guard: Guard,
    owned: Owned,
}

/// What both have in common.
struct Guard {
    runtime: Runtime,
    call: Call,
    held: Arc<Held>,
    /// Shutdown waits for every lease, whichever task it lives on.
    _alive: TaskTrackerToken,
}

/// What the ticker needs of a lease. Its size does not grow with the body's age.
pub(crate) struct Held {
    record: RecordId,
    attempt: Attempt,
    began: Instant,
    cancelled: CancellationToken,
    /// The operation may be run again.
    reruns: bool,
    /// Where its effects are recorded steps.
    journal: Option<Arc<Journal>>,
    progress: Mutex<Progress>,
}

struct Progress {
    stage: Stage,
    /// An earlier run of the same operation came before.
    continues: bool,
    /// And was another program's, which this one must not go on with.
    changed: bool,
    /// While the body runs.
    running: Option<Running>,
    /// When the last claim or renewal that counted was sent, by the monotonic clock: the store's lease ends later
    /// than this plus the length of a lease, never earlier.
    renewed: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Sent; whether it counted is not known yet.
    Claiming,
    /// Granted; the body has not started.
    Owned,
    Running,
    /// The outcome is being stored: no more renewals, so that a store that takes renewals but no outcomes cannot
    /// hold the key for ever.
    Finishing,
    Over,
}

/// How a finish ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    Stored,
    /// Its end is stored, but not as final as the body says, so its answer does not count.
    Withheld,
    /// The record is somebody else's by now.
    Lost,
    /// The store failed until the lease ended.
    Unrecorded,
}

impl Lease {
    /// Reads what earlier runs have recorded, where there are any: a body must not begin without, and one without `Steps` not at
    /// all, for it would do them again by other keys.
    ///
    /// # Errors
    /// The store's; dropping the lease then leaves the record as it was. [`ErrorKind::InDoubt`] where the program has changed;
    /// dropping the lease then says so of the record.
    pub(crate) async fn load(&self) -> Result<(), Error> {
        let Guard { runtime, call, held, .. } = &self.guard;
        if !self.owned.continues() || !runtime.store().keeps_steps() {
            return Ok(());
        }
        let steps = runtime.ask(runtime.store().steps(call.record)).await.map_err(|error| {
            warn(call, &error, "recorded steps could not be read; nothing runs");
            call.explain(Error::from_store(error))
        })?;
        match &held.journal {
            Some(journal) => journal.load(steps),
            None if steps.is_empty() => {}
            None => {
                held.progress().changed = true;
                tracing::error!(target: "idem::steps", op = call.operation.op, record = %call.record, "an operation whose runs have recorded steps has none in this program, so it is not run again; it waits for `Runtime::resolve`");
                return Err(call.error(ErrorKind::InDoubt));
            }
        }
        Ok(())
    }

    /// The body starts: from here on, an end without an outcome is a doubt, or to be run again.
    ///
    /// # Errors
    /// Why it must not: shutdown has given the key back, or the lease is lost or over before it began, as in a process that was
    /// frozen; somebody else may run by now.
    pub(crate) fn start(&self) -> Result<Execution, ErrorKind> {
        let Guard { runtime, call, held, .. } = &self.guard;
        {
            let mut progress = held.progress();
            if progress.stage != Stage::Owned {
                return Err(ErrorKind::Draining);
            }
            if held.cancelled.is_cancelled() || progress.renewed.elapsed() >= runtime.leases().length {
                return Err(ErrorKind::Unavailable { retry_after: RETRY.1 }); // dropping the lease gives the key back
            }
            progress.stage = Stage::Running;
            progress.running = Some(call.watch.started(held.record, held.attempt, self.owned.attempts));
        }
        let (cancelled, journal) = (held.cancelled.clone(), held.journal.clone());
        Ok(Execution::protected(runtime, held.record, held.attempt, self.owned, cancelled, journal))
    }

    /// The body is gone, and nobody can go on after it: a step that must not run again was cut off, for instance.
    pub(crate) fn leaves_a_doubt(&self) -> bool {
        self.guard.held.journal.as_ref().is_some_and(|journal| journal.close().doubt.is_some())
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.guard.runtime
    }

    pub(crate) fn call(&self) -> &Call {
        &self.guard.call
    }

    pub(crate) fn cancelled(&self) -> &CancellationToken {
        &self.guard.held.cancelled
    }

    /// Claimed ahead of its call, which is here now.
    pub(crate) fn of(mut self, call: Call) -> Self {
        self.guard.call = call;
        self
    }

    /// It goes on with what earlier runs have begun, and was claimed for that longer ago than any call's own claim would have
    /// been: the window in which it may be run again, which the claim has compared, may be over by now.
    pub(crate) fn has_waited_too_long(&self) -> bool {
        let Guard { runtime, held, .. } = &self.guard;
        self.owned.continues() && held.began.elapsed() >= runtime.leases().length
    }

    /// Its renewals fail, so whoever starts it now may soon run beside somebody else.
    pub(crate) fn is_about_to_end(&self) -> bool {
        let Guard { runtime, held, .. } = &self.guard;
        let length = runtime.leases().length;
        held.progress().renewed.elapsed() >= length - length / LEAST_LEFT
    }

    /// Gives the key back before the body has started, at once: so that the next claim finds it as it was.
    pub(crate) async fn give_back(self) {
        self.finish(Outcome::Released(Reason::Cancelled), Body::Ended).await;
    }

    /// Stores the outcome, and tries again until the lease ends: inside it nobody else can own the record.
    pub(crate) async fn finish(self, outcome: Outcome, body: Body) -> Settled {
        let Guard { runtime, call, held, .. } = &self.guard;
        let deadline = {
            let mut progress = held.progress();
            progress.stage = Stage::Finishing;
            drop(progress.running.take());
            progress.renewed + runtime.leases().length
        };
        let was_final = matches!(outcome, Outcome::Done(_));
        let (finish, asked) = (held.finish(outcome, body), Instant::now());
        let withheld = was_final && !matches!(finish.outcome, Outcome::Done(_));
        let settled = match store_until(deadline, &finish, runtime, call).await {
            Ok(Finished::Stored { ttl_left }) => {
                self.remember(&finish.outcome, ttl_left.saturating_sub(asked.elapsed()));
                if withheld { Settled::Withheld } else { Settled::Stored }
            }
            Ok(Finished::Lost) => Settled::Lost,
            Err(_) => {
                // A proof that nothing happened is worth more tries; in doubt, the end of the lease says the same.
                if let Outcome::Released(_) = finish.outcome {
                    runtime.leases().leave(Left::new(finish.clone(), GIVE_BACK));
                }
                if withheld { Settled::Withheld } else { Settled::Unrecorded }
            }
        };
        held.progress().stage = Stage::Over;
        runtime.leases().let_go(held);
        runtime.waiters().wake(call.record);
        call.watch.settled(call.record, held.attempt, &finish.outcome, settled, asked.elapsed());
        settled
    }

    fn remember(&self, outcome: &Outcome, ttl_left: Duration) {
        let Guard { runtime, call, held, .. } = &self.guard;
        let Outcome::Done(response) = outcome else { return };
        runtime.pace().ran(call.operation.op, held.began.elapsed());
        if response.body.is_some() {
            let (response, fingerprint) = (response.clone(), call.fingerprint);
            runtime.cache().keep(call.record, &Replay { response, fingerprint, ttl_left, is_final: true });
        }
    }
}

async fn store_until(
    deadline: Instant,
    finish: &Finish,
    runtime: &Runtime,
    call: &Call,
) -> Result<Finished, StoreError> {
    let mut pause = RETRY.0;
    loop {
        match runtime.ask_one(runtime.store().finish(std::slice::from_ref(finish))).await {
            Ok(finished) => return Ok(finished),
            Err(error) if Instant::now() + pause >= deadline => {
                warn(call, &error, "outcome not stored");
                return Err(error);
            }
            Err(error) => {
                warn(call, &error, "outcome not stored yet, trying again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(RETRY.1);
            }
        }
    }
}

fn warn(call: &Call, error: &StoreError, what: &'static str) {
    let error: &dyn std::error::Error = error;
    tracing::warn!(target: "idem::engine", op = call.operation.op, record = call.record.short(), error, "{what}");
}

impl Drop for Guard {
    fn drop(&mut self) {
        let (stage, running) = {
            let mut progress = self.held.progress();
            (std::mem::replace(&mut progress.stage, Stage::Over), progress.running.take())
        };
        drop(running);
        let left = match stage {
            Stage::Over => return,
            Stage::Claiming | Stage::Owned => Outcome::Released(Reason::Cancelled),
            Stage::Running | Stage::Finishing if std::thread::panicking() => Outcome::InDoubt(Reason::Panic),
            Stage::Running => Outcome::InDoubt(Reason::Cancelled),
            Stage::Finishing => Outcome::InDoubt(Reason::Store), // the process is being torn down under us
        };
        let finish = self.held.finish(left, Body::Ended);
        let ran = matches!(stage, Stage::Running | Stage::Finishing);
        if let (true, Some(ending)) = (ran, Ending::of_drop(&finish.outcome)) {
            self.call.watch.end(ending);
        }
        self.held.cancelled.cancel();
        self.runtime.leases().let_go(&self.held);
        let patience = match finish.outcome {
            Outcome::Released(_) => GIVE_BACK,
            _ => self.runtime.leases().length,
        };
        let left = Left::new(finish, patience);
        self.runtime.leases().leave(Left { may_not_be_there_yet: stage == Stage::Claiming, ..left });
    }
}

impl Held {
    fn new(call: &Call, began: Instant) -> Self {
        Self {
            record: call.record,
            attempt: Attempt::random(),
            began,
            cancelled: CancellationToken::new(),
            reruns: call.operation.reruns(),
            journal: call.operation.steps.then(Arc::default),
            progress: Mutex::new(Progress {
                stage: Stage::Claiming,
                continues: false,
                changed: false,
                running: None,
                renewed: began,
            }),
        }
    }

    /// What the record is told of its end.
    fn finish(&self, outcome: Outcome, body: Body) -> Finish {
        let (reruns, continues, changed) = {
            let progress = self.progress();
            (self.reruns, progress.continues, progress.changed)
        };
        if changed {
            let outcome = Outcome::InDoubt(Reason::CodeChanged);
            return Finish { record: self.record, attempt: self.attempt, outcome };
        }
        let steps = self.journal.as_ref().map(|journal| match body {
            Body::StillRuns => journal.so_far(),
            Body::Ended | Body::SaysNothingHappened => journal.close(),
        });
        let outcome = allowed(outcome, Run { reruns, continues, steps, body });
        Finish { record: self.record, attempt: self.attempt, outcome }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
