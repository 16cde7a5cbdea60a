//! [`Runtime`]: one per process and store, in every handler's state.

mod ask;
mod builder;
mod find;

use std::{fmt, sync::Arc, time::Duration};

use tokio::{sync::Notify, time::timeout};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

pub use self::builder::{BuildError, Builder, Fault};
pub(crate) use self::builder::{Config, Rules};
use crate::{
    cache::Cache,
    error::{Error, ErrorKind},
    key::RecordId,
    lease::{GivenUp, Leases, Ticker},
    observe::{Observer, Pace},
    operation::{self, Kind, Operation},
    purge::Purger,
    recovery::{Recoveries, Rooms},
    state::{Reason, State},
    store::{Audit, Fence, Record, Resolution, Resolve, Store},
    sweep::Sweeper,
    transaction::Transactions,
    wait::{Limits, Waiters},
};

/// Keeps the promise of every annotated operation of this process. Cheap to clone; put it into the router's state.
///
/// ```no_run
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use idem_runtime::{MemoryStore, Runtime};
///
/// let runtime = Runtime::builder(MemoryStore::volatile()).namespace("payments").build().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    config: Config,
    cache: Arc<Cache>,
    leases: Arc<Leases>,
    transactions: Transactions,
    waiters: Arc<Waiters>,
    pace: Pace,
    observer: Arc<Observer>,
    purge_confirmed: Arc<Notify>,
    /// Claims, bodies and completions: what shutdown waits for.
    bodies: TaskTracker,
    /// The ticker, the poll for waiters, recoveries and the purge: what shutdown stops.
    background: TaskTracker,
    draining: CancellationToken,
    /// Stops the ticker, at the latest when the last `Runtime` is gone.
    stop: CancellationToken,
    _stop_when_gone: DropGuard,
}

/// How a shutdown went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "says whether anything was left in doubt"]
pub struct Drained {
    /// Every body ended within the limit, and its outcome is stored.
    pub completed: bool,
    /// Bodies that were still running; their keys are in doubt.
    pub in_doubt: usize,
    /// Claims whose bodies had not started, and bodies in a transaction, which is undone; their keys are free. A transaction
    /// whose COMMIT is under way is counted nowhere: whoever asks again is told what came of it.
    pub released: usize,
}

impl Runtime {
    /// Starts the configuration of a runtime over this store.
    pub fn builder(store: impl Store) -> Builder {
        Builder::new(Arc::new(store))
    }

