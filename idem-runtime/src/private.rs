//! All that generated code may call. Not for use by hand: it changes with the attribute.
#![allow(missing_docs, reason = "hidden; the attribute's documentation tells the story")]

pub use inventory;

#[cfg(feature = "axum")]
pub use crate::http::{Incoming, Payload, Witness, handle, rejected};
use crate::{
    Runtime,
    execution::Execution,
    key::{KeyPart, ScopePart},
};
pub use crate::{
    error::Error,
    function::{Recordable, Recorder, function},
    key::{Scope, ScopeWriter},
    operation::{ClientErrors, InFlight, KeyFormat, Kind, Operation, PayloadRule, Place, Registered},
};

#[cfg(feature = "axum")]
pub type Response = axum::response::Response;

/// Where an operation's key comes from.
#[derive(Debug)]
pub enum KeySource {
    Header,
    Given(Vec<u8>),
}

#[must_use]
pub fn header_key() -> KeySource {
    KeySource::Header
}

pub fn key<F>(bytes: F) -> KeySource
where
    F: FnOnce() -> Vec<u8>,
{
    KeySource::Given(bytes())
}

#[must_use]
pub fn key_part<T>(part: &T) -> Vec<u8>
where
    T: KeyPart + ?Sized,
{
    part.key_bytes().into_owned()
}

pub fn scope<F>(write: F) -> Scope
where
    F: FnOnce(&mut ScopeWriter),
{
    let mut out = ScopeWriter::default();
    write(&mut out);
    Scope::from(out)
}

pub fn scope_part<T>(part: &T, out: &mut ScopeWriter)
where
    T: ScopePart + ?Sized,
{
    part.write_scope(out);
}

#[must_use]
pub fn runtime(runtime: &Runtime) -> Runtime {
    runtime.clone()
}

/// What the runtime hands to `#[idem]` parameters.
#[derive(Debug)]
pub struct Supply {
    execution: Execution,
}

impl Supply {
    pub(crate) fn new(execution: Execution) -> Self {
        Self { execution }
    }
}

#[diagnostic::on_unimplemented(
    message = "the runtime cannot supply a `{Self}`",
    label = "`#[idem]` parameters are of type `Execution`",
    note = "take `#[idem]` off a parameter that comes from the request or the caller"
)]
pub trait Supplied: sealed::Sealed + Sized {
    #[doc(hidden)]
    fn supply(from: &mut Supply) -> Result<Self, Error>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::execution::Execution {}
}

impl Supplied for Execution {
    fn supply(from: &mut Supply) -> Result<Self, Error> {
        Ok(from.execution.clone())
    }
}

pub fn supply<T>(from: &mut Supply) -> Result<T, Error>
where
    T: Supplied,
{
    T::supply(from)
}

pub fn recordable<R>() -> Recorder<R>
where
    R: Recordable,
{
    R::recorder()
}

#[cfg(feature = "axum")]
mod handlers {
    use axum::extract::{FromRef, FromRequest, FromRequestParts};

    use super::{Runtime, Witness};
    use crate::http::Replayable;

    pub fn replayable<R>() -> Witness<R>
    where
        R: Replayable,
    {
        Witness(R::into_response)
    }

    /// A body that is not `Send` is one error here, in words.
    pub fn body_runs_on_its_own_task<F>(body: F) -> F
    where
        F: Future + Send + 'static,
    {
        body
    }

    #[diagnostic::on_unimplemented(
        message = "the router state `{Self}` does not hold the idempotency runtime",
        label = "no `Runtime` in this state",
        note = "add a field `idem: idem_runtime::Runtime` and `#[derive(axum::extract::FromRef)]` to `{Self}`"
    )]
    pub trait HoldsRuntime {}
    #[diagnostic::do_not_recommend]
    impl<S> HoldsRuntime for S where Runtime: FromRef<S> {}

    pub fn state_must_hold_the_runtime<S>()
    where
        S: HoldsRuntime,
    {
    }

    pub fn must_be_a_body_extractor<S, E, M>()
    where
        E: FromRequest<S, M>,
    {
    }

    pub fn must_be_a_head_extractor<S, E>()
    where
        E: FromRequestParts<S>,
    {
    }
}
#[cfg(feature = "axum")]
pub use handlers::*;
