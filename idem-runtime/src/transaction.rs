//! The owner's side of a run that is one transaction: claim, the body's rows and the outcome are one commit. There is no
//! lease, and nothing can be in doubt but the COMMIT itself.

mod end;
pub(crate) mod failed;
mod running;
mod slot;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod tx;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use self::tx::Tx;
use self::{
    end::End,
    failed::{ended_by_itself, fault, kept, not_begun, undone},
    running::Listed,
};
pub(crate) use self::{running::Transactions, slot::Slot};
use crate::{
    Runtime,
    call::Call,
    engine::{self, Answer},
    error::{Error, ErrorKind, Fate},
    execution::Execution,
    lease::Settled,
    observe::{Ending, Running},
    operation::{ClientErrors, Operation},
    owner::Ended,
    state::Reason,
    store::{
        Attempt, Begin, Begun, Commit, Committed, Finish, Found, Link, OpenTransaction, Outcome, Owned, Replay, Store,
        StoreError,
    },
};

tokio::task_local! {
    /// The runtime whose store's only writer the body that runs here holds.
    static HOLDS_THE_WRITER_OF: usize;
}

/// A granted claim in an open transaction. Dropped, all is undone.
#[must_use = "dropping a transaction undoes it"]
pub(crate) struct Transaction {
    runtime: Runtime,
    call: Call,
    attempt: Attempt,
    owned: Owned,
    /// A later event of its object has been applied: it is to be acknowledged, and not run.
    stale: bool,
    began: Instant,
    slot: Arc<Slot>,
    links: Links,
    /// For the body to see, and for shutdown to cut it off.
    cancelled: CancellationToken,
    given_up: CancellationToken,
    running: Mutex<Option<Running>>,
    _listed: Listed,
}

/// What a body says that providers call it, until the commit.
pub(crate) type Links = Arc<Mutex<Vec<Link>>>;

/// A call from inside a body that holds the only writer would wait for itself.
pub(crate) fn refuse_nested(runtime: &Runtime) -> Result<(), Error> {
    let inside = HOLDS_THE_WRITER_OF.try_with(|held| *held == runtime.address()).unwrap_or(false);
    if inside {
        return Err(fault("it was called from inside of a transaction that holds the store's only writer"));
    }
    Ok(())
}

/// Runs a body's future so that [`refuse_nested`] sees it.
pub(crate) async fn holding<T>(runtime: &Runtime, body: impl Future<Output = T>) -> T {
    let exclusive = runtime.store().transactions().is_some_and(|transactions| transactions.exclusive);
    if exclusive { HOLDS_THE_WRITER_OF.scope(runtime.address(), body).await } else { body.await }
}

/// How long a body may take.
pub(crate) fn limit(runtime: &Runtime, operation: &Operation) -> Duration {
    operation.timeout.unwrap_or(runtime.config().transaction_timeout())
}

fn begin_of(runtime: &Runtime, operation: &Operation) -> Result<Begin, Error> {
    if runtime.store().transactions().is_none() {
        return Err(fault("the store has no transactions"));
    }
    let savepoint = operation.client_errors != ClientErrors::Release;
    Ok(Begin { claim: None, limit: limit(runtime, operation), savepoint, order: None })
}

/// Opens a transaction without a claim, for a request that has no key.
pub(crate) async fn open(runtime: &Runtime, operation: &Operation) -> Result<Arc<Slot>, Error> {
    refuse_nested(runtime)?;
    let begin = begin_of(runtime, operation)?;
    let begun = runtime.ask_to_begin(begin).await;
    match begun.map_err(|error| not_begun(operation, error))? {
        Begun::Open(_, transaction) => Ok(Slot::new(transaction)),
        Begun::Stale(..) | Begun::Found(_) => Err(Error::new(ErrorKind::Store)), // nothing was asked for
    }
}

