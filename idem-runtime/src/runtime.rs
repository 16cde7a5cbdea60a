//! [`Runtime`]: one per process and store, in every handler's state.

mod ask;
mod builder;
mod find;
mod resolve;

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

pub use self::builder::{BuildError, Builder, Fault};
pub(crate) use self::builder::{Config, Rules};
use crate::{
    batching,
    cache::Cache,
    error::{Error, ErrorKind},
    lease::{GivenUp, Leases, Ticker},
    observe::{Observer, Pace},
    operation::Operation,
    purge::Purger,
    recovery::{Recoveries, Rooms},
    resume::Completions,
    store::Store,
    sweep::Sweeper,
    transaction::Transactions,
    uncut::Uncut,
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
        let store = batching::around(store, config.batching(), background.clone());
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
        let runtime = Self { inner: Arc::new(inner) };
        runtime.look_for_what_is_left();
        runtime
    }

    /// Starts the look for doubts and for what was interrupted.
    fn look_for_what_is_left(&self) {
        let (inner, config) = (&self.inner, self.config());
        if config.sweep_every.is_zero() {
            return;
        }
        let rooms = Rooms {
            waiters: Arc::clone(&inner.waiters),
            observer: Arc::clone(&inner.observer),
            tasks: inner.background.clone(),
            draining: inner.draining.clone(),
            stop: inner.stop.clone(),
        };
        let runtime = WeakRuntime(Arc::downgrade(inner));
        let sweeper = Sweeper {
            store: self.shared_store(),
            every: config.sweep_every,
            store_timeout: config.store_timeout,
            observer: Arc::clone(&inner.observer),
            recoveries: Recoveries::new(self.shared_store(), config, rooms.clone()),
            completions: Completions::new(self.shared_store(), config, rooms, runtime),
            stop: inner.stop.clone(),
        };
        inner.background.spawn(sweeper.run());
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

    /// A body: a caller who leaves does not stop it, and the runtime's own shutdown waits for it. `None` if it panicked.
    pub(crate) async fn on_its_own_task<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        use tracing::Instrument;
        self.bodies().spawn(future.in_current_span()).await.ok()
    }

    /// What is not to be cut off half way, and is our own: as [`on_its_own_task`](Self::on_its_own_task), but where it is awaited.
    pub(crate) fn uncut<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Uncut<T> {
        use tracing::Instrument;
        Uncut::new(self.bodies().track_future(future.in_current_span()))
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

/// For a task of the runtime's own, which must not keep it alive.
pub(crate) struct WeakRuntime(Weak<Inner>);

impl WeakRuntime {
    pub(crate) fn upgrade(&self) -> Option<Runtime> {
        self.0.upgrade().map(|inner| Runtime { inner })
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