    fn start(store: Arc<dyn Store>, config: Config) -> Self {
        let (draining, stop) = (CancellationToken::new(), CancellationToken::new());
        let background = TaskTracker::new();
        let cache = Arc::new(Cache::new(config.cache_bytes));
        let leases = Arc::new(Leases::new(config.lease));
        let limits = Limits {
            per_record: config.waiters_per_key,
            per_process: config.waiters,
            store_timeout: config.store_timeout,
        };
        let waiters =
            Waiters::new(limits, Arc::clone(&store), Arc::clone(&cache), draining.clone(), background.clone());
        let ticker = Ticker { leases: Arc::clone(&leases), store: Arc::clone(&store), stop: stop.clone() };
        background.spawn(ticker.run());
        let purge_confirmed = Arc::new(Notify::new());
        let purger = Purger::new(Arc::clone(&store), &config, Arc::clone(&purge_confirmed));
        background.spawn(purger.run(draining.clone(), stop.clone()));
        let observer = Observer::new(config.served().map(|operation| operation.op));
        if !config.sweep_every.is_zero() {
            let (waiters, tasks) = (Arc::clone(&waiters), background.clone());
            let (draining, stop, observer) = (draining.clone(), stop.clone(), Arc::clone(&observer));
            let rooms = Rooms { waiters, tasks, draining, stop: stop.clone(), observer: Arc::clone(&observer) };
            let recoveries = Recoveries::new(Arc::clone(&store), &config, rooms);
            let (every, store_timeout, store) = (config.sweep_every, config.store_timeout, Arc::clone(&store));
            background.spawn(Sweeper { store, every, store_timeout, observer, recoveries, stop }.run());
        }
        let inner = Inner {
            store,
            config,
            cache,
            leases,
            transactions: Transactions::default(),
            waiters,
            pace: Pace::default(),
            observer,
            purge_confirmed,
            bodies: TaskTracker::new(),
            background,
            draining,
            _stop_when_gone: stop.clone().drop_guard(),
            stop,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Settles a record whose outcome is in doubt, or that would be run again, and writes down who did it and why (in the
    /// table `idem_audit`).
    ///
    /// `seen` is the fence of the [`Record`] on which the decision rests: if anything has happened since, nothing
    /// is changed. Every retry gets what is settled here, and the first run, should it still be alive, cannot
    /// overwrite it. [`Resolution::Release`] lets the next retry run; it is refused while the first run could
    /// still act, and the next run has a new [provider key](Record::provider_key), by which the provider does not know the first:
    /// it waits until its body has come to its own end (a status, an error, a panic), or its lease ended longer ago than
    /// `quarantine` (and than the operation's `timeout`). A request that it has sent may be at the provider for longer:
    /// release nothing before your client's limit and the provider's own have passed. Until then a record that is settled
    /// otherwise is not run again either, also where its windows are shorter: a retry gets the answer, then 410
    /// `idempotency-result-expired`.
    ///
    /// In a program that does not contain the operation (an operator's tool), its `timeout` and its kind are not known:
    /// give that program a `quarantine` at least as long, and complete a handler's record with
    /// `StoredResponse::http` only.
    ///
    /// ```no_run
    /// # async fn settle(idem: idem_runtime::Runtime) -> Result<(), idem_runtime::Error> {
    /// use idem_runtime::{Audit, Resolution};
    ///
    /// let by = Audit { who: "ops@example.com".into(), why: "closed; the customer was told".into() };
    /// if let Some(record) = idem.find("charge", "acme", "order-1").await? {
    ///     println!("ask the provider for {}", record.provider_key());
    ///     idem.resolve(record.id, record.fence, Resolution::Void, by).await?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`], with the reason in its text, if the record is neither in doubt nor resumable, has another fence, does not exist, or may not be
    /// released yet, if the answer is of the wrong kind for the operation, or if `by` is empty; [`ErrorKind::Unavailable`] if the store cannot tell: look again with [`find`](Self::find).
    ///
    /// # Cancel safety
    /// Dropped before it is done, the record may or may not be settled.
    pub async fn resolve(&self, id: RecordId, seen: Fence, how: Resolution, by: Audit) -> Result<Record, Error> {
        let about = |error: Error| error.with(|about| about.record = Some(id));
        let unavailable = |error| about(Error::from_store(error));
        let conflict = |detail| about(Error::new(ErrorKind::Conflict)).with(|about| about.detail = Some(detail));
        let Some(record) = self.ask(self.store().find(id)).await.map_err(unavailable)? else {
            return Err(conflict("there is no such record"));
        };
        if by.who.is_empty() || by.why.is_empty() {
            return Err(conflict("`Audit` needs to say who and why"));
        }
        let operation = operation::named(&record.op);
        if let (Some(operation), Resolution::Complete(response)) = (operation, &how) {
            let is_http = response.status.is_some();
            if is_http != (operation.kind == Kind::Handler) {
                let detail =
                    "a handler is completed with `StoredResponse::http`, a function with `StoredResponse::value`";
                return Err(conflict(detail));
            }
        }
        let timeout = operation.and_then(|operation| operation.timeout);
        let quarantine = self.config().quarantine.max(timeout.unwrap_or_default());
        let resolve = Resolve { record: id, seen, to: how, quarantine, reason: Reason::Operator, by };
        if !self.ask(self.store().resolve(&resolve)).await.map_err(unavailable)? {
            return Err(conflict(refused(&record, &resolve)));
        }
        self.waiters().wake(id);
        let settled = self.ask(self.store().find(id)).await.map_err(unavailable)?;
        settled.ok_or_else(|| conflict("the record is gone"))
    }

    /// Stops taking new claims: they get 503 `idempotency-draining`. Replays are still served, bodies go on, and
    /// waiting duplicates are answered at once. Call it in the future that tells the server to shut down.
    pub fn start_draining(&self) {
        self.inner.draining.cancel();
    }

    /// Whether [`start_draining`](Self::start_draining) has been called: for a readiness probe, so that no more requests
    /// are sent here.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.inner.draining.is_cancelled()
    }

    /// Waits up to `limit` for bodies that still run (a server's graceful shutdown does not: they are detached from
    /// their connections), then settles the rest: what has not started is released, what has is in doubt at once,
    /// so that its recovery need not wait for a lease. Leases are renewed until then.
    ///
    /// Call it last, when the server has stopped; afterwards this runtime takes no more claims.
    ///
    /// # Cancel safety
    /// Dropped before it is done, bodies go on, but nothing is settled; call it again.
    pub async fn shutdown(&self, limit: Duration) -> Drained {
        self.start_draining();
        self.inner.bodies.close();
        let completed = timeout(limit, self.inner.bodies.wait()).await.is_ok();
        let store_timeout = self.config().store_timeout;
        let given_up = match completed {
            true => GivenUp::default(),
            false => self.leases().give_up(&*self.inner.store, store_timeout).await,
        };
        let given_up = GivenUp { released: given_up.released + self.transactions().give_up(), ..given_up };
        self.inner.background.close();
        self.inner.stop.cancel();
        if timeout(store_timeout, self.inner.background.wait()).await.is_err() {
            tracing::warn!(target: "idem::engine", "background tasks did not stop in time");
        }
        Drained { completed, in_doubt: given_up.in_doubt, released: given_up.released }
    }

    /// # Errors
    /// [`ErrorKind::NotServed`], if the builder said so.
    pub(crate) fn serves(&self, operation: &Operation) -> Result<(), Error> {
        if (self.config().serves)(operation.op) {
            return Ok(());
        }
        tracing::error!(target: "idem::engine", op = operation.op, namespace = self.config().namespace, "this runtime's `serve_only` leaves the operation out, but a request for it came in");
        Err(Error::new(ErrorKind::NotServed).with(|about| about.op = Some(operation.op)))
    }

    pub(crate) fn rules(&self, operation: &Operation) -> Rules {
        self.config().rules(operation)
    }

    /// Runs to its end even if the caller leaves. `None` if it panicked.
    pub(crate) async fn on_its_own_task<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        use tracing::Instrument;
        self.bodies().spawn(future.in_current_span()).await.ok()
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    pub(crate) fn shared_store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.inner.store)
    }

