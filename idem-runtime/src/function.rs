//! Plain functions and methods: the value of a `Result`, stored and given back typed.

use std::pin::pin;

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use tracing::Instrument;

use crate::{
    Runtime,
    call::{Call, KeySource},
    engine::{self, Answer},
    error::{Error, ErrorKind},
    execution::{Execution, Supply},
    fingerprint::{Content, Material, fingerprint},
    input::Input,
    key::Scope,
    observe::{Ending, Watch},
    operation::{Operation, PayloadRule},
    outcome::{Class, Declared, classify_result},
    owner::{Ended, Owner},
    state::Reason,
    store::{Outcome, StoredResponse},
    transaction,
};

/// A function's return type: `Result<T, E>` whose `T` can be stored and whose `E` can say why a call was not run.
#[diagnostic::on_unimplemented(
    message = "an idempotent `function` cannot return `{Self}`",
    label = "expected `Result<T, E>` with `T: Serialize + DeserializeOwned` and `E: From<idem_runtime::Error>`",
    note = "a retry gets the `T` back from the store, and an `E` when it is not run"
)]
pub trait Recordable: Sized {
    #[doc(hidden)]
    fn recorder() -> Recorder<Self>;
}

impl<T: RecordedValue, E: FromIdem> Recordable for Result<T, E> {
    fn recorder() -> Recorder<Self> {
        Recorder {
            close: |result, declared, max| match result {
                Ok(value) => close_ok(value, declared, max),
                Err(error) => (close_err(declared), Err(error)),
            },
            read: |body| T::read(body).map(Ok),
            refuse: |error| Err(E::from_idem(error)),
        }
    }
}

/// A value that a retry gets back from the store.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be replayed by `#[idempotent]`",
    label = "a retry gets this value back from the store, so it must be `Serialize` and `DeserializeOwned`",
    note = "for a type of your own, add `#[derive(serde::Serialize, serde::Deserialize)]`"
)]
pub trait RecordedValue: Sized {
    #[doc(hidden)]
    fn write(&self) -> Result<Bytes, serde_json::Error>;
    #[doc(hidden)]
    fn read(bytes: &[u8]) -> Result<Self, serde_json::Error>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> RecordedValue for T {
    fn write(&self) -> Result<Bytes, serde_json::Error> {
        serde_json::to_vec(self).map(Bytes::from)
    }

    fn read(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

/// An error type that can say why a call was not run.
#[diagnostic::on_unimplemented(
    message = "the error type `{Self}` cannot say why a call was not run",
    label = "must be made from `idem_runtime::Error`",
    note = "write `impl From<idem_runtime::Error> for {Self}`"
)]
pub trait FromIdem {
    #[doc(hidden)]
    fn from_idem(error: Error) -> Self;
}

#[diagnostic::do_not_recommend]
impl<E: From<Error>> FromIdem for E {
    fn from_idem(error: Error) -> Self {
        error.into()
    }
}

/// How a function's result becomes a record and back; carries the bounds, so that nothing else needs them.
#[must_use]
#[derive(Debug)]
pub struct Recorder<R> {
    close: fn(R, Option<Declared>, u64) -> (Outcome, R),
    read: fn(&[u8]) -> Result<R, serde_json::Error>,
    refuse: fn(Error) -> R,
}

/// Encodes the value and decodes it again, so that the first caller gets what every later one will get. A value
/// that does not survive that is not kept: the first caller gets it as it is, a retry is told that it is gone.
fn close_ok<T: RecordedValue, E>(value: T, declared: Option<Declared>, max: u64) -> (Outcome, Result<T, E>) {
    if classify_result(true, declared) == Class::Released {
        return (Outcome::Released(Reason::Status), Ok(value));
    }
    match value.write().and_then(|bytes| T::read(&bytes).map(|read| (bytes, read))) {
        Ok((bytes, read)) => {
            let kept = (bytes.len() as u64 <= max).then_some(bytes);
            (Outcome::Done(stored(kept)), Ok(read))
        }
        Err(error) => {
            tracing::error!(target: "idem::engine", kind = ?error.classify(), line = error.line(), column = error.column(), "a function's value cannot be stored; its retries will not be answered");
            (Outcome::Done(stored(None)), Ok(value))
        }
    }
}

/// An error is never kept as a value. A final one closes the key: its retry is told that the result is gone.
fn close_err(declared: Option<Declared>) -> Outcome {
    match classify_result(false, declared) {
        Class::Released => Outcome::Released(Reason::Status),
        Class::Done => Outcome::Done(stored(None)),
        Class::InDoubt | Class::Rejected(_) => Outcome::InDoubt(Reason::Status),
    }
}

fn stored(body: Option<Bytes>) -> StoredResponse {
    StoredResponse { status: None, headers: Bytes::new(), body }
}

impl StoredResponse {
    /// A value for [`Resolution::Complete`](crate::Resolution::Complete) of a function's operation: the `T` of its
    /// `Result<T, E>`.
    ///
    /// # Errors
    /// The encoder's, if the value cannot be written as JSON.
    pub fn value<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_vec(value).map(|bytes| stored(Some(bytes.into())))
    }
}

/// Runs the function's body, or answers in its place.
///
/// The body may borrow, so it runs here. Dropped while it runs, the key is held in doubt.
pub async fn function<R, B, F>(
    operation: &'static Operation,
    runtime: Runtime,
    scope: Scope,
    key: KeySource,
    recorder: Recorder<R>,
    body: B,
) -> R
where
    B: FnOnce(&mut Supply) -> Result<F, Error>,
    F: Future<Output = R>,
{
    function_of(operation, runtime, scope, key, Input::default(), recorder, body).await
}

