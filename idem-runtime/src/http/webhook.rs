#![doc = include_str!("../docs/webhooks.md")]

mod delivery;
mod github;
mod secrets;
mod standard;
mod stripe;
#[cfg(test)]
mod tests;
mod tolerance;
mod twilio;

use std::{fmt, ops::Deref};

use axum::{
    extract::{FromRef, FromRequest, Request},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use serde::de::DeserializeOwned;

pub use self::{
    delivery::{Delivery, Refused},
    github::GitHub,
    secrets::{InvalidSecret, Secrets},
    standard::Standard,
    stripe::Stripe,
    tolerance::Tolerance,
    twilio::{Parameters, Twilio},
};
use super::payload::Unproven;
use crate::error::{Error, ErrorKind};

/// How one sender signs. A value of it holds the secrets of one endpoint; handlers find it in the router's state.
///
/// ```
/// # use idem_runtime::webhook::{Body, Delivery, Provider, Refused, Secrets, Verified};
/// #[derive(Clone)]
/// struct Acme(Secrets);
///
/// impl Provider for Acme {
///     type Event = Body;
///
///     fn verify(&self, delivery: &Delivery<'_>) -> Result<Verified<Self>, Refused> {
///         let signature = delivery.hex("x-acme-signature")?;
///         let id = delivery.header("x-acme-event")?;
///         self.0.verify_sha256(&[id.as_bytes(), b"\n", delivery.body()], &[signature])?;
///         Ok(Verified::new(id, Body::from(delivery.body().clone())))
///     }
/// }
/// ```
pub trait Provider: Clone + Send + Sync + 'static {
    /// What a handler gets: made of what is signed, and of nothing else.
    type Event: Send;

    /// Checks the signature, and says which event it is.
    ///
    /// The id becomes the key, so it must be made of signed material only: whoever can change it without breaking the
    /// signature can have an event run twice, or not at all. Where the sender signs no id, it is a digest of all that is
    /// signed. Of two deliveries of one event the id must be the same.
    ///
    /// # Errors
    /// [`Refused`]: nothing of the delivery can be trusted.
    fn verify(&self, delivery: &Delivery<'_>) -> Result<Verified<Self>, Refused>;
}

/// An event whose signature was checked, on the bytes as they were received. An extractor; it takes the body, so it is the
/// last parameter of a handler. It finds its provider, with the secrets, in the router's state.
///
/// Dereferences to the event.
///
/// # Rejections
/// As problems: 401 `idempotency-signature-invalid` for a signature that is wrong, missing or out of date; 400
/// `idempotency-event-invalid` for an event that has no id or cannot be read. Neither reaches the store, whatever key is
/// written in the request. A body that is too large or breaks off is refused as any other.
#[non_exhaustive]
pub struct Verified<P: Provider> {
    /// Which event it is: made of signed material, the same for each delivery. For `key = event.id`.
    pub id: String,
    /// The sender's id of this delivery, if it names one. Not signed: for traces only, never to decide by.
    pub delivery: Option<String>,
    /// What the event says.
    pub content: P::Event,
}

impl<P: Provider> Verified<P> {
    /// An event as [`Provider::verify`] returns it.
    pub fn new(id: impl Into<String>, content: P::Event) -> Self {
        Self { id: id.into(), delivery: None, content }
    }

    /// With the sender's id of the delivery, for traces.
    #[must_use]
    pub fn delivered_as(self, delivery: Option<&str>) -> Self {
        Self { delivery: delivery.map(str::to_owned), ..self }
    }
}

impl<P: Provider> Deref for Verified<P> {
    type Target = P::Event;

    fn deref(&self) -> &P::Event {
        &self.content
    }
}

/// Without the key and what the event says.
impl<P: Provider> fmt::Debug for Verified<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified").finish_non_exhaustive()
    }
}

impl<S, P> FromRequest<S> for Verified<P>
where
    S: Send + Sync,
    P: Provider + FromRef<S>,
{
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let head = parts.clone();
        let body = Bytes::from_request(Request::from_parts(parts, body), state).await.map_err(unproven)?;
        let delivery = Delivery::new(&head, &body);
        P::from_ref(state).verify(&delivery).map_err(|refused| unproven(Error::from(refused)))
    }
}

fn unproven(why: impl IntoResponse) -> Response {
    let mut response = why.into_response();
    response.extensions_mut().insert(Unproven);
    response
}

/// A body that was signed, byte for byte.
#[derive(Clone)]
pub struct Body(Bytes);

impl Body {
    /// As it was received, and signed.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Read as JSON.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidEvent`]: it is no such JSON. As the answer of a handler that is 400
    /// `idempotency-event-invalid`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.0).map_err(|error| {
            let about_the_body = "the body is not the JSON that is expected";
            Error::new(ErrorKind::InvalidEvent).with(|about| {
                about.detail = Some(about_the_body);
                about.source = Some(error.into());
            })
        })
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

/// Without the bytes.
impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("len", &self.0.len()).finish_non_exhaustive()
    }
}
