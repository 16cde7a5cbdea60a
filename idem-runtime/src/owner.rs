//! Who owns a record while its body runs: by a lease, or by a transaction.

use std::{
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    time::Duration,
};

use futures_util::FutureExt;

use crate::{
    Runtime,
    call::Call,
    error::{Error, ErrorKind, Fate},
    execution::{Execution, Supply},
    lease::Lease,
    outcome::{Body, Declared},
    state::Reason,
    store::Outcome,
    transaction::{self, Transaction},
};

/// The owner of a record. Dropped, it leaves the record as its kind does.
#[must_use = "dropping an owner ends its run"]
pub(crate) enum Owner {
    Leased(Box<Lease>),
    Transacted(Box<Transaction>),
}

/// How a body ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// In a transaction: what it wrote is committed with the outcome, not only the outcome.
    pub(crate) keeps_rows: bool,
    /// It came to its end, and was not cut off.
    pub(crate) by_itself: bool,
    /// What the body says of it.
    pub(crate) body: Body,
}

/// Why a body did not come to its end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CutOff {
    Panicked,
    TimedOut,
    GivenUp,
}

impl Owner {
    /// The body starts, with all that earlier runs have recorded.
    ///
    /// # Errors
    /// Why it must not.
    pub(crate) async fn start(&self) -> Result<Execution, Error> {
        let started = match self {
            Self::Leased(lease) => {
                lease.load().await?;
                lease.start()
            }
            Self::Transacted(transaction) => transaction.start(),
        };
        started.map_err(|kind| self.call().error(kind))
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        match self {
            Self::Leased(lease) => lease.runtime(),
            Self::Transacted(transaction) => transaction.runtime(),
        }
    }

    pub(crate) fn call(&self) -> &Call {
        match self {
            Self::Leased(lease) => lease.call(),
            Self::Transacted(transaction) => transaction.call(),
        }
    }

    /// Its event is older than what was applied: its record is to say so, and its body must not run.
    pub(crate) fn is_stale(&self) -> bool {
        match self {
            Self::Leased(_) => false,
            Self::Transacted(transaction) => transaction.is_stale(),
        }
    }

    pub(crate) fn supply(&self, execution: &Execution) -> Supply {
        match self {
            Self::Leased(_) => Supply::new(execution.clone(), None),
            Self::Transacted(transaction) => Supply::new(execution.clone(), Some(transaction.slot().clone())),
        }
    }

    /// Runs the body's future within its limits. A panic passes through. (Pinned by whoever has it: a future that is handed on takes
    /// its room twice, in memory that each sleeping body has.)
    pub(crate) async fn run<T>(&self, body: Pin<&mut impl Future<Output = T>>) -> Result<T, CutOff> {
        let (runtime, operation) = (self.runtime(), self.call().operation);
        match self {
            Self::Leased(_) => {
                let limit = operation.timeout.unwrap_or(Duration::MAX);
                tokio::time::timeout(limit, body).await.map_err(|_elapsed| CutOff::TimedOut)
            }
            Self::Transacted(transaction) => {
                let limit = transaction::limit(runtime, operation);
                let body = tokio::time::timeout(limit, transaction::holding(runtime, body));
                tokio::select! {
                    biased;
                    body = body => body.map_err(|_elapsed| CutOff::TimedOut),
                    () = transaction.given_up().cancelled() => Err(CutOff::GivenUp),
                }
            }
        }
    }

    /// As [`run`](Self::run); the body is gone after a panic, so nothing of it can be seen in a broken state.
    pub(crate) async fn run_caught<T>(&self, body: Pin<&mut impl Future<Output = T>>) -> Result<T, CutOff> {
        match self.run(pin!(AssertUnwindSafe(body).catch_unwind())).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(_panic)) => Err(CutOff::Panicked),
            Err(cut_off) => Err(cut_off),
        }
    }

    /// What a body comes to that was cut off, and what its caller is told.
    pub(crate) fn cut_off(&self, by: CutOff) -> (Ended, Error) {
        let (kind, reason) = match by {
            CutOff::Panicked => (ErrorKind::Panicked, Reason::Panic),
            CutOff::TimedOut => (ErrorKind::TimedOut, Reason::Timeout),
            CutOff::GivenUp => (ErrorKind::Draining, Reason::Shutdown),
        };
        let (outcome, error) = match self {
            Self::Leased(lease) => {
                lease.cancelled().cancel();
                let call = lease.call();
                let error = if lease.leaves_a_doubt() { call.error(kind) } else { call.failed(kind) };
                (Outcome::InDoubt(reason), error)
            }
            Self::Transacted(transaction) => {
                transaction.cancelled().cancel();
                (Outcome::Released(reason), self.call().error(kind).with(|about| about.fate = Some(Fate::Undone)))
            }
        };
        (Ended { outcome, keeps_rows: false, by_itself: false, body: Body::Ended }, error)
    }
}

impl Ended {
    pub(crate) fn by_itself(outcome: Outcome, keeps_rows: bool) -> Self {
        Self { outcome, keeps_rows, by_itself: true, body: Body::Ended }
    }

    /// With what the body says of its end.
    pub(crate) fn said(self, declared: Option<Declared>) -> Self {
        let body = if declared == Some(Declared::NotApplied) { Body::SaysNothingHappened } else { self.body };
        Self { body, ..self }
    }
}