/// As [`function`], with the argument that is kept for whoever goes on with the operation when it is interrupted.
pub async fn function_of<R, B, F>(
    operation: &'static Operation,
    runtime: Runtime,
    scope: Scope,
    key: KeySource,
    input: Input,
    recorder: Recorder<R>,
    body: B,
) -> R
where
    B: FnOnce(&mut Supply) -> Result<F, Error>,
    F: Future<Output = R>,
{
    let watch = runtime.observer().watch(operation.op, Some(&scope));
    let span = watch.span();
    let call = prepare(operation, &runtime, &scope, key, input, watch.clone());
    async move {
        match call {
            Ok((call, unkept)) => called(&runtime, &call, unkept, recorder, body).await,
            Err(error) => {
                watch.end(Ending::of_refusal(error.kind()));
                (recorder.refuse)(error.with(|about| about.op = Some(operation.op)))
            }
        }
    }
    .instrument(span)
    .await
}

/// `unkept`: why its argument cannot be kept. Then it is not run, and what is due is replayed all the same.
async fn called<R, B, F>(runtime: &Runtime, call: &Call, unkept: Option<Error>, recorder: Recorder<R>, body: B) -> R
where
    B: FnOnce(&mut Supply) -> Result<F, Error>,
    F: Future<Output = R>,
{
    let (read, refuse) = (recorder.read, recorder.refuse);
    let answer = match unkept {
        Some(error) => engine::peek(runtime, call).await.unwrap_or_else(|| Answer::Refused(call.explain(error))),
        None => engine::run(runtime, call, |owner| borrowed(owner, body, recorder)).await,
    };
    let error = match answer {
        Answer::Ran { value, .. } => return value, // its end was seen when it was stored
        Answer::Replay(stored) => match read(stored.body.as_deref().unwrap_or_default()) {
            Ok(value) => {
                call.watch.end(Ending::Replayed);
                return value;
            }
            Err(error) => {
                tracing::error!(target: "idem::engine", op = call.operation.op, record = call.record.short(), kind = ?error.classify(), line = error.line(), column = error.column(), "the stored value is no longer readable as this type");
                let source = Some(Box::new(error) as _);
                call.error(ErrorKind::ResultUnavailable).with(|about| about.source = source)
            }
        },
        Answer::Refused(error) => error,
    };
    call.watch.end(Ending::of_refusal(error.kind()));
    refuse(of_a_function(runtime, error))
}

/// A doubt that a hook is asked about may settle itself: nobody else tells a function's caller.
fn of_a_function(runtime: &Runtime, error: Error) -> Error {
    error.with(|about| {
        let recovers = about.op.is_some_and(|op| runtime.config().recovers(op));
        about.recovers = recovers && !about.given_up;
    })
}

/// The call that a key makes.
pub(crate) fn prepare(
    operation: &'static Operation,
    runtime: &Runtime,
    scope: &Scope,
    key: KeySource,
    input: Input,
    watch: Watch,
) -> Result<(Call, Option<Error>), Error> {
    runtime.serves(operation)?;
    let KeySource::Given(key) = key else { return Err(Error::new(ErrorKind::MissingKey)) };
    let material = Material { path: &[], query: "", media_type: "", body: Content::Bytes(&[]) };
    let (input, unkept) = match input.within(runtime.config().max_input) {
        Ok(input) => (input, None),
        Err(error) => (None, Some(error)),
    };
    let call = Call {
        operation,
        record: runtime.record(operation, scope, &key)?,
        scope: scope.text(),
        fingerprint: operation.bound(scope, fingerprint(PayloadRule::None, &material)),
        input,
        order: None,
        patience: runtime.rules(operation).patience,
        accepts: false, // nothing to fetch it with
        watch,
    };
    Ok((call, unkept))
}

/// A body that borrows from its caller.
async fn borrowed<R, B, F>(owner: Owner, body: B, recorder: Recorder<R>) -> Answer<R>
where
    B: FnOnce(&mut Supply) -> Result<F, Error>,
    F: Future<Output = R>,
{
    let execution = match owner.start().await {
        Ok(execution) => execution,
        Err(error) => return Answer::Refused(error),
    };
    let runtime = owner.runtime().clone();
    let (ended, value) = ended(&owner, &execution, body, &recorder).await;
    // On its own task: the outcome is stored even if the caller leaves now, or does not ask for a while.
    match runtime.on_its_own_task(engine::settle(owner, ended, ())).await {
        Some(Answer::Ran { recorded, .. }) => Answer::Ran { value, recorded },
        Some(Answer::Replay(stored)) => Answer::Replay(stored),
        Some(Answer::Refused(error)) => Answer::Refused(error),
        None => Answer::Ran { value, recorded: false },
    }
}

async fn ended<R, B, F>(owner: &Owner, execution: &Execution, body: B, recorder: &Recorder<R>) -> (Ended, R)
where
    B: FnOnce(&mut Supply) -> Result<F, Error>,
    F: Future<Output = R>,
{
    let body = match body(&mut owner.supply(execution)) {
        Ok(body) => body,
        Err(error) => {
            let call = owner.call();
            transaction::failed::tell(call.operation, Some(call.record), &error);
            call.watch.end(Ending::of_refusal(error.kind()));
            let released = Ended::by_itself(Outcome::Released(Reason::Status), false);
            return (released, (recorder.refuse)(owner.call().explain(error)));
        }
    };
    match owner.run(pin!(body)).await {
        Ok(result) => {
            let max_response = owner.runtime().config().max_response;
            let (outcome, value) = (recorder.close)(result, execution.declared(), max_response);
            (Ended::by_itself(outcome, true).said(execution.declared()), value)
        }
        Err(cut_off) => {
            let (ended, error) = owner.cut_off(cut_off);
            (ended, (recorder.refuse)(of_a_function(owner.runtime(), error)))
        }
    }
}