/// Ends what [`open`] has opened.
pub(crate) async fn close(runtime: &Runtime, slot: &Slot, keeps_rows: bool) -> Result<(), Error> {
    let Some(transaction) = slot.close() else {
        return if keeps_rows { Err(kept()) } else { Ok(()) };
    };
    let commit = Commit { finish: None, keeps_rows, links: Vec::new() };
    let committed = runtime.ask_to_the_end(|store| async move { store.commit(transaction, &commit).await }).await;
    match committed {
        Ok(Committed::Stored { .. }) => Ok(()),
        Ok(Committed::Lost) => Err(ended_by_itself()),
        Ok(Committed::Undone(error)) => Err(undone(error)),
        Err(error) => Err(Error::from_store(error).with(|about| about.fate = Some(Fate::Unknown))),
    }
}

/// Claims for a call whose body runs in a transaction. Not to be cut off.
pub(crate) async fn begin(runtime: Runtime, call: Call) -> Result<Result<Transaction, Found>, Error> {
    let given_up = CancellationToken::new();
    let listed = match Listed::new(&runtime, &call, &given_up) {
        Ok(listed) => listed,
        Err(found) => return Ok(Err(engine::look(&runtime, &call, call.peek()).await?.unwrap_or(*found))),
    };
    let (began, attempt) = (Instant::now(), Attempt::random());
    let mut begin = begin_of(&runtime, call.operation)?;
    begin.claim = Some(runtime.claim(&call, attempt));
    begin.order = call.order;
    let begun = runtime.ask_to_begin(begin).await;
    call.watch.claim_took(began.elapsed());
    let begun = match begun {
        Ok(begun) => begun,
        Err(error) => {
            listed.leave();
            return Err(not_begun(call.operation, error));
        }
    };
    let (owned, transaction, stale) = match begun {
        Begun::Found(found) => {
            if engine::is_to_come(&runtime, &call, &found) {
                listed.leave();
            }
            return Ok(Err(found.aged(began.elapsed())));
        }
        Begun::Open(owned, transaction) => (owned, transaction, false),
        Begun::Stale(owned, transaction) => (owned, transaction, true),
    };
    listed.granted();
    Ok(Ok(Transaction {
        slot: Slot::new(transaction),
        links: Arc::default(),
        running: Mutex::default(),
        _listed: listed,
        runtime,
        call,
        attempt,
        owned,
        stale,
        began,
        cancelled: given_up.child_token(),
        given_up,
    }))
}

impl Transaction {
    pub(crate) fn start(&self) -> Result<Execution, ErrorKind> {
        if self.runtime.leases().are_given_up() {
            return Err(ErrorKind::Draining);
        }
        let running = self.call.watch.started(self.call.record, self.attempt, self.owned.attempts);
        *self.running() = Some(running);
        let (runtime, cancelled) = (&self.runtime, self.cancelled.clone());
        let execution = Execution::protected(runtime, self.call.record, self.attempt, self.owned, cancelled, None);
        Ok(execution.linked_by(&self.links))
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn call(&self) -> &Call {
        &self.call
    }

    pub(crate) fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }

    pub(crate) fn given_up(&self) -> &CancellationToken {
        &self.given_up
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }

    pub(crate) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits, or undoes all, and answers. Not to be cut off.
    pub(crate) async fn settle<R>(self, ended: Ended, value: R) -> Answer<R> {
        let (runtime, call, asked) = (self.runtime.clone(), self.call.clone(), Instant::now());
        let error = match self.close(ended, asked).await {
            End::Stored(_) => return Answer::Ran { value, recorded: true },
            End::Refused(error) => error,
            End::Lost(error) => match engine::peek::<R>(&runtime, &call).await {
                Some(Answer::Replay(stored)) => {
                    call.watch.given_up(Ending::Fenced, asked.elapsed());
                    return Answer::Replay(stored); // somebody else's: two callers never get two answers
                }
                _ => error,
            },
        };
        failed::tell(call.operation, Some(call.record), &error);
        call.watch.given_up(Ending::of_refusal(error.kind()), asked.elapsed());
        Answer::Refused(call.explain(error.with(|about| about.body_ran = true)))
    }

