//! Operations of several steps, of which a retry runs those that are missing: [`Steps`].

mod given;
mod journal;
mod run;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod transaction;
mod undecided;

use std::{fmt, panic::Location};

use serde::Serialize;

pub use self::given::Given;
pub(crate) use self::{journal::Journal, undecided::undecided};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::transaction::Tx;
use crate::{
    error::{Error, ErrorKind, Fate},
    execution::{Execution, Supplied, Supply, sealed},
    function::{FromIdem, RecordedValue},
    key::RecordId,
    store::StepKind,
};

/// The recorded steps of an operation: `#[idem] steps: Steps`. Each step's result is stored when it ends; when the operation
/// breaks off, for whatever reason, the next retry with the same payload runs the body again, and a step that has a result
/// gives it back instead of running.
///
/// ```
/// # #[cfg(feature = "axum")] {
/// # use axum::{Json, http::StatusCode};
/// # use idem_runtime::{Error, Steps, idempotent};
/// # async fn create_customer(_key: &str, _email: &str) -> Result<String, Error> { Ok(String::new()) }
/// # async fn welcome(_key: &str, _email: &str) -> Result<(), Error> { Ok(()) }
/// #[idempotent(scope = global, op = "provision", ttl = "48h")]
/// async fn provision(#[idem] steps: Steps, Json(email): Json<String>) -> Result<Json<String>, Error> {
///     let customer = steps.run("customer", async |key| create_customer(key.as_str(), &email).await).await?;
///     steps.link("billing", &customer).await?;
///     steps.run("welcome-mail", async |key| welcome(key.as_str(), &email).await).await?;
///     Ok(Json(customer))
/// }
/// # }
/// ```
///
/// Three kinds of step, by what may be done about one that was begun and never ended:
///
/// | | runs again | for |
/// |---|---|---|
/// | [`run`](Self::run) | yes, with the same key, within `provider_window` of its first try | a provider that dedupes by key |
/// | [`transaction`](Self::transaction) | it never is: its rows and its result are one commit | rows in the store's own database |
/// | [`once`](Self::once) | no: the operation is in doubt | a provider that cannot dedupe |
///
/// **All effects belong into steps.** What stands between them runs again with each retry, and should do so with the same
/// result: read and decide there, from the payload and from what steps have returned. Refuse before the first step: after it, a
/// 4xx is no proof that nothing has happened, and the operation stays resumable. A provider's "no" (a card that was declined) is a
/// result: return it as `Ok`. Results are kept as JSON, in the clear, for as long as the record: no secrets.
///
/// **A name is one step**, the same for as long as operations with it may be under way: 1 to 128 bytes. In a loop, put the
/// item into it: `format!("mail-{id}")`. The order in which steps run does not matter, so they may run side by side
/// (`tokio::join!`; `try_join!` drops the others where one fails, and a `once` that is dropped is in doubt). A step that an earlier run has recorded, and that the body does not name any more when it succeeds, puts
/// the operation in doubt ([`Reason::CodeChanged`](crate::state::Reason::CodeChanged)): after a deploy that renames a step, it
/// would have run twice, and nobody would know.
///
/// **How a run ends.** 2xx, 3xx, `Ok` and [`Final`](crate::Final) complete the operation. After any other end, and a panic, a
/// time-out, a lost process, the next retry with the same payload continues it, for as long as late retries would be refused
/// (`refuse_late`, or `ttl`); after that it is in doubt. Where no step has begun, and nothing was linked, nothing has happened, and the key is free.
/// [`NotApplied`](crate::NotApplied) frees it, too, in the first run, as long as no step has a result and nothing was linked.
///
/// Without a key (`optional`), nothing is recorded: steps just run, with random keys.
///
/// # Cancel safety
/// A step that is dropped before it has ended is one that was begun: it runs again with the next retry, or (`once`) is in doubt.
#[derive(Clone)]
pub struct Steps {
    execution: Execution,
}

/// What a step hands to its provider: 64 hex digits, the same whenever this step of this operation runs, and no other's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StepKey([u8; 64]);

impl StepKey {
    fn new(record: RecordId, epoch: i64, step: &str) -> Self {
        let mut key = [b'0'; 64];
        let digits = record.provider_key(epoch, step);
        key.iter_mut().zip(digits.bytes()).for_each(|(place, digit)| *place = digit);
        Self(key)
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default() // hex digits
    }
}

