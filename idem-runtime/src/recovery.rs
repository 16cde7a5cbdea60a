//! Doubts that settle themselves: a hook finds out what happened, and the runtime writes it down.

mod known;
mod pause;
mod run;
mod write;

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;

pub(crate) use self::{
    pause::TRIES,
    run::{Recoveries, Rooms},
};
use crate::{
    key::RecordId,
    operation::{self, registered},
    runtime::{Builder, Config},
    state::Reason,
    store::{Record, Recovering, Step, StepDecisions, StoredResponse},
};

/// What a recovery hook has found out: see [`Builder::recover`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Recovery {
    /// It happened. Retries get this answer, and the links (provider, id) are recorded with it, as by
    /// [`Execution::link`](crate::Execution::link). A handler's answer is made by `StoredResponse::http`, a function's by
    /// `StoredResponse::value`.
    Completed(StoredResponse, Vec<(String, String)>),
    /// Surely nothing happened, and nothing that the first run has sent will still make it happen. Not to be said before
    /// the limit of your client *and* the provider's own have passed since [`InDoubt::silent_for`]: a request whose reply
    /// timed out may be at the provider, who has yet to begin.
    ///
    /// The key is released if the body came to its own end ([`Reason::body_has_ended`]), or if the end of its lease is
    /// longer ago than `quarantine` and the operation's `timeout`. Before that it counts as
    /// [`StillUnknown`](Self::StillUnknown): a process that is only frozen may still do it, and a body that was cut off
    /// may have a request on its way.
    NotApplied,
    /// It is to be run again, whether or not it happened: all that it does outside still knows its
    /// [provider key](InDoubt::provider_key). The next retry goes on, in a window (`provider_window`) that begins anew. For an
    /// operation that is never run again it counts as [`StillUnknown`](Self::StillUnknown), and also where the next run could
    /// not go on: a step was begun that must not run again (see [`ResumeWith`](Self::ResumeWith)), or the program has changed
    /// ([`Reason::CodeChanged`]), of which an operator decides.
    Resume,
    /// As [`Resume`](Self::Resume), with what became of single [steps](InDoubt::steps) that were begun and never ended. About each
    /// that must not run again something must be said. "Not done" counts on the same conditions as
    /// [`NotApplied`](Self::NotApplied).
    ResumeWith(StepDecisions),
    /// Nobody can tell yet.
    StillUnknown {
        /// When to ask again: 1 s to 1 day, from the 21st time on 5 min at least. `None`: after 1 s, 2 s, 4 s … up to 5 min.
        retry_in: Option<Duration>,
    },
}

/// An operation whose outcome a hook is to find out. Never contains the key; its `Debug` leaves the scope and the provider
/// key out.
#[derive(Clone)]
pub struct InDoubt {
    record: Record,
    tries: u32,
    provider_key: String,
    steps: Vec<Step>,
}

impl InDoubt {
    fn new(recovering: &Recovering, steps: Vec<Step>) -> Self {
        let record = recovering.record.clone();
        let provider_key = record.id.provider_key(record.epoch.0, "");
        Self { record, tries: recovering.tries, provider_key, steps }
    }

    /// The operation.
    #[must_use]
    pub fn op(&self) -> &str {
        &self.record.op
    }

    /// The record, for [`Runtime::find_record`](crate::Runtime::find_record) and for logs.
    #[must_use]
    pub fn record(&self) -> RecordId {
        self.record.id
    }

    /// The key that the first run had for its provider: [`Execution::provider_key`](crate::Execution::provider_key). What
    /// to ask the provider for.
    #[must_use]
    pub fn provider_key(&self) -> &str {
        &self.provider_key
    }

    /// The key that this step had for its provider: see [`Record::step_key`](crate::Record::step_key). Of an operation with
    /// [`Steps`](crate::Steps), no provider knows [`provider_key`](Self::provider_key).
    #[must_use]
    pub fn step_key(&self, step: &str) -> String {
        self.record.step_key(step)
    }

    /// The recorded [`Steps`](crate::Steps) of the operation, in the order in which they were begun; those without a result have
    /// not ended. Empty where none is recorded.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What the first run recorded before it broke off, oldest first: (provider, id).
    #[must_use]
    pub fn links(&self) -> &[(String, String)] {
        &self.record.links
    }

    /// Why the outcome is unknown.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.record.reason.unwrap_or(Reason::LeaseExpired)
    }

    /// Runs so far under this key; at least 1.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.record.attempts
    }

    /// How often a hook has been asked about this run, this time included; at least 1.
    #[must_use]
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// Since the run's claim, by the store's clock.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.record.age
    }

    /// How long the first run has been silent, by the store's clock: since it reported that its outcome is unknown, or
    /// since its lease ended. What "no such thing" is worth depends on it: see [`Recovery::NotApplied`].
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        self.record.silent_for
    }

    /// Whose it is, as [`Scope::as_str`](crate::Scope::as_str) writes it.
    #[must_use]
    pub fn scope(&self) -> &str {
        &self.record.scope
    }
}