    /// What tells this runtime from the others of the process.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.inner).addr()
    }

    pub(crate) fn transactions(&self) -> &Transactions {
        &self.inner.transactions
    }

    pub(crate) fn config(&self) -> &Config {
        &self.inner.config
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.inner.cache
    }

    pub(crate) fn leases(&self) -> &Arc<Leases> {
        &self.inner.leases
    }

    pub(crate) fn waiters(&self) -> &Arc<Waiters> {
        &self.inner.waiters
    }

    pub(crate) fn pace(&self) -> &Pace {
        &self.inner.pace
    }

    pub(crate) fn observer(&self) -> &Arc<Observer> {
        &self.inner.observer
    }

    pub(crate) fn purge_confirmed(&self) -> &Notify {
        &self.inner.purge_confirmed
    }

    pub(crate) fn bodies(&self) -> &TaskTracker {
        &self.inner.bodies
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("namespace", &self.config().namespace)
            .field("bodies", &self.bodies().len())
            .field("leases", &self.leases().count())
            .field("draining", &self.is_draining())
            .finish_non_exhaustive()
    }
}

/// Why a store did not settle a record, from how it stood a moment before.
fn refused(record: &Record, resolve: &Resolve) -> &'static str {
    match record.state {
        _ if record.fence != resolve.seen => "something has happened since: the fence is another one",
        State::InFlight => "its body still runs",
        State::Done | State::Rejected | State::Released => "it is settled already",
        State::InDoubt | State::Resumable => {
            "it may not be released yet: its body, or what it has sent, could still act until the quarantine after the end of its lease is over"
        }
        State::Unknown(_) => "a newer version of this program wrote it",
    }
}
