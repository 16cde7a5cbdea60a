//! Configures a [`Runtime`], and finds every fault of configuration and annotations at once.

mod config;
mod fault;

use std::{fmt, sync::Arc, time::Duration};

pub(crate) use self::config::{Config, Rules};
pub use self::fault::{BuildError, Fault};
use super::Runtime;
use crate::{
    operation::{ClientErrors, Database, InFlight, Operation},
    store::{Chain, Resume, Store, StoreError},
};

/// The longest replay window, and with it the longest duration anywhere.
const MAX_TTL: Duration = Duration::from_secs(3650 * 24 * 60 * 60);
const MIN_TTL: Duration = Duration::from_secs(1);
const MIN_LEASE: Duration = Duration::from_secs(1);
const MAX_NAMESPACE: usize = 64;
const MAX_BATCH: usize = 1_000;

/// Configures a [`Runtime`]. Every default can be read at its method.
#[must_use = "a builder does nothing until `build()`"]
pub struct Builder {
    store: Arc<dyn Store>,
    pub(crate) config: Config,
}

impl Builder {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, config: Config::default() }
    }

    /// Which application this is: part of every record's identity, so that two applications can share a store.
    /// Required; 1 to 64 bytes. Never change it: due retries would run again.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.config.namespace = namespace.into();
        self
    }

    /// How long an answer is replayed where the annotation does not say: 1 s to 3650 days, default 24 h.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.config.ttl = ttl;
        self
    }

    /// What a duplicate gets while the first run is under way, where the annotation does not say. Default:
    /// [`InFlight::Reject`]. [`InFlight::Accepted`] also needs `operations_at`.
    pub fn in_flight(mut self, in_flight: InFlight) -> Self {
        self.config.in_flight = in_flight;
        self
    }

    /// How long an owner may be silent before its key is in doubt: a crash detector, not a limit for bodies, whose
    /// leases are renewed. At least 1 s, default 30 s.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.config.lease = lease;
        self
    }

    /// How long a body with a [`Tx`](crate::Tx) may take where its annotation has no `timeout`: more than zero, default 5 s.
    /// After that it is cut off and undone. Keep it well below a third of the lease on SQLite, where such a body holds the
    /// file's only write lock, so that renewals of other leases wait for it: more than that third, here or as an operation's
    /// `timeout`, is a fault there. The default is not judged, since a body seldom takes all of it.
    pub fn transaction_timeout(mut self, timeout: Duration) -> Self {
        self.config.transaction_timeout = Some(timeout);
        self
    }

    /// How long after the end of its lease a silent body may still act, so that nobody releases its key before.
    /// Default 10 min.
    pub fn quarantine(mut self, quarantine: Duration) -> Self {
        self.config.quarantine = quarantine;
        self
    }

    /// How long after its first request an operation with `in_doubt = rerun_deduped` may be run again. Shorter than all the
    /// providers that it calls remember a key, by as long as a body may take: a second run that comes when they have
    /// forgotten is a second effect. At least `lease`, at most 3650 days, default 23 h: many providers remember for
    /// 24 h. What was not run again by then is
    /// in doubt. An operation keeps the window that it began with.
    pub fn provider_window(mut self, window: Duration) -> Self {
        self.config.provider_window = window;
        self
    }

    /// How long the store may take for one answer. Default 5 s.
    pub fn store_timeout(mut self, limit: Duration) -> Self {
        self.config.store_timeout = limit;
        self
    }

    /// As many claims, or completions, or other questions of one kind, as go to the store in one statement and one commit:
    /// 1 to 1,000, default 128. Calls that come while a statement is on its way share the next one; a quiet call is not
    /// delayed, and costs what it would alone. A call that the store refuses does not fail the others; a reply that is lost
    /// is lost for all of them, and each is sent again. 1 turns it off: each call has a statement of its own, over as many
    /// connections as the store has.
    pub fn batch(mut self, records: usize) -> Self {
        self.config.batch = records;
        self
    }

    /// How many calls may wait for a statement of each kind, where they share them (see [`batch`](Self::batch)), and how many calls
    /// may be opening the transaction of a `Tx`, most of which wait for a connection of your pool: say at least as many as that has.
    /// More are refused at once with 503 and `Retry-After`, and nothing of them runs; a completion, and the begin of a step, is
    /// tried again. Default 10,000.
    pub fn store_queue(mut self, calls: usize) -> Self {
        self.config.store_queue = calls;
        self
    }

    /// How often this process looks for operations in doubt, in all of the store, whoever ran them: about this often, and
    /// for at most a tenth of the time. Zero: never. Default 1 s.
    pub fn sweep_every(mut self, every: Duration) -> Self {
        self.config.sweep_every = every;
        self
    }

    /// How many bytes of finished answers this process keeps, so that their replays touch no store; 0 is none.
    /// Default 16 MiB.
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.config.cache_bytes = bytes;
        self
    }

    /// The longest answer in bytes that is stored: a response's body, or a function's value as JSON. A longer one, or a
    /// stream, goes to the first caller as it is; its retry gets 410 `idempotency-result-unavailable` and never runs
    /// again. Default 256 KiB.
    pub fn max_response(mut self, bytes: u64) -> Self {
        self.config.max_response = bytes;
        self
    }

    /// The longest argument in bytes, as JSON, that is kept for an annotation with `input`. A call with a longer one is refused
    /// ([`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge)) before anything of it runs; what is
    /// due is replayed all the same. Default 64 KiB.
    pub fn max_input(mut self, bytes: u64) -> Self {
        self.config.max_input = bytes;
        self
    }

    /// How many duplicates may wait for one key and in this process; more get 409 at once. Default 100 and 1,000.
    pub fn waiters(mut self, per_key: usize, per_process: usize) -> Self {
        (self.config.waiters_per_key, self.config.waiters) = (per_key, per_process);
        self
    }

    /// How often records that are over are removed: those that are done, rejected or released and whose `refuse_late` has
    /// passed more than a minute ago. Default 60 s, give or take a half; zero is never. It is a task of this runtime, in
    /// batches of 250 records, with a pause after each for as long as it took (20 to 100 ms), and any number of processes may do
    /// it at once. Where `refuse_late` is longer than `ttl`, the stored answer goes when `ttl` is over and the rest of the record later.
    /// Nothing that runs or is in doubt is ever removed. What a client is told does not depend on it.
    ///
    /// Records decide by the store's clock, and one that jumped ahead must not remove what is still needed. So nothing is
    /// removed, and a WARN says so, if
    ///
    /// - the store's clock went more than an hour further than this process's between two looks, or
    /// - at the first look of a process, the last purge is more than an hour ago, and more than 1,000 records and more than
    ///   a fifth of all would go.
    ///
    /// That stands until [`Runtime::confirm_purge`], here or in another process, or until the clock is right again. Each
    /// batch compares the store's clock once more. What no process can tell is a jump of less than an hour, or, at its first
    /// look, one that makes little look over. A machine that was suspended for more than an hour looks like a clock that
    /// jumped.
    pub fn purge_every(mut self, every: Duration) -> Self {
        self.config.purge_every = every;
        self
    }

    /// Which of the program's annotations this runtime serves: for several runtimes in one program, and for test
    /// binaries in which one `op` stands twice. A call of another one is an error that names it.
    pub fn serve_only(mut self, serves: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.config.serves = Box::new(serves);
        self
    }

    /// Checks everything, and starts the runtime.
    ///
    /// # Panics
    /// Outside of a tokio runtime, which the runtime's own task needs.
    ///
    /// # Errors
    /// Every fault of configuration, annotations and store at once, each with what to do.
    pub async fn build(self) -> Result<Runtime, BuildError> {
        let mut faults = self.faults();
        match tokio::time::timeout(self.config.store_timeout.max(MIN_LEASE), self.store_faults()).await {
            Ok(Ok(found)) => faults.extend(found.into_iter().map(Fault)),
            Ok(Err(error)) => faults.push(Fault(format!("the store cannot be used: {}", Chain(&error)))),
            Err(_) => faults.push(Fault("the store does not answer".to_owned())),
        }
        if faults.is_empty() { Ok(Runtime::start(self.store, self.config)) } else { Err(BuildError { faults }) }
    }

    async fn store_faults(&self) -> Result<Vec<String>, StoreError> {
        let mut found = self.store.check().await?;
        if self.store.transactions().is_some() && self.config.served().any(|operation| operation.transaction.is_some())
        {
            found.extend(self.store.check_transactions().await?);
        }
        if !self.config.completers.is_empty() {
            // Fails as `Setup` where the store keeps no inputs.
            let none = Resume { ops: Vec::new(), lease: Duration::ZERO, grace: Duration::ZERO, limit: 0 };
            self.store.interrupted(&none).await?;
        }
        Ok(found)
    }

    fn faults(&self) -> Vec<Fault> {
        let config = &self.config;
        let mut faults = Vec::new();
        let mut check = |bad: bool, text: &str| {
            if bad {
                faults.push(Fault(text.to_owned()));
            }
        };
        check(
            config.namespace.is_empty() || config.namespace.len() > MAX_NAMESPACE,
            "`namespace` is missing or longer than 64 bytes: write `.namespace(\"payments\")`",
        );
        check(!(MIN_TTL..=MAX_TTL).contains(&config.ttl), "`ttl` must be 1 s to 3650 days");
        check(!(MIN_LEASE..=MAX_TTL).contains(&config.lease), "`lease` must be at least 1 s");
        let window = config.provider_window;
        check(
            window < config.lease || window > MAX_TTL,
            "`provider_window` must be at least `lease`, and at most 3650 days",
        );
        check(config.quarantine > MAX_TTL, "`quarantine` must be at most 3650 days");
        check(config.purge_every > MAX_TTL, "`purge_every` must be at most 3650 days");
        let wait_too_long = matches!(config.in_flight, InFlight::Wait(wait) if wait > MAX_TTL);
        check(wait_too_long, "`in_flight` must wait at most 3650 days");
        check(config.sweep_every > MAX_TTL, "`sweep_every` must be at most 3650 days; zero is never");
        let timeout = config.transaction_timeout();
        check(timeout.is_zero() || timeout > MAX_TTL, "`transaction_timeout` must be more than zero");
        check(config.store_timeout.is_zero(), "`store_timeout` must be more than zero");
        check(!(1..=MAX_BATCH).contains(&config.batch), "`batch` must be 1 to 1,000; 1 is none");
        check(config.store_queue == 0, "`store_queue` must be more than zero");
        #[cfg(feature = "axum")]
        check(config.in_flight == InFlight::Accepted && !config.http.shows_operations(), crate::http::NO_PLACE);
        #[cfg(feature = "axum")]
        faults.extend(config.http.faults().into_iter().map(Fault));
        faults.extend(
            self.annotation_faults()
                .into_iter()
                .chain(config.hook_faults())
                .chain(config.completer_faults())
                .map(Fault),
        );
        faults
    }

    fn annotation_faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut served: Vec<&'static Operation> = Vec::new();
        for operation in self.config.served() {
            let place = operation.place;
            if let Some(other) = served.iter().find(|other| other.op == operation.op) {
                faults.push(format!(
                    "`op = \"{}\"` stands at {} and at {place}: two operations cannot share their keys",
                    operation.op, other.place
                ));
            }
            served.push(operation);
            faults.extend(self.transaction_fault(operation));
            if operation.steps && !self.store.keeps_steps() {
                faults.push(format!("`{}` at {place} has `Steps`, but the store keeps none", operation.op));
            }
            if self.store.transactions().is_some_and(|transactions| transactions.exclusive) {
                faults.extend(fault::keeps_renewals_waiting(&self.config, operation));
            }
            faults.extend(self.rule_faults(operation).map(|rule| format!("`{}` at {place}: {rule}", operation.op)));
        }
        faults
    }

    /// A body wants a transaction that the store cannot open. What a generic function wants is known when it is called.
    fn transaction_fault(&self, operation: &Operation) -> Option<String> {
        let Some(Database::Named(wanted)) = operation.transaction else { return None };
        let there = self.store.transactions().map(|transactions| transactions.database);
        (there != Some(wanted)).then(|| {
            format!(
                "`{}` at {} takes a `Tx` of {wanted}, but the store's transactions are {}; use the store of that database, \
                 or make the function generic over it",
                operation.op,
                operation.place,
                there.unwrap_or("none"),
            )
        })
    }

    /// Rules between an annotation and the builder's defaults; the attribute checks those within itself.
    fn rule_faults(&self, operation: &Operation) -> impl Iterator<Item = &'static str> {
        let config = &self.config;
        let ttl = operation.ttl.unwrap_or(config.ttl);
        let waits_too_long = match (operation.in_flight_or(config.in_flight), operation.timeout) {
            (InFlight::Wait(wait), Some(timeout)) => wait >= timeout,
            _ => false,
        };
        let keeps_too_long = matches!(operation.client_errors, ClientErrors::Keep(window) if window > ttl);
        let refuses_too_early = operation.refuse_late.is_some_and(|refuse_late| refuse_late < ttl);
        #[cfg(feature = "axum")]
        let has_no_place = operation.in_flight == Some(InFlight::Accepted) && !config.http.shows_operations();
        [
            #[cfg(feature = "axum")]
            (has_no_place, crate::http::NO_PLACE),
            (waits_too_long, "a duplicate would wait as long as `timeout` or longer"),
            (keeps_too_long, "`client_errors = keep(..)` is longer than `ttl`"),
            (refuses_too_early, "`refuse_late` is shorter than `ttl`"),
        ]
        .into_iter()
        .filter_map(|(bad, rule)| bad.then_some(rule))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("namespace", &self.config.namespace).finish_non_exhaustive()
    }
}