impl fmt::Debug for InDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InDoubt").field("record", &self.record).field("tries", &self.tries).finish_non_exhaustive()
    }
}

/// A hook, as it is kept.
pub(crate) type Hook = Arc<dyn Fn(InDoubt) -> BoxFuture<'static, Recovery> + Send + Sync>;

impl Builder {
    /// Says how to find out what became of an `op` whose outcome is unknown, so that it need not wait for an operator:
    /// ask the provider by [`InDoubt::provider_key`]. Once per operation. Without a hook, only
    /// [`Runtime::resolve`](crate::Runtime::resolve) settles it.
    ///
    /// The hook is asked by the look for doubts (`sweep_every`) of one process at a time, at once if the run ended by its
    /// own report, else 5 s after the end of its lease; at most 8 of an operation are asked in a process at a time. It may take 30 s; then,
    /// and if it panics, it counts as [`Recovery::StillUnknown`]. It is asked again after 1 s, 2 s, 4 s … up to 5 min (or a
    /// hundredth of `quarantine`), 300 times in all, which is about a day; after that the record waits for an operator. From the moment it is asked, the
    /// first run is fenced off: should it still come to an end, its caller gets what is stored. What it finds out is written
    /// down in the record's history by the name `recovery hook`.
    ///
    /// While there is a hook, a retry is told to come back with the same key (`Retry-After: 5`), and one that waits
    /// (`in_flight = wait(..)`) waits for the hook too. Once the hook is asked no more, a retry is told to wait for an operator.
    ///
    /// ```no_run
    /// # #[cfg(feature = "axum")] mod example {
    /// # use std::time::Duration;
    /// # use idem_runtime::{InDoubt, MemoryStore, Recovery, Runtime, StoredResponse};
    /// # #[derive(Clone)] struct Provider;
    /// # impl Provider { async fn find(&self, _key: &str) -> Result<Option<String>, std::io::Error> { Ok(None) } }
    /// # async fn start(provider: Provider) -> Result<Runtime, idem_runtime::BuildError> {
    /// Runtime::builder(MemoryStore::volatile())
    ///     .namespace("payments")
    ///     .recover("charge", move |doubt: InDoubt| {
    ///         let provider = provider.clone();
    ///         async move {
    ///             match provider.find(doubt.provider_key()).await {
    ///                 Ok(Some(id)) => match StoredResponse::http(id.clone()).await {
    ///                     Ok(answer) => Recovery::Completed(answer, vec![("provider".to_owned(), id)]),
    ///                     Err(_) => Recovery::StillUnknown { retry_in: None },
    ///                 },
    ///                 // Neither the client nor the provider takes longer than this over a request.
    ///                 Ok(None) if doubt.silent_for() > Duration::from_secs(120) => Recovery::NotApplied,
    ///                 Ok(None) | Err(_) => Recovery::StillUnknown { retry_in: None },
    ///             }
    ///         }
    ///     })
    ///     .build()
    ///     .await
    /// # }
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Draining and shutdown drop the hook's future where it stands; the record is tried again later, by any process. So a
    /// hook should only look, or do what may be done twice.
    pub fn recover<F>(mut self, op: impl Into<String>, hook: impl Fn(InDoubt) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Recovery> + Send + 'static,
    {
        let hook: Hook = Arc::new(move |doubt| Box::pin(hook(doubt)));
        self.config.hooks.push((op.into(), hook));
        self
    }
}

impl Config {
    /// Doubts of this operation settle themselves, as far as its hook can tell.
    pub(crate) fn recovers(&self, op: &str) -> bool {
        self.hooks.iter().any(|(known, _)| known == op)
    }

    /// What is wrong with the hooks.
    pub(crate) fn hook_faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (n, (op, _)) in self.hooks.iter().enumerate() {
            if operation::named(op).is_none() {
                let known: Vec<&str> = registered().into_iter().map(|operation| operation.op).collect();
                let known = known.join("`, `");
                faults.push(format!("`recover(\"{op}\", ..)` names no operation of this program, which has `{known}`"));
            } else if !(self.serves)(op) {
                faults.push(format!("`recover(\"{op}\", ..)` names an operation that `serve_only` leaves out"));
            }
            if self.hooks[..n].iter().any(|(other, _)| other == op) {
                faults.push(format!("`recover(\"{op}\", ..)` stands twice"));
            }
        }
        if !self.hooks.is_empty() && self.sweep_every.is_zero() {
            faults.push("`recover` needs a look for doubts: `sweep_every` must be more than zero".to_owned());
        }
        faults
    }
}
