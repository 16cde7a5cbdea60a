//! All that generated code may call. Not for use by hand: it changes with the attribute.
#![allow(missing_docs, reason = "hidden; the attribute's documentation tells the story")]

pub use inventory;

#[cfg(feature = "axum")]
pub use crate::http::measured;
#[cfg(feature = "axum")]
pub use crate::http::{Body, Incoming, Payload, Witness, body_runs_on_its_own_task, handle, rejected, unidentified};
use crate::{
    Runtime,
    key::{KeyPart, ScopePart},
};
pub use crate::{
    call::KeySource,
    error::Error,
    execution::{Supplied, Supply},
    function::{Recordable, Recorder, function, function_of},
    input::{Input, StoredInput},
    key::{Scope, ScopeWriter},
    operation::{
        ClientErrors, Database, ForeignScope, InDoubt, InFlight, KeyFormat, Kind, Operation, PayloadRule, Place,
        Registered,
    },
};

#[cfg(feature = "axum")]
pub type Response = axum::response::Response;

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

pub fn input<T>(argument: &T) -> Input
where
    T: StoredInput + ?Sized,
{
    Input::of(argument)
}

#[must_use]
pub fn runtime(runtime: &Runtime) -> Runtime {
    runtime.clone()
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
    use std::{marker::PhantomData, ops::Deref};

    use axum::{
        Form, Json,
        body::Body,
        extract::{FromRef, FromRequest, FromRequestParts, RawForm, Request},
    };
    use bytes::Bytes;

    use super::{Runtime, Supplied, Witness};
    use crate::http::Replayable;

    pub fn replayable<R>() -> Witness<R>
    where
        R: Replayable,
    {
        Witness(R::into_response)
    }

    // With `state = App`: what axum's `Handler` asks for, in our words. The blanket implementations are not
    // recommended, so that rustc stops at our message instead of listing axum's extractors.

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

    #[diagnostic::on_unimplemented(
        message = "`{Self}` cannot be extracted from a request",
        label = "not an extractor in a router whose state is `{S}`",
        note = "`Json<T>`, `Form<T>`, `Path<T>` and `Query<T>` need `T: serde::de::DeserializeOwned`, `State<T>` needs `T: FromRef<{S}>`",
        note = "write `#[idem]` in front of a parameter that the runtime supplies"
    )]
    pub trait Extractor<S, M> {}
    #[diagnostic::do_not_recommend]
    impl<S, M, E> Extractor<S, M> for E where E: FromRequest<S, M> {}

    pub fn must_be_an_extractor<S, E, M>()
    where
        E: Extractor<S, M>,
    {
    }

    #[diagnostic::on_unimplemented(
        message = "`{Self}` cannot be extracted from the head of a request",
        label = "not an extractor of request parts in a router whose state is `{S}`",
        note = "only the last parameter may take the body, as `Json`, `Form`, `String` and `Bytes` do",
        note = "`Path<T>` and `Query<T>` need `T: serde::de::DeserializeOwned`, `State<T>` needs `T: FromRef<{S}>`",
        note = "write `#[idem]` in front of a parameter that the runtime supplies"
    )]
    pub trait HeadExtractor<S> {}
    #[diagnostic::do_not_recommend]
    impl<S, E> HeadExtractor<S> for E where E: FromRequestParts<S> {}

    pub fn must_be_a_head_extractor<S, E>()
    where
        E: HeadExtractor<S>,
    {
    }

    // Without `state`: the two mistakes that show in the type alone. A suspicious `Parameter` has the method itself, with
    // a bound that nothing meets; on every other, the method of that name is found behind `Deref`.

    #[must_use]
    pub fn parameter<T>() -> Parameter<T> {
        Parameter(Unsuspicious, PhantomData)
    }

    #[derive(Debug)]
    pub struct Parameter<T>(Unsuspicious, PhantomData<fn() -> T>);

    #[derive(Debug)]
    pub struct Unsuspicious;

    impl<T> Deref for Parameter<T> {
        type Target = Unsuspicious;

        fn deref(&self) -> &Unsuspicious {
            &self.0
        }
    }

    impl Unsuspicious {
        pub fn comes_from_the_request(&self) {}
        pub fn leaves_the_body_to_the_last(&self) {}
    }

    impl<T: Supplied> Parameter<T> {
        pub fn comes_from_the_request(&self)
        where
            T: FromTheRequest,
        {
        }
    }

    impl<T: TakesTheBody> Parameter<T> {
        pub fn leaves_the_body_to_the_last(&self)
        where
            T: LeavesTheBody,
        {
        }
    }

    #[diagnostic::on_unimplemented(
        message = "`{Self}` comes from the runtime, not from the request",
        label = "write `#[idem]` in front of this parameter"
    )]
    pub trait FromTheRequest {}

    #[diagnostic::on_unimplemented(
        message = "`{Self}` takes the body of the request, which only the last parameter may do",
        label = "move this parameter to the end, where there can be only one such"
    )]
    pub trait LeavesTheBody {}

    pub trait TakesTheBody {}
    impl<T> TakesTheBody for Json<T> {}
    impl<T> TakesTheBody for Form<T> {}
    impl TakesTheBody for RawForm {}
    impl TakesTheBody for Bytes {}
    impl TakesTheBody for String {}
    impl TakesTheBody for Body {}
    impl<B> TakesTheBody for Request<B> {}
    impl<T: TakesTheBody> TakesTheBody for Option<T> {}
    impl<T: TakesTheBody, E> TakesTheBody for Result<T, E> {}
}
#[cfg(feature = "axum")]
pub use handlers::*;
