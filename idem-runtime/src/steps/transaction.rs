//! Steps whose rows and result are one commit.

use sqlx::Database;

use super::{
    StepCall, Steps,
    run::{Recorded, Way, failed, lost},
};
use crate::{
    Runtime,
    error::{Error, ErrorKind, Fate},
    function::{FromIdem, RecordedValue},
    state::Reason,
    store::{Commit, Committed, EndStep, OpenTransaction, StepBegun, StoreError, StoreErrorKind},
    transaction::{self, Slot, Tx, failed as told},
};

impl Steps {
    pub(super) async fn transaction_step<Db, T, E, F>(&self, step: StepCall<'_>, body: F) -> Result<T, E>
    where
        Db: Database,
        F: AsyncFnOnce(&mut Tx<Db>) -> Result<T, E>,
        T: RecordedValue,
        E: FromIdem,
    {
        let Some(recorded) = self.recorded() else { return self.unrecorded(body).await };
        if let Way::Skip(value) = recorded.way(&step).map_err(E::from_idem)? {
            return Ok(value);
        }
        let slot = match recorded.begin(&step).await.map_err(E::from_idem)? {
            Ok(slot) => slot,
            Err(value) => return Ok(value),
        };
        let value = match within(recorded.runtime, &slot, body).await {
            Ok(value) => value,
            Err(error) => {
                recorded.undo(&slot).await;
                return Err(error);
            }
        };
        recorded.commit(&step, &slot, &value).await.map_err(E::from_idem)
    }

    /// Without a key: the rows belong together all the same.
    async fn unrecorded<Db, T, E, F>(&self, body: F) -> Result<T, E>
    where
        Db: Database,
        F: AsyncFnOnce(&mut Tx<Db>) -> Result<T, E>,
        E: FromIdem,
    {
        let Some((runtime, operation)) = self.execution().unprotected_by() else {
            return Err(E::from_idem(Error::new(ErrorKind::Store))); // never: whoever is not recorded is unprotected
        };
        let slot = transaction::open(runtime, operation).await.map_err(E::from_idem)?;
        let value = within(runtime, &slot, body).await;
        let closed = transaction::close(runtime, &slot, value.is_ok()).await;
        let value = value?;
        closed.map_err(E::from_idem)?;
        Ok(value)
    }
}

/// The body, for as long as it may take.
async fn within<Db, T, E, F>(runtime: &Runtime, slot: &std::sync::Arc<Slot>, body: F) -> Result<T, E>
where
    Db: Database,
    F: AsyncFnOnce(&mut Tx<Db>) -> Result<T, E>,
    E: FromIdem,
{
    let mut tx = Tx::<Db>::of(slot).map_err(E::from_idem)?;
    let limit = runtime.config().transaction_timeout();
    let body = transaction::holding(runtime, body(&mut tx));
    match tokio::time::timeout(limit, body).await {
        Ok(value) => value,
        Err(_elapsed) => {
            drop(slot.close()); // in the middle of a statement it is not fit for a ROLLBACK: this closes its connection
            let error = Error::new(ErrorKind::TimedOut);
            Err(E::from_idem(error.with(|about| (about.body_ran, about.fate) = (true, Some(Fate::RunAgain)))))
        }
    }
}

impl Recorded<'_> {
    /// `Err`: it has its result already.
    async fn begin<T: RecordedValue>(&self, step: &StepCall<'_>) -> Result<Result<std::sync::Arc<Slot>, T>, Error> {
        let (start, limit) = (self.start_of(step), self.runtime.config().transaction_timeout());
        let begun = self.runtime.ask(self.runtime.store().begin_step(&start, limit)).await.map_err(failed)?;
        match begun {
            StepBegun::Open(open) => Ok(Ok(Slot::new(open))),
            StepBegun::Found(started) => match self.started(step, started)? {
                Some(value) => Ok(Err(value)),
                None => Err(step.fault("it was begun as a step of another kind")),
            },
        }
    }

    async fn undo(&self, slot: &Slot) {
        let Some(open) = slot.close() else { return };
        let undo = Commit { finish: None, keeps_rows: false, links: Vec::new() };
        let undone = self.runtime.ask_to_the_end(|store| async move { store.commit(open, &undo).await }).await;
        drop(undone); // whatever it says, nothing of it is kept
    }

    async fn commit<T: RecordedValue>(&self, step: &StepCall<'_>, slot: &Slot, value: &T) -> Result<T, Error> {
        let (result, value) = match self.write(step, value) {
            Ok(written) => written,
            Err(error) => {
                self.undo(slot).await;
                return Err(error);
            }
        };
        let Some(open) = slot.close() else { return Err(step.fault("its body did not give the `Tx` back")) };
        if !self.journal.begin() {
            drop(open); // undone
            return Err(lost(step));
        }
        self.journal.acted();
        let end = EndStep { record: self.record, attempt: self.attempt, name: step.name.to_owned(), result };
        match self.send(open, end).await {
            Ok(Committed::Stored { .. }) => {}
            // What its body wrote after it had ended the transaction is there. Of a record that is lost, this doubt says nothing.
            Ok(Committed::Lost) => {
                let why =
                    "its body has ended the transaction by itself, or this run has lost its record to another one";
                return Err(self.doubt(step, Reason::StepUnknown, why));
            }
            Ok(Committed::Undone(error)) => {
                return Err(
                    told::undone(error).with(|about| (about.body_ran, about.fate) = (true, Some(Fate::RunAgain)))
                );
            }
            Err(error) => {
                self.look_again(step, error).await?;
            }
        }
        self.journal.end(step.name);
        Ok(value)
    }

    async fn send(&self, open: OpenTransaction, end: EndStep) -> Result<Committed, StoreError> {
        self.runtime.ask_to_the_end(|store| async move { store.commit_step(open, &end).await }).await
    }

    /// The reply to its COMMIT was lost: the record's steps say whether it counted. One that does not show (yet) runs again in
    /// the next run, which looks for itself.
    async fn look_again(&self, step: &StepCall<'_>, error: StoreError) -> Result<(), Error> {
        self.warn(step, &error, "the reply to a step's COMMIT was lost; reading the steps again");
        let steps = self.runtime.ask(self.runtime.store().steps(self.record)).await.map_err(failed)?;
        let found = steps.into_iter().find(|found| found.name == step.name && found.result.is_some());
        match (found, error.kind) {
            (Some(_), _) => Ok(()),
            (
                None,
                StoreErrorKind::Unavailable
                | StoreErrorKind::Overloaded
                | StoreErrorKind::Corrupt
                | StoreErrorKind::Setup,
            ) => Err(failed(error)),
        }
    }
}
