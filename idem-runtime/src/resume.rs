//! Operations that were interrupted go on by themselves: a function is called again, with the argument that was kept.

mod run;

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

pub(crate) use self::run::Completions;
use crate::{
    Runtime,
    error::{Error, ErrorKind},
    key::RecordId,
    operation::{self, Kind, registered},
    runtime::{Builder, Config},
    state::Reason,
    store::Record,
};

/// An operation that nobody goes on with: see [`Builder::resume`]. Never contains the key; its `Debug` leaves the scope and
/// the input out.
#[derive(Clone)]
pub struct Interrupted {
    record: Record,
    input: Bytes,
    runtime: Runtime,
}

impl Interrupted {
    /// The argument that the annotation names with `input`, as it was when the last run began.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if it is no `T`, for instance since a deploy has changed that type. It is tried again later: mend
    /// the type, or settle the record by [`Runtime::resolve`].
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.input).map_err(|error| {
            let (op, record) = (&self.record.op, self.record.id);
            // Its text may hold a part of the input.
            tracing::error!(target: "idem::resume", op, %record, kind = ?error.classify(), line = error.line(), column = error.column(), "the stored input is not readable as this type");
            Error::new(ErrorKind::Store).with(|about| {
                about.record = Some(record);
                about.source = Some(Box::new(error));
            })
        })
    }

    /// The runtime that has found it: what the function takes as its `runtime`. (The closure is made before there is one.)
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The operation.
    #[must_use]
    pub fn op(&self) -> &str {
        &self.record.op
    }

    /// The record, for [`Runtime::find_record`] and for logs.
    #[must_use]
    pub fn record(&self) -> RecordId {
        self.record.id
    }

    /// Why the last run was interrupted, if that is known.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        self.record.reason
    }

    /// Runs so far under this key; at least 1.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.record.attempts
    }

    /// Since the last run's claim, by the store's clock.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.record.age
    }

    /// Whose it is, as [`Scope::as_str`](crate::Scope::as_str) writes it.
    #[must_use]
    pub fn scope(&self) -> &str {
        &self.record.scope
    }
}

impl fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupted").field("record", &self.record).finish_non_exhaustive()
    }
}

/// A closure that calls the function again, as it is kept. Says only whether that ended well.
pub(crate) type Again = Arc<dyn Fn(Interrupted) -> BoxFuture<'static, bool> + Send + Sync>;

impl Builder {
    /// Goes on with an `op` that was interrupted, when its caller does not come back: the annotated function is called again,
    /// with the argument that the annotation keeps (`input = "parameter"`). Once per operation, which must be one that is run
    /// again: a plain `function` with `in_doubt = rerun_deduped` or [`Steps`](crate::Steps). `again` simply calls it: the call claims its key as any
    /// retry does, so it must come to the same key and scope, and what it comes to is what later retries get.
    ///
    /// Interrupted is a run that failed, or one whose lease ended more than 5 s ago, until its window is over: `provider_window`, or
    /// with `Steps` `refuse_late` or `ttl`.
    /// It is looked for with the doubts (`sweep_every`), by one process at a time, and called again 1 s, 2 s, 4 s … up to
    /// 5 min after the end of the last run; at most 8 of an operation in a process at a time. The closure may take
    /// 30 s, and longer by the operation's `timeout`; then it is dropped, which leaves the operation interrupted, and so do an error and a panic. What is in doubt after the window waits for a
    /// [recovery hook](Self::recover) or an operator.
    ///
    /// ```no_run
    /// # mod example {
    /// # use idem_runtime::{BuildError, Error, Interrupted, MemoryStore, Runtime, idempotent};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Clone, Serialize, Deserialize)]
    /// struct Signup {
    ///     id: String,
    ///     email: String,
    /// }
    ///
    /// #[idempotent(function, op = "provision", scope = global, key = signup.id, runtime = idem,
    ///              in_doubt = rerun_deduped, input = "signup")]
    /// async fn provision(idem: &Runtime, signup: &Signup) -> Result<String, Error> {
    ///     // All that it calls dedupes by the provider key.
    /// #   Ok(signup.email.clone())
    /// }
    ///
    /// # async fn start() -> Result<Runtime, BuildError> {
    /// Runtime::builder(MemoryStore::volatile())
    ///     .namespace("signups")
    ///     .resume("provision", |interrupted: Interrupted| async move {
    ///         provision(interrupted.runtime(), &interrupted.input()?).await.map(drop)
    ///     })
    ///     .build()
    ///     .await
    /// # }
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Draining begins nothing new; a call that is under way goes on until the end of
    /// [`shutdown`](Runtime::shutdown), which drops what is left of the closure. The operation is gone on with by any process.
    pub fn resume<F, E>(
        mut self,
        op: impl Into<String>,
        again: impl Fn(Interrupted) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let again: Again = Arc::new(move |interrupted| {
            let call = again(interrupted);
            Box::pin(async move { call.await.is_ok() })
        });
        self.config.completers.push((op.into(), again));
        self
    }
}

impl Config {
    /// What is wrong with the completers.
    pub(crate) fn completer_faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (n, (op, _)) in self.completers.iter().enumerate() {
            let call = format!("`resume(\"{op}\", ..)`");
            match operation::named(op) {
                None => {
                    let known: Vec<&str> = registered().into_iter().map(|operation| operation.op).collect();
                    let known = known.join("`, `");
                    faults.push(format!("{call} names no operation of this program, which has `{known}`"));
                }
                Some(_) if !(self.serves)(op) => {
                    faults.push(format!("{call} names an operation that `serve_only` leaves out"));
                }
                Some(operation) if operation.kind == Kind::Handler => {
                    faults.push(format!(
                        "{call} names a handler, which its client calls again; call a `function` from it"
                    ));
                }
                Some(operation) => {
                    if !operation.reruns() {
                        faults.push(format!(
                            "{call} names an operation that is never run again: write `in_doubt = rerun_deduped`, or take `Steps`"
                        ));
                    }
                    if operation.input.is_none() {
                        faults.push(format!("{call} needs the argument of the call: write `input = \"..\"` with the parameter that it is"));
                    }
                }
            }
            if self.completers[..n].iter().any(|(other, _)| other == op) {
                faults.push(format!("{call} stands twice"));
            }
        }
        if !self.completers.is_empty() && self.sweep_every.is_zero() {
            faults.push(
                "`resume` needs a look for what was interrupted: `sweep_every` must be more than zero".to_owned(),
            );
        }
        faults
    }
}
