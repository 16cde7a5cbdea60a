//! Steps whose input is recorded.

use serde::Serialize;

use super::{StepCall, StepKey, Steps};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::transaction::Tx;
use crate::{
    fingerprint::canonical_digest,
    function::{FromIdem, RecordedValue},
    store::StepKind,
};

/// [`Steps`] whose next step's input is recorded: see [`Steps::given`].
#[derive(Debug)]
#[must_use = "names the input of a step that is yet to be run"]
pub struct Given<'s> {
    steps: &'s Steps,
    /// Its digest, or why there is none.
    input: Result<[u8; 32], serde_json::Error>,
}

impl<'s> Given<'s> {
    pub(super) fn new<I: Serialize + ?Sized>(steps: &'s Steps, input: &I) -> Self {
        Self { steps, input: serde_json::to_vec(input).map(|json| canonical_digest(&json)) }
    }

    /// The step with its input.
    fn of<'c, E: FromIdem>(self, step: StepCall<'c>) -> Result<(&'s Steps, StepCall<'c>), E> {
        match self.input {
            Ok(input) => Ok((self.steps, StepCall { input: Some(input), ..step })),
            Err(error) => {
                let told = step.fault("what it is given cannot be written as JSON, so no later run could compare it");
                Err(E::from_idem(told.with(|about| about.source = Some(Box::new(error)))))
            }
        }
    }

    /// As [`Steps::run`].
    ///
    /// # Errors
    /// As there; and [`ErrorKind::Step`](crate::ErrorKind::Step) if the input cannot be written as JSON.
    #[track_caller]
    pub fn run<'a, T, E, F>(self, name: &'a str, call: F) -> impl Future<Output = Result<T, E>> + use<'s, 'a, T, E, F>
    where
        F: AsyncFnOnce(StepKey) -> Result<T, E>,
        T: RecordedValue,
        E: FromIdem,
    {
        let step = StepCall::new(name, StepKind::Run);
        async move {
            let (steps, step) = self.of(step)?;
            steps.run_step(step, call).await
        }
    }

    /// As [`Steps::once`].
    ///
    /// # Errors
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn once<'a, T, E, F>(self, name: &'a str, call: F) -> impl Future<Output = Result<T, E>> + use<'s, 'a, T, E, F>
    where
        F: AsyncFnOnce(StepKey) -> Result<T, E>,
        T: RecordedValue,
        E: FromIdem,
    {
        let step = StepCall::new(name, StepKind::Once);
        async move {
            let (steps, step) = self.of(step)?;
            steps.once_step(step, call).await
        }
    }

    /// As [`Steps::once_or_find`].
    ///
    /// # Errors
    /// As [`run`](Self::run), and what `find` returns.
    #[track_caller]
    pub fn once_or_find<'a, T, E, F, G>(
        self,
        name: &'a str,
        call: F,
        find: G,
    ) -> impl Future<Output = Result<T, E>> + use<'s, 'a, T, E, F, G>
    where
        F: AsyncFnOnce(StepKey) -> Result<T, E>,
        G: AsyncFnOnce(StepKey) -> Result<Option<T>, E>,
        T: RecordedValue,
        E: FromIdem,
    {
        let step = StepCall::new(name, StepKind::Once);
        async move {
            let (steps, step) = self.of(step)?;
            steps.once_or_find_step(step, call, find).await
        }
    }

    /// As [`Steps::transaction`].
    ///
    /// # Errors
    /// As there; and [`ErrorKind::Step`](crate::ErrorKind::Step) if the input cannot be written as JSON.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    #[track_caller]
    pub fn transaction<'a, Db, T, E, F>(
        self,
        name: &'a str,
        body: F,
    ) -> impl Future<Output = Result<T, E>> + use<'s, 'a, Db, T, E, F>
    where
        Db: sqlx::Database,
        F: AsyncFnOnce(&mut Tx<Db>) -> Result<T, E>,
        T: RecordedValue,
        E: FromIdem,
    {
        let step = StepCall::new(name, StepKind::Transaction);
        async move {
            let (steps, step) = self.of(step)?;
            steps.transaction_step(step, body).await
        }
    }
}
