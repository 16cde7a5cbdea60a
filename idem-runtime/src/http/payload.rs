//! What comes in: [`Payload`] takes the place of a handler's last argument.

use std::{error::Error as StdError, marker::PhantomData};

use axum::{
    body::Body,
    extract::{FromRef, FromRequest, FromRequestParts, RawPathParams, Request},
    response::Response,
};
use bytes::Bytes;
use http::{Method, header, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use crate::{
    Runtime,
    error::{Error, ErrorKind},
    fingerprint::{Content, Fingerprint, Material, Part, fingerprint},
    operation::PayloadRule,
};

/// Extracts the user's own `E` and keeps what an operation's identity is made of.
pub struct Payload<E> {
    incoming: Incoming,
    extracted: Result<E, Response>,
}

/// A request without its typed part.
pub struct Incoming {
    pub(super) runtime: Runtime,
    pub(super) parts: Parts,
    pub(super) path: Vec<String>,
    pub(super) content: Received,
}

/// What came as a body.
pub(super) enum Received {
    Bytes(Bytes),
    /// A method that needs no key: handed on unread.
    Unread,
    /// Too large, cut off or too slow.
    Failed,
}

impl<E> Payload<E> {
    /// The request, and what the user's extractor made of it.
    pub fn open(self) -> (Incoming, Result<E, Response>) {
        (self.incoming, self.extracted)
    }
}

impl<E> std::fmt::Debug for Payload<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Payload").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incoming").finish_non_exhaustive()
    }
}

/// In the extensions of a rejection: the request is not known to come from whom it says, so nothing may be shown to it that a
/// key it names stands for.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "webhook"), allow(dead_code, reason = "nothing else checks who sends"))]
pub(super) struct Unproven;

/// Extraction by way of `E`'s own marker, which is inferred where the handler is mounted. A type of its own, since
/// axum's markers belong to its blanket implementation.
#[derive(Debug)]
pub struct Via<M>(PhantomData<M>);

impl<S, E, M> FromRequest<S, Via<M>> for Payload<E>
where
    S: Send + Sync,
    Runtime: FromRef<S>,
    E: FromRequest<S, M>,
{
    type Rejection = std::convert::Infallible;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let runtime = Runtime::from_ref(state);
        let (mut parts, body) = request.into_parts();
        let path = path_values(&mut parts, state).await;
        let head = parts.clone();
        let (content, extracted) = if needs_no_key(&parts.method) {
            (Received::Unread, extract(parts, body, state).await)
        } else {
            match read(body, &parts, &runtime).await {
                Ok(bytes) => (Received::Bytes(bytes.clone()), extract(parts, Body::from(bytes), state).await),
                Err(error) => (Received::Failed, Err(runtime.problem(&error))),
            }
        };
        let incoming = Incoming { runtime, parts: head, path, content };
        Ok(Self { incoming, extracted })
    }
}

/// Safe by definition (RFC 9110, section 9.2.1): nothing to protect.
fn needs_no_key(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE)
}

async fn extract<S: Send + Sync, E: FromRequest<S, M>, M>(parts: Parts, body: Body, state: &S) -> Result<E, Response> {
    use axum::response::IntoResponse;
    E::from_request(Request::from_parts(parts, body), state).await.map_err(IntoResponse::into_response)
}

/// Values only: a route may be renamed or nested without turning due replays into mismatches.
async fn path_values<S: Send + Sync>(parts: &mut Parts, state: &S) -> Vec<String> {
    match RawPathParams::from_request_parts(parts, state).await {
        Ok(params) => params.iter().map(|(_, value)| value.to_owned()).collect(),
        Err(_) => Vec::new(), // a route without parameters, or with one that is no UTF-8 and so extracts to nothing
    }
}

async fn read(body: Body, parts: &Parts, runtime: &Runtime) -> Result<Bytes, Error> {
    let http = &runtime.config().http;
    let announced =
        parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > http.max_request as u64) {
        return Err(Error::new(ErrorKind::TooLarge));
    }
    let unreadable = |source: Box<dyn StdError + Send + Sync>| {
        Error::new(ErrorKind::Unreadable).with(|about| about.source = Some(source))
    };
    match timeout(http.read_timeout, Limited::new(body, http.max_request).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if is_length_limit(&*error) => Err(Error::new(ErrorKind::TooLarge)),
        Ok(Err(error)) => Err(unreadable(error)),
        Err(elapsed) => Err(unreadable(elapsed.into())),
    }
}

/// Ours, or one of a layer outside.
fn is_length_limit(error: &(dyn StdError + 'static)) -> bool {
    let mut source = Some(error);
    while let Some(error) = source {
        if error.is::<LengthLimitError>() {
            return true;
        }
        source = error.source();
    }
    false
}

impl Incoming {
    pub(super) async fn fingerprint(&self, rule: PayloadRule, body: &Bytes) -> Fingerprint {
        let media_type = self.parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = media_type.unwrap_or_default();
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let query = self.parts.uri.query().unwrap_or_default();
        let parts = match multer::parse_boundary(media_type) {
            Ok(boundary) if rule != PayloadRule::None => Box::pin(split(boundary, body)).await, // rare: no room in every request
            Ok(_) | Err(_) => None,
        };
        let content = parts.as_deref().map_or(Content::Bytes(body), Content::Parts);
        fingerprint(rule, &Material { path: &path, query, media_type, body: content })
    }
}

/// The parts of a multipart body: its boundary differs from retry to retry. `None` for one that does not parse.
async fn split(boundary: String, body: &Bytes) -> Option<Vec<Part>> {
    let chunk = Ok::<_, std::convert::Infallible>(body.clone());
    let mut multipart = multer::Multipart::new(futures_util::stream::iter([chunk]), boundary);
    let mut parts = Vec::new();
    while let Some(field) = multipart.next_field().await.ok()? {
        let name = field.name().map(str::to_owned);
        let filename = field.file_name().map(str::to_owned);
        let content_type = field.content_type().map(ToString::to_string);
        let digest = Sha256::digest(field.bytes().await.ok()?).into();
        parts.push(Part { name, filename, content_type, digest });
    }
    Some(parts)
}