/// Without its digits: whoever has them can speak to the provider for this step.
impl fmt::Debug for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StepKey(..)")
    }
}

/// A step, as the body names it.
#[derive(Debug, Clone, Copy)]
struct StepCall<'a> {
    name: &'a str,
    kind: StepKind,
    input: Option<[u8; 32]>,
    at: &'static Location<'static>,
}

/// The longest name of a step, in bytes.
const MAX_NAME: usize = 128;

impl StepCall<'_> {
    #[track_caller]
    fn new(name: &str, kind: StepKind) -> StepCall<'_> {
        StepCall { name, kind, input: None, at: Location::caller() }
    }

    /// A fault of the program, told where it looks; clients are told that there is one.
    fn fault(&self, what: impl fmt::Display) -> Error {
        let told = format!("step `{}` at {}: {what}", self.name, self.at);
        Error::new(ErrorKind::Step).with(|about| {
            about.told = Some(told);
            about.body_ran = true;
            about.fate = Some(Fate::RunAgain);
        })
    }

    /// Nobody can say how it goes on.
    fn unknown(&self, why: impl fmt::Display) -> Error {
        let told = format!("step `{}` at {}: {why}", self.name, self.at);
        Error::new(ErrorKind::InDoubt).with(|about| {
            about.told = Some(told);
            about.body_ran = true;
        })
    }
}

impl Steps {
    /// A step that may run again: after a failure, or when it never came to an end, the next retry calls it again with the same
    /// [`StepKey`], by which its provider must dedupe. Within the builder's `provider_window` of its first try, for providers
    /// forget; after that the operation is in doubt.
    ///
    /// Returns what `call` returns. The first caller, too, gets the value as it is read back from the store, so that no retry
    /// sees another one.
    ///
    /// # Errors
    /// What `call` returns; or, made into an `E`, [`ErrorKind::Step`] if the name was used before in this run or is not 1 to 128
    /// bytes, if the result cannot be stored (it does not survive being written as JSON and read again, or is longer than
    /// `max_response`), or if this run has lost its record to another one; [`ErrorKind::InDoubt`] if what an earlier run has left
    /// does not allow to go on; [`ErrorKind::Unavailable`] if the store fails. Pass it on with `?`.
    #[track_caller]
    pub fn run<'a, T, E, F>(&'a self, name: &'a str, call: F) -> impl Future<Output = Result<T, E>> + use<'a, T, E, F>
    where
        F: AsyncFnOnce(StepKey) -> Result<T, E>,
        T: RecordedValue,
        E: FromIdem,
    {
        self.run_step(StepCall::new(name, StepKind::Run), call)
    }

    /// A step that must not run again: for a provider that cannot dedupe. If it fails, or never comes to an end, nobody knows
    /// whether it took effect, and the operation is in doubt ([`Reason::StepUnknown`](crate::state::Reason::StepUnknown)) until an
    /// operator or a recovery hook settles it. Where the provider can be asked, use
    /// [`once_or_find`](Self::once_or_find).
    ///
    /// # Errors
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn once<'a, T, E, F>(&'a self, name: &'a str, call: F) -> impl Future<Output = Result<T, E>> + use<'a, T, E, F>
    where
        F: AsyncFnOnce(StepKey) -> Result<T, E>,
        T: RecordedValue,
        E: FromIdem,
    {
        self.once_step(StepCall::new(name, StepKind::Once), call)
    }

