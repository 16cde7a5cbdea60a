//! What becomes of a step: skipped, run, found out, or refused.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::{Journal, MAX_NAME, StepCall, StepKey, Steps, journal::Before, undecided::why_not_again};
use crate::{
    Runtime,
    error::{Error, Fate},
    function::{FromIdem, RecordedValue},
    key::RecordId,
    state::Reason,
    store::{Attempt, EndStep, StartStep, Started, StepEnded, StepKind, StoreError},
};

/// How long to wait before the store is asked again, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// The recorded run that a step belongs to.
pub(super) struct Recorded<'s> {
    pub(super) runtime: &'s Runtime,
    pub(super) record: RecordId,
    pub(super) attempt: Attempt,
    pub(super) journal: &'s Journal,
}

/// How a step goes on.
pub(super) enum Way<T> {
    Skip(T),
    Run,
    /// Begun by an earlier run, so long ago.
    RunAgain(Duration),
}

/// What a step comes to before it is called.
enum Begun<'s, T> {
    Unrecorded,
    /// It has its result.
    Done(T),
    /// It is noted; `is_new`: by this run.
    Now {
        recorded: Recorded<'s>,
        is_new: bool,
    },
}

impl Steps {
    /// `None`: unprotected, nothing is recorded.
    pub(super) fn recorded(&self) -> Option<Recorded<'_>> {
        let ((runtime, record), journal) = self.execution.record().zip(self.execution.journal())?;
        Some(Recorded { runtime, record: *record, attempt: self.execution.attempt(), journal })
    }

    fn key(&self, step: &StepCall<'_>) -> StepKey {
        let record = self
            .execution
            .record()
            .map_or_else(|| RecordId::from(*self.execution.attempt().as_bytes()), |(_, record)| *record);
        StepKey::new(record, self.execution.epoch().0, step.name)
    }

    /// How all steps but transactions begin: as far as possible by what is known, else noted in the store. `again` says
    /// whether one that an earlier run has begun, so long ago, may go on.
    async fn begin<T: RecordedValue>(
        &self,
        step: &StepCall<'_>,
        again: fn(&Recorded<'_>, &StepCall<'_>, Duration) -> Result<(), Error>,
    ) -> Result<Begun<'_, T>, Error> {
        let Some(recorded) = self.recorded() else { return Ok(Begun::Unrecorded) };
        let is_new = match recorded.way(step)? {
            Way::Skip(value) => return Ok(Begun::Done(value)),
            Way::Run => true,
            Way::RunAgain(age) => again(&recorded, step, age).map(|()| false)?,
        };
        Ok(match recorded.start(step).await? {
            Some(value) => Begun::Done(value),
            None => Begun::Now { recorded, is_new },
        })
    }

    pub(super) async fn run_step<T, E, F>(&self, step: StepCall<'_>, call: F) -> Result<T, E>
    where
        F: AsyncFnOnce(StepKey) -> Result<T, E>,
        T: RecordedValue,
        E: FromIdem,
    {
        let key = self.key(&step);
        match self.begin(&step, |recorded, step, age| recorded.again(step, age)).await.map_err(E::from_idem)? {
            Begun::Unrecorded => call(key).await,
            Begun::Done(value) => Ok(value),
            Begun::Now { recorded, .. } => {
                let value = call(key).await?;
                recorded.end(&step, &value).await.map_err(E::from_idem)
            }
        }
    }

    pub(super) async fn once_step<T, E, F>(&self, step: StepCall<'_>, call: F) -> Result<T, E>
    where
        F: AsyncFnOnce(StepKey) -> Result<T, E>,
        T: RecordedValue,
        E: FromIdem,
    {
        let key = self.key(&step);
        match self.begin(&step, |recorded, step, age| recorded.again(step, age)).await.map_err(E::from_idem)? {
            Begun::Unrecorded => call(key).await,
            Begun::Done(value) => Ok(value),
            Begun::Now { recorded, .. } => {
                recorded.journal.only_once(step.name);
                let value = call(key).await?;
                recorded.end(&step, &value).await.map_err(E::from_idem)
            }
        }
    }

    pub(super) async fn once_or_find_step<T, E, F, G>(&self, step: StepCall<'_>, call: F, find: G) -> Result<T, E>
    where
        F: AsyncFnOnce(StepKey) -> Result<T, E>,
        G: AsyncFnOnce(StepKey) -> Result<Option<T>, E>,
        T: RecordedValue,
        E: FromIdem,
    {
        let key = self.key(&step);
        let (recorded, is_new) = match self.begin(&step, |_, _, _| Ok(())).await.map_err(E::from_idem)? {
            Begun::Unrecorded => return call(key).await,
            Begun::Done(value) => return Ok(value),
            Begun::Now { recorded, is_new } => (recorded, is_new),
        };
        let value = if is_new { Some(call(key).await?) } else { find(key).await? };
        let Some(value) = value else {
            let why = "an earlier run has begun it, and its provider does not know it (yet)";
            return Err(E::from_idem(recorded.doubt(&step, Reason::StepUnknown, why)));
        };
        recorded.end(&step, &value).await.map_err(E::from_idem)
    }
}

impl Recorded<'_> {
    /// What is to be done about it, as far as this process knows.
    pub(super) fn way<T: RecordedValue>(&self, step: &StepCall<'_>) -> Result<Way<T>, Error> {
        crate::transaction::refuse_nested(self.runtime)?;
        if step.name.is_empty() || step.name.len() > MAX_NAME || step.name.contains('\0') {
            return Err(step.fault("a step's name is 1 to 128 bytes without NUL"));
        }
        if let Err(first) = self.journal.name(step) {
            let told =
                format_args!("its name was used at {first} before, and a name is one step; put what differs into it");
            return Err(step.fault(told));
        }
        match self.journal.before(step) {
            Before::New => Ok(Way::Run),
            Before::Begun { age } => Ok(Way::RunAgain(age)),
            Before::Done(result) => self.read(step, &result).map(Way::Skip),
            Before::Another(why) => Err(self.doubt(step, Reason::CodeChanged, why)),
        }
    }

    /// One that was begun so long ago, and that nobody is asked about.
    fn again(&self, step: &StepCall<'_>, age: Duration) -> Result<(), Error> {
        match why_not_again(step.kind, age, self.runtime.config().provider_window) {
            None => Ok(()),
            Some(why) => Err(self.doubt(step, Reason::StepUnknown, why)),
        }
    }

    /// The record is in doubt from the end of this run on.
    pub(super) fn doubt(&self, step: &StepCall<'_>, reason: Reason, why: &str) -> Error {
        self.journal.doubt(reason);
        let error = step.unknown(why);
        tracing::error!(target: "idem::steps", record = %self.record, step = step.name, ?reason, error = &error as &dyn std::error::Error, "an operation cannot go on; it waits for `Runtime::resolve`");
        error
    }

    pub(super) fn read<T: RecordedValue>(&self, step: &StepCall<'_>, result: &Bytes) -> Result<T, Error> {
        T::read(result).map_err(|error| {
            let why = "its recorded result cannot be read as this type any more";
            self.doubt(step, Reason::CodeChanged, why).with(|about| about.source = Some(Box::new(error)))
        })
    }

    pub(super) fn start_of(&self, step: &StepCall<'_>) -> StartStep {
        StartStep {
            record: self.record,
            attempt: self.attempt,
            name: step.name.to_owned(),
            kind: step.kind,
            input: step.input,
        }
    }

    /// Notes that it is about to be run; once more, if the reply is lost. `Some`: it has its result already.
    async fn start<T: RecordedValue>(&self, step: &StepCall<'_>) -> Result<Option<T>, Error> {
        if !self.journal.begin() {
            return Err(lost(step));
        }
        let starts = [self.start_of(step)];
        let ask = || self.runtime.ask_one(self.runtime.store().start_steps(&starts));
        let started = match ask().await {
            Ok(started) => started,
            Err(error) => {
                self.warn(step, &error, "the begin of a step was not stored, sending it again");
                tokio::time::sleep(RETRY.0).await;
                ask().await.map_err(failed)?
            }
        };
        self.started(step, started)
    }

    pub(super) fn started<T: RecordedValue>(&self, step: &StepCall<'_>, started: Started) -> Result<Option<T>, Error> {
        let Started::Step(stored) = started else { return Err(lost(step)) };
        let (result, age) = (stored.result.clone(), stored.age);
        self.journal.note(stored);
        match (self.journal.before(step), result) {
            (Before::Another(why), _) => Err(self.doubt(step, Reason::CodeChanged, why)),
            (_, Some(result)) => {
                let value = self.read(step, &result)?;
                self.journal.end(step.name);
                Ok(Some(value))
            }
            (_, None) if step.kind == StepKind::Run => self.again(step, age).map(|()| None),
            (_, None) => Ok(None),
        }
    }

    /// The result as it is stored, and as every later run reads it.
    pub(super) fn write<T: RecordedValue>(&self, step: &StepCall<'_>, value: &T) -> Result<(Bytes, T), Error> {
        let told = "its result cannot be stored, so it is not known to have ended";
        let unfit = |error| step.fault(told).with(|about| about.source = Some(Box::new(error)));
        let bytes = value.write().map_err(unfit)?;
        let read = T::read(&bytes).map_err(unfit)?;
        let max = self.runtime.config().max_response;
        if bytes.len() as u64 > max {
            let (length, what) = (bytes.len(), "its result cannot be stored");
            return Err(step.fault(format_args!("{what}: it is {length} bytes long, `max_response` is {max}")));
        }
        Ok((bytes, read))
    }

    /// Stores the result, and tries again until the lease ends: it has taken effect.
    async fn end<T: RecordedValue>(&self, step: &StepCall<'_>, value: &T) -> Result<T, Error> {
        self.journal.acted();
        let (result, value) = self.write(step, value)?;
        let ends = [EndStep {
            record: self.record,
            attempt: self.attempt,
            name: step.name.to_owned(),
            result: result.clone(),
        }];
        let (deadline, mut pause) = (Instant::now() + self.runtime.config().lease, RETRY.0);
        loop {
            match self.runtime.ask_one(self.runtime.store().end_steps(&ends)).await {
                Ok(StepEnded::Stored) => break,
                Ok(StepEnded::Lost) => return Err(lost(step)),
                Err(error) if Instant::now() + pause >= deadline => return Err(failed(error)),
                Err(error) => self.warn(step, &error, "the result of a step was not stored yet, trying again"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY.1);
        }
        self.journal.end(step.name);
        Ok(value)
    }

    pub(super) fn warn(&self, step: &StepCall<'_>, error: &StoreError, what: &'static str) {
        let (record, error) = (self.record.short(), error as &dyn std::error::Error);
        tracing::warn!(target: "idem::steps", record, step = step.name, error, "{what}");
    }
}

/// Another run owns the record by now. Whatever this one still says is not sent.
pub(super) fn lost(step: &StepCall<'_>) -> Error {
    let why = "this run is over, or has lost its record to another one; it must not go on";
    step.unknown(why).with(|about| about.fate = Some(Fate::RunAgain))
}

pub(super) fn failed(error: StoreError) -> Error {
    Error::from_store(error).with(|about| {
        about.body_ran = true;
        about.fate = Some(Fate::RunAgain);
    })
}
