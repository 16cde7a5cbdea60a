//! Claims ahead of their calls: those of a consumer that takes many messages at once, in one statement.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    Runtime,
    call::{Call, KeySource},
    engine::{self, Admission},
    error::{Error, ErrorKind},
    fingerprint::Fingerprint,
    function,
    input::Input,
    key::{KeyPart, RecordId, Scope, ScopePart},
    operation::{self, Kind, Operation},
    owner::Owner,
    store::Found,
};

/// As many messages as one statement claims.
const MOST: usize = 1_000;

/// For so long a call may be told what stood in its way; an answer, for as long as it may be given.
const FRESH: Duration = Duration::from_secs(1);

tokio::task_local! {
    static BATCH: Arc<Ahead>;
}

/// What [`Runtime::claim_many`] has claimed. Clones are of the same batch.
///
/// The keys that it owns are in flight for as long as it lives: their leases are renewed, and whoever delivers one of them
/// elsewhere is told so. Dropping the last clone gives back what has not started: run now, or by whoever asks next.
///
/// A call whose turn comes late runs all the same. But where it would go on with an earlier run (`in_doubt = rerun_deduped`,
/// `Steps`) and has waited for longer than a lease, it claims once more for itself, since the time in which that may be done
/// can be over by then. And if its lease is lost or about to end, since the store takes no renewals, it does not run:
/// [`ErrorKind::Unavailable`].
#[derive(Clone)]
#[must_use = "dropping a batch gives its keys back"]
pub struct Batch {
    ahead: Arc<Ahead>,
}

/// What the store has said ahead of the calls.
struct Ahead {
    runtime: Runtime,
    /// Each is taken once.
    told: Mutex<HashMap<RecordId, Entry>>,
}

struct Entry {
    fingerprint: Fingerprint,
    admission: Admission,
    at: Instant,
}

impl Runtime {
    /// Claims the keys of many messages in one statement, for a consumer that takes a hundred at once: each of them then
    /// [runs](Batch::run) as it would alone, but does not ask the store whether it may.
    ///
    /// `op` is the operation of a plain `function` of this program, without a `Tx` and without `input`; `keys` are the scope and the key of
    /// each message, as the annotation has them ([`Global`](crate::Global) for `scope = global`). A key that comes twice is
    /// claimed once; the second message is a retry of the first. A key that no call could have is left out: its own call
    /// says what is wrong with it. Claims are made in the order of their records, so that two consumers that got the same
    /// messages in another order do not wait for each other.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use idem_runtime::{Error, Runtime, idempotent};
    /// use idem_runtime::jobs::Redelivery;
    ///
    /// # struct App { idem: Runtime }
    /// # struct Job { tenant: String, id: String }
    /// # impl Job { fn ack(&self) {} fn retry_in(&self, _: Duration) {} fn park(&self) {} }
    /// #[idempotent(function, runtime = app.idem, scope = job.tenant, op = "capture", key = job.id)]
    /// async fn capture(app: &App, job: &Job) -> Result<String, Error> {
    ///     # Ok(String::new())
    ///     // …
    /// }
    ///
    /// # async fn consume(app: &App, jobs: Vec<Job>) -> Result<(), Error> {
    /// let batch = app.idem.claim_many("capture", jobs.iter().map(|job| (&job.tenant, &job.id))).await?;
    /// for job in &jobs {
    ///     match batch.run(capture(app, job)).await {
    ///         Ok(_) => job.ack(),
    ///         Err(error) => match error.redelivery() {
    ///             Redelivery::Ack => job.ack(), // done before, and its value is gone
    ///             Redelivery::Retry { after } => job.retry_in(after),
    ///             _ => job.park(), // a person must look
    ///         },
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Nothing of the batch has run then, and nothing stays claimed: leave the messages to the queue.
    /// [`ErrorKind::InvalidBatch`] for more than 1,000 keys, or for an operation that is not such a function;
    /// [`ErrorKind::NotServed`] if this runtime was told not to serve it; [`ErrorKind::Draining`] after
    /// [`start_draining`](Self::start_draining); [`ErrorKind::Unavailable`] or [`ErrorKind::Store`] if the store could not
    /// claim, also when it was asked again.
    ///
    /// # Cancel safety
    /// Dropped at any point, what was claimed is given back.
    pub async fn claim_many<S, K>(&self, op: &str, keys: impl IntoIterator<Item = (S, K)>) -> Result<Batch, Error>
    where
        S: ScopePart,
        K: KeyPart,
    {
        let operation = claimable(op)?;
        let about = |error: Error| error.with(|about| about.op = Some(operation.op));
        self.serves(operation)?;
        let calls = self.calls(operation, keys).map_err(about)?;
        let _counted = self.bodies().token(); // before the look at `draining`: shutdown waits for whoever passes it
        if self.is_draining() {
            return Err(about(Error::new(ErrorKind::Draining)));
        }
        let ahead = Ahead { runtime: self.clone(), told: Mutex::default() };
        // Not cut off, as no claim is.
        match self.uncut(ahead.claimed(calls)).await {
            Some(Ok(ahead)) => Ok(Batch { ahead: Arc::new(ahead) }),
            Some(Err(error)) => Err(about(error)),
            None => Err(about(Error::new(ErrorKind::Store))),
        }
    }