    /// Consumes it: what is looked up afterwards is not found running here.
    async fn close(self, ended: Ended, asked: Instant) -> End {
        drop(self.running().take());
        let outcome = match ended.outcome {
            Outcome::InDoubt(reason) | Outcome::Resumable(reason) => Outcome::Released(reason), // undone is not in doubt
            outcome => outcome,
        };
        let transaction = self.slot.close();
        let answers = outcome.response().is_some();
        let end = match transaction {
            None if answers => End::Refused(kept()),
            Some(_) if answers && !self.runtime.transactions().commits(self.call.record) => {
                End::Refused(Error::new(ErrorKind::Draining).undone())
            }
            Some(transaction) if ended.by_itself => {
                let committed = self.end(transaction, outcome.clone(), ended.keeps_rows).await;
                self.came_to(committed, answers).await
            }
            // Dropped in the middle of a statement, or with a panic, a connection is not fit for a ROLLBACK. This closes it.
            cut_off => {
                drop(cut_off);
                End::Stored(Duration::ZERO)
            }
        };
        if let End::Stored(ttl_left) = &end {
            let Call { watch, record, .. } = &self.call;
            self.remember(&outcome, ttl_left.saturating_sub(asked.elapsed()));
            if self.stale {
                watch.passed_over(*record, asked.elapsed());
            } else {
                watch.settled(*record, self.attempt, &outcome, Settled::Stored, asked.elapsed());
            }
        }
        end
    }

    async fn end(
        &self,
        transaction: OpenTransaction,
        outcome: Outcome,
        keeps_rows: bool,
    ) -> Result<Committed, StoreError> {
        let finish = Finish { record: self.call.record, attempt: self.attempt, outcome };
        let links = std::mem::take(&mut *self.links.lock().unwrap_or_else(PoisonError::into_inner));
        let commit = Commit { finish: Some(finish), keeps_rows, links };
        self.runtime.ask_to_the_end(|store| async move { store.commit(transaction, &commit).await }).await
    }

    fn remember(&self, outcome: &Outcome, ttl_left: Duration) {
        let Outcome::Done(response) = outcome else { return };
        if !self.stale {
            self.runtime.pace().ran(self.call.operation.op, self.began.elapsed());
        }
        if response.body.is_some() && !ttl_left.is_zero() {
            let (response, fingerprint) = (response.clone(), self.call.fingerprint);
            self.runtime.cache().keep(self.call.record, &Replay { response, fingerprint, ttl_left, is_final: true });
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let was_running = self.running().take().is_some();
        drop(self.slot.close()); // undone, and its connection closed
        self.cancelled.cancel();
        if was_running {
            let reason = if std::thread::panicking() { Reason::Panic } else { Reason::Cancelled };
            self.call.watch.end(Ending::of_undone(reason));
        }
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

impl Runtime {
    /// As [`ask`](Self::ask). Where the wait ends it is given up, and what it has opened is closed: it must not take a connection, and
    /// the record's lock, before those who are still waited for.
    async fn ask_to_begin(&self, begin: Begin) -> Result<Begun, StoreError> {
        self.ask(self.store().begin(&begin)).await
    }

    /// As [`ask`](Self::ask), but the verb goes on where the wait ends: a COMMIT is never cut off half way.
    pub(crate) async fn ask_to_the_end<T, F>(&self, verb: impl FnOnce(Arc<dyn Store>) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        match timeout(self.config().store_timeout, self.uncut(verb(self.shared_store()))).await {
            Ok(Some(answer)) => answer,
            Ok(None) => Err(StoreError::unavailable("the store panicked")),
            Err(elapsed) => Err(StoreError::unavailable(elapsed)),
        }
    }
}
