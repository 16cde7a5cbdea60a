//! Which return types a handler may have: [`Replayable`]; and the two that say more than a status can.

use std::borrow::Cow;

use axum::{
    Form, Json,
    response::{Html, IntoResponse, NoContent, Redirect, Response},
};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};

use crate::outcome::Declared;

/// A response that is sent whole, so that it can be stored and sent again byte for byte.
///
/// Implemented for axum's buffered responses, for tuples that end in one (status, headers and other parts in
/// front), for `Result<R, E>` with a replayable `R`, and for [`Response`] itself, whose body is stored if its length
/// is known beforehand and within `max_response`. Not for `Sse` or upgrades, which have no end to store.
///
/// For a type of your own that answers in one piece:
///
/// ```
/// # use axum::response::{IntoResponse, Response};
/// # struct Receipt(u64);
/// # impl IntoResponse for Receipt { fn into_response(self) -> Response { self.0.to_string().into_response() } }
/// impl idem_runtime::Replayable for Receipt {}
/// ```
#[diagnostic::on_unimplemented(
    message = "the response `{Self}` cannot be stored and replayed by `#[idempotent]`",
    label = "not known to be sent whole",
    note = "return `Json` of something `Serialize`, `String`, `Bytes`, a `StatusCode`, a tuple with one of them at its end, or a `Result`",
    note = "for a type of your own, write `impl idem_runtime::Replayable for .. {{}}`; for a foreign one, return `x.into_response()`",
    note = "an event stream (`Sse`) or an upgrade has no end, so there is nothing to replay: leave `#[idempotent]` off"
)]
pub trait Replayable: IntoResponse {}

/// The effect happened and this answer is final, whatever its status: `Final((StatusCode::PAYMENT_REQUIRED, ..))`
/// for a card that the provider declined, which a retry must not try again.
#[derive(Debug, Clone, Copy)]
pub struct Final<R>(pub R);

/// Surely nothing happened, whatever the status: `NotApplied(StatusCode::SERVICE_UNAVAILABLE)` for a provider that
/// could not be reached. The key is free, and a retry runs.
#[derive(Debug, Clone, Copy)]
pub struct NotApplied<R>(pub R);

impl<R: IntoResponse> IntoResponse for Final<R> {
    fn into_response(self) -> Response {
        declare(self.0, Declared::Final)
    }
}

impl<R: IntoResponse> IntoResponse for NotApplied<R> {
    fn into_response(self) -> Response {
        declare(self.0, Declared::NotApplied)
    }
}

fn declare(response: impl IntoResponse, declared: Declared) -> Response {
    let mut response = response.into_response();
    response.extensions_mut().insert(declared);
    response
}

macro_rules! replayable {
    ($($ty:ty),* $(,)?) => { $(
        #[diagnostic::do_not_recommend]
        impl Replayable for $ty {}
    )* };
}
replayable!(
    (),
    StatusCode,
    HeaderMap,
    String,
    &'static str,
    Box<str>,
    Cow<'static, str>,
    Bytes,
    BytesMut,
    Vec<u8>,
    &'static [u8],
    Box<[u8]>,
    Cow<'static, [u8]>,
    NoContent,
    Redirect,
    Response,
    std::convert::Infallible,
);

#[diagnostic::do_not_recommend]
impl<const N: usize> Replayable for [u8; N] {}
#[diagnostic::do_not_recommend]
impl<const N: usize> Replayable for &'static [u8; N] {}
#[diagnostic::do_not_recommend]
impl<T> Replayable for Json<T> where Self: IntoResponse {}
#[diagnostic::do_not_recommend]
impl<T> Replayable for Form<T> where Self: IntoResponse {}
#[diagnostic::do_not_recommend]
impl<T> Replayable for Html<T> where Self: IntoResponse {}
#[diagnostic::do_not_recommend]
impl<R: Replayable> Replayable for Final<R> {}
#[diagnostic::do_not_recommend]
impl<R: Replayable> Replayable for NotApplied<R> {}
/// Whatever the error is, it is no success, so only `R` needs to be replayable.
impl<R: Replayable, E> Replayable for Result<R, E> where Self: IntoResponse {}

macro_rules! tuples {
    ($(($($part:ident)*))*) => { $(
        #[diagnostic::do_not_recommend]
        impl<$($part,)* R: Replayable> Replayable for ($($part,)* R,) where Self: IntoResponse {}
    )* };
}
tuples! {
    ()
    (A)
    (A B)
    (A B C)
    (A B C D)
    (A B C D E)
    (A B C D E F)
    (A B C D E F G)
    (A B C D E F G H)
}