    /// As [`once`](Self::once), with a way to find out: if an earlier run has begun the step, `find` is asked instead of `call`.
    /// `Some` is the step's result. `None` is no proof that nothing happened (a request may still be on its way), so the
    /// operation is in doubt. After an error of `find` the next retry asks again.
    ///
    /// # Errors
    /// As [`run`](Self::run), and what `find` returns.
    #[track_caller]
    pub fn once_or_find<'a, T, E, F, G>(
        &'a self,
        name: &'a str,
        call: F,
        find: G,
    ) -> impl Future<Output = Result<T, E>> + use<'a, T, E, F, G>
    where
        F: AsyncFnOnce(StepKey) -> Result<T, E>,
        G: AsyncFnOnce(StepKey) -> Result<Option<T>, E>,
        T: RecordedValue,
        E: FromIdem,
    {
        self.once_or_find_step(StepCall::new(name, StepKind::Once), call, find)
    }

    /// A step in a transaction of the store's own database: the rows that `body` writes and the step's result are committed
    /// together, or nothing of them is. An `Err`, a panic and a time-out (`transaction_timeout`, or the operation's `timeout`)
    /// undo all, and the next retry runs it again.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] {
    /// # use idem_runtime::{Error, Steps, Tx};
    /// # use sqlx::Sqlite;
    /// # enum Trouble { Idem(Error), Database(sqlx::Error) }
    /// # impl From<Error> for Trouble { fn from(error: Error) -> Self { Self::Idem(error) } }
    /// # impl From<sqlx::Error> for Trouble { fn from(error: sqlx::Error) -> Self { Self::Database(error) } }
    /// # async fn f(steps: Steps, email: &str) -> Result<(), Trouble> {
    /// let insert = async |tx: &mut Tx<Sqlite>| {
    ///     let user = sqlx::query("insert into users (email) values (?1)").bind(email).execute(&mut **tx).await?;
    ///     Ok::<_, Trouble>(user.last_insert_rowid())
    /// };
    /// let user = steps.transaction("user", insert).await?;
    /// # drop(user); Ok(()) } }
    /// ```
    ///
    /// What holds for a [`Tx`] holds here: do not end the transaction by SQL, and do not wait for other systems inside.
    ///
    /// # Errors
    /// As [`run`](Self::run); and [`ErrorKind::Transaction`] where the transaction cannot be opened or committed by a fault of the
    /// program, [`ErrorKind::TimedOut`] where `body` took too long.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    #[track_caller]
    pub fn transaction<'a, Db, T, E, F>(
        &'a self,
        name: &'a str,
        body: F,
    ) -> impl Future<Output = Result<T, E>> + use<'a, Db, T, E, F>
    where
        Db: sqlx::Database,
        F: AsyncFnOnce(&mut Tx<Db>) -> Result<T, E>,
        T: RecordedValue,
        E: FromIdem,
    {
        self.transaction_step(StepCall::new(name, StepKind::Transaction), body)
    }

    /// Says what the next step is given, so that a deploy which gives it something else does not go unnoticed: a digest of
    /// `input`'s canonical JSON is recorded with the step, and a later run that gives another input is in doubt
    /// ([`Reason::CodeChanged`](crate::state::Reason::CodeChanged)) instead of taking the old result for the new one's. An `input`
    /// that cannot be written as JSON is that step's error ([`ErrorKind::Step`]), before it is begun.
    ///
    /// ```
    /// # use idem_runtime::{Error, Steps};
    /// # async fn quote(_amount: u64) -> Result<u64, Error> { Ok(7) }
    /// # async fn f(steps: Steps, amount: u64) -> Result<(), Error> {
    /// let price = steps.given(&amount).run("quote", async |_key| quote(amount).await).await?;
    /// # drop(price); Ok(()) }
    /// ```
    pub fn given<I: Serialize + ?Sized>(&self, input: &I) -> Given<'_> {
        Given::new(self, input)
    }

    /// Records what a provider calls this operation: [`Execution::link`]. It is evidence of an effect, so from here on the
    /// operation counts as begun, also where no step has: whatever the run comes to, [`NotApplied`](crate::NotApplied) included, the next
    /// one continues it.
    ///
    /// # Errors
    /// As there.
    pub async fn link(&self, provider: &str, id: &str) -> Result<(), Error> {
        self.execution.link(provider, id).await
    }

    /// The run that the steps are part of.
    #[must_use]
    pub fn execution(&self) -> &Execution {
        &self.execution
    }
}

impl sealed::Sealed for Steps {}

impl Supplied for Steps {
    fn supply(from: &mut Supply) -> Result<Self, Error> {
        let execution = Execution::supply(from)?;
        if execution.is_protected() && execution.journal().is_none() {
            let told =
                "`Steps` stands behind an alias, so nothing is recorded for it: write the type as `Steps`".to_owned();
            return Err(Error::new(ErrorKind::Step).with(|about| about.told = Some(told)));
        }
        Ok(Self { execution })
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps").field("execution", &self.execution).finish()
    }
}
