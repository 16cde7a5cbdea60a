//! What a runtime is configured to do, and what of that applies to one operation.

use std::{sync::OnceLock, time::Duration};

#[cfg(feature = "axum")]
use crate::http::HttpConfig;
use crate::{
    batching::Limits,
    operation::{InFlight, Operation, registered},
    operations::OperationInfo,
    recovery::Hook,
    resume::Again,
};

pub(crate) struct Config {
    pub(crate) namespace: String,
    pub(crate) ttl: Duration,
    pub(crate) in_flight: InFlight,
    pub(crate) lease: Duration,
    pub(crate) quarantine: Duration,
    pub(crate) provider_window: Duration,
    /// What the program has said.
    pub(super) transaction_timeout: Option<Duration>,
    pub(crate) store_timeout: Duration,
    pub(crate) batch: usize,
    pub(crate) store_queue: usize,
    pub(crate) sweep_every: Duration,
    pub(crate) cache_bytes: u64,
    pub(crate) max_response: u64,
    pub(crate) max_input: u64,
    pub(crate) waiters_per_key: usize,
    pub(crate) waiters: usize,
    pub(crate) purge_every: Duration,
    pub(crate) hooks: Vec<(String, Hook)>,
    pub(crate) completers: Vec<(String, Again)>,
    pub(crate) serves: Box<dyn Fn(&str) -> bool + Send + Sync>,
    /// What that comes to; made by the first who asks.
    pub(crate) served: OnceLock<Vec<OperationInfo>>,
    #[cfg(feature = "axum")]
    pub(crate) http: HttpConfig,
}

/// What applies to one operation: its annotation over the builder's defaults.
pub(crate) struct Rules {
    pub(crate) ttl: Duration,
    pub(crate) guard: Duration,
    pub(crate) patience: Duration,
    /// Duplicates in flight are told where to fetch the result.
    pub(crate) accepts: bool,
}

impl Rules {
    /// How much longer a retry is refused than answered.
    pub(crate) fn late(&self) -> Duration {
        self.guard.saturating_sub(self.ttl)
    }
}

impl Config {
    pub(crate) fn rules(&self, operation: &Operation) -> Rules {
        let ttl = operation.ttl.unwrap_or(self.ttl);
        let (patience, accepts) = match operation.in_flight_or(self.in_flight) {
            InFlight::Reject => (Duration::ZERO, false),
            InFlight::Wait(limit) => (limit, false),
            InFlight::Accepted => (Duration::ZERO, operation.transaction.is_none()), // nothing of that is seen early
        };
        Rules { ttl, guard: operation.refuse_late.unwrap_or(ttl).max(ttl), patience, accepts }
    }

    /// How long after it has begun an operation may be run again; zero: never. Steps have a window each for their providers, so
    /// an operation with them may go on for as long as late retries would be refused.
    pub(crate) fn rerun_window(&self, operation: &Operation) -> Duration {
        match operation {
            Operation { steps: true, .. } => self.rules(operation).guard,
            operation if operation.reruns() => self.provider_window,
            _ => Duration::ZERO,
        }
    }

    /// How long a body with a `Tx` may take that does not say so itself.
    pub(crate) fn transaction_timeout(&self) -> Duration {
        self.transaction_timeout.unwrap_or(Duration::from_secs(5))
    }

    /// How calls share their statements.
    pub(crate) fn batching(&self) -> Limits {
        Limits { rows: self.batch, queue: self.store_queue, store_timeout: self.store_timeout }
    }

    /// The program's annotations that this runtime serves.
    pub(crate) fn served(&self) -> impl Iterator<Item = &'static Operation> {
        registered().into_iter().filter(|operation| (self.serves)(operation.op))
    }
}

/// What holds where the program says nothing else; each default stands at its method of the builder, too.
impl Default for Config {
    fn default() -> Self {
        Self {
            namespace: String::new(),
            ttl: Duration::from_secs(24 * 60 * 60),
            in_flight: InFlight::Reject,
            lease: Duration::from_secs(30),
            quarantine: Duration::from_secs(10 * 60),
            provider_window: Duration::from_secs(23 * 60 * 60),
            transaction_timeout: None,
            store_timeout: Duration::from_secs(5),
            batch: 128,
            store_queue: 10_000,
            sweep_every: Duration::from_secs(1),
            cache_bytes: 16 * 1024 * 1024,
            max_response: 256 * 1024,
            max_input: 64 * 1024,
            waiters_per_key: 100,
            waiters: 1000,
            purge_every: Duration::from_secs(60),
            hooks: Vec::new(),
            completers: Vec::new(),
            serves: Box::new(|_| true),
            served: OnceLock::new(),
            #[cfg(feature = "axum")]
            http: HttpConfig::default(),
        }
    }
}