    /// One for each record, in their order; none for what this process can answer itself.
    fn calls<S: ScopePart, K: KeyPart>(
        &self,
        operation: &'static Operation,
        keys: impl IntoIterator<Item = (S, K)>,
    ) -> Result<Vec<Call>, Error> {
        let mut calls = BTreeMap::new();
        for (place, (scope, key)) in keys.into_iter().enumerate() {
            if place == MOST {
                return Err(invalid("it has more than 1,000 keys"));
            }
            let (scope, key) = (Scope::of(&scope), KeySource::Given(key.key_bytes().into_owned()));
            let watch = self.observer().fetch(operation.op); // no call yet
            if let Ok((call, _)) = function::prepare(operation, self, &scope, key, Input::default(), watch) {
                calls.entry(call.record).or_insert(call);
            }
        }
        Ok(calls.into_values().filter(|call| self.cache().look(call).is_none()).collect())
    }
}

/// # Errors
/// Why no call of it can be claimed ahead.
fn claimable(op: &str) -> Result<&'static Operation, Error> {
    let operation = operation::named(op).ok_or_else(|| invalid("this program has no such operation"))?;
    match (operation.kind, operation.transaction) {
        (Kind::Function, None) if operation.input.is_some() => {
            Err(invalid("its `input` is kept with the claim, and is not known before the call"))
        }
        (Kind::Function, None) => Ok(operation),
        (Kind::Function, Some(_)) => Err(invalid("what runs in a transaction is claimed by that")),
        (Kind::Handler, _) => Err(invalid("it is a handler's operation, not a plain function's")),
    }
}

fn invalid(detail: &'static str) -> Error {
    Error::new(ErrorKind::InvalidBatch).with(|about| about.detail = Some(detail))
}

impl Batch {
    /// Runs a message's call: inside of `call`, the annotated function takes what was claimed for its key. The first one
    /// does; what it meets for a second time, or what the batch does not know, goes the usual way.
    ///
    /// The future is run here and not spawned; whatever it spawns itself knows nothing of the batch.
    ///
    /// # Cancel safety
    /// That of `call`.
    pub async fn run<F: Future>(&self, call: F) -> F::Output {
        BATCH.scope(Arc::clone(&self.ahead), call).await
    }

    /// How many keys it owns that no call has taken.
    #[must_use]
    pub fn owned(&self) -> usize {
        self.ahead.told().values().filter(|told| matches!(told.admission, Admission::Own(_))).count()
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("owned", &self.owned()).finish_non_exhaustive()
    }
}

/// What was claimed ahead for this call, if it is made within a batch that has claimed it, and has not waited too long.
///
/// Cancel safety: dropped on its way, the lease leaves a note that gives the key back.
pub(crate) async fn admit(runtime: &Runtime, call: &Call) -> Option<Result<Admission, Error>> {
    match BATCH.try_with(|ahead| ahead.take(runtime, call)).ok().flatten()? {
        Ok(Admission::Own(Owner::Leased(lease))) if lease.is_about_to_end() => {
            Some(Err(Error::new(ErrorKind::Unavailable { retry_after: FRESH }))) // the drop gives the key back
        }
        Ok(Admission::Own(Owner::Leased(lease))) if lease.has_waited_too_long() => {
            // Before it is this call's, which claims for itself and has another end. (Rare: no room in every call.)
            Box::pin(lease.give_back()).await;
            None
        }
        Ok(Admission::Own(owner)) => Some(Ok(Admission::Own(owner.of(call.clone())))),
        told => Some(told),
    }
}

impl Ahead {
    async fn claimed(self, calls: Vec<Call>) -> Result<Self, Error> {
        if calls.is_empty() {
            return Ok(self);
        }
        let asked: Vec<_> = calls.iter().map(|call| (call.record, call.fingerprint)).collect();
        let at = Instant::now(); // before the claim: what it finds is as old as that
        let admissions = engine::claim_all(self.runtime.clone(), calls).await?;
        let told = asked.into_iter().zip(admissions).filter_map(|((record, fingerprint), admission)| {
            let admission = admission.ok()?; // too late: its call will be told so
            Some((record, Entry { fingerprint, admission, at }))
        });
        self.told().extend(told);
        Ok(self)
    }

    fn take(&self, runtime: &Runtime, call: &Call) -> Option<Result<Admission, Error>> {
        if self.runtime.address() != runtime.address() {
            return None;
        }
        let told = {
            let mut told = self.told();
            // Another scope's message with a key that all scopes share is no retry of the first.
            told.get(&call.record).filter(|told| told.fingerprint.matches(&call.fingerprint))?;
            told.remove(&call.record)?
        };
        match told.admission {
            // Nothing new starts, and dropping the lease gives the key back.
            Admission::Own(_) if runtime.is_draining() => Some(Err(Error::new(ErrorKind::Draining))),
            Admission::Own(owner) => Some(Ok(Admission::Own(owner))),
            Admission::Found(found) => found.still(told.at.elapsed()).map(|found| Ok(Admission::Found(found))),
        }
    }

    fn told(&self) -> MutexGuard<'_, HashMap<RecordId, Entry>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owner {
    /// Claimed ahead of its call, which is here now.
    fn of(self, call: Call) -> Self {
        match self {
            Self::Leased(lease) => Self::Leased(Box::new(lease.of(call))),
            transacted @ Self::Transacted(_) => transacted, // claimed with its call
        }
    }
}

impl Found {
    /// The same, if it still says something after `by`.
    fn still(self, by: Duration) -> Option<Self> {
        let fresh = by < FRESH;
        match self.aged(by) {
            Self::Replay(replay) => (!replay.ttl_left.is_zero()).then_some(Self::Replay(replay)),
            found => fresh.then_some(found),
        }
    }
}
