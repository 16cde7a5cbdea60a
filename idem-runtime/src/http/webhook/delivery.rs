//! What a provider checks, and what it says of what it refuses.

use std::{error::Error as StdError, fmt};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, Uri, request::Parts};

use crate::error::{Error, ErrorKind};

/// One request of a sender, before anything of it is trusted.
pub struct Delivery<'a> {
    head: &'a Parts,
    body: &'a Bytes,
}

impl<'a> Delivery<'a> {
    pub(super) fn new(head: &'a Parts, body: &'a Bytes) -> Self {
        Self { head, body }
    }

    /// The body as it was received: what is signed, byte for byte.
    #[must_use]
    pub fn body(&self) -> &'a Bytes {
        self.body
    }

    /// All header lines.
    #[must_use]
    pub fn headers(&self) -> &'a HeaderMap {
        &self.head.headers
    }

    /// As this server sees it: behind a proxy, or where routers are nested, not the address that the sender wrote.
    #[must_use]
    pub fn uri(&self) -> &'a Uri {
        &self.head.uri
    }

    /// A header that carries a part of what is signed.
    ///
    /// # Errors
    /// 400: it is missing, repeated, empty, or has characters beyond visible ASCII.
    pub fn header(&self, name: &str) -> Result<&'a str, Refused> {
        self.line(name).ok_or_else(|| Refused::malformed("a header that is signed is missing or malformed"))
    }

    /// The header that carries the signature.
    ///
    /// # Errors
    /// 401: as for [`header`](Self::header).
    pub fn signature(&self, name: &str) -> Result<&'a str, Refused> {
        self.line(name).ok_or_else(|| Refused::unverified("the signature's header is missing or malformed"))
    }

    /// As [`signature`](Self::signature), in hexadecimal digits.
    ///
    /// # Errors
    /// 401: it is missing, or no such digits.
    pub fn hex(&self, name: &str) -> Result<Vec<u8>, Refused> {
        hex::decode(self.signature(name)?).map_err(|error| Refused::unverified(NO_SIGNATURE).because(error))
    }

    /// As [`signature`](Self::signature), in base64.
    ///
    /// # Errors
    /// 401: it is missing, or no base64.
    pub fn base64(&self, name: &str) -> Result<Vec<u8>, Refused> {
        STANDARD.decode(self.signature(name)?).map_err(|error| Refused::unverified(NO_SIGNATURE).because(error))
    }

    /// A header that is not signed: for traces only.
    #[must_use]
    pub fn unsigned(&self, name: &str) -> Option<&'a str> {
        self.line(name)
    }

    fn line(&self, name: &str) -> Option<&'a str> {
        let mut lines = self.head.headers.get_all(name).iter();
        let line = lines.next()?.to_str().ok()?;
        (lines.next().is_none() && !line.is_empty()).then_some(line)
    }
}

const NO_SIGNATURE: &str = "the signature's header does not hold one";

/// Without headers and body.
impl fmt::Debug for Delivery<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery").finish_non_exhaustive()
    }
}

/// Why a delivery is not taken.
#[derive(Debug)]
pub struct Refused(Error);

impl Refused {
    /// 401: the signature is missing, wrong or out of date. The sender reads `why`, so it says nothing of secrets.
    #[must_use]
    pub fn unverified(why: &'static str) -> Self {
        Self(Error::new(ErrorKind::Unverified).with(|about| about.detail = Some(why)))
    }

    /// 400: no event that anybody could act on. The sender reads `why`.
    #[must_use]
    pub fn malformed(why: &'static str) -> Self {
        Self(Error::new(ErrorKind::InvalidEvent).with(|about| about.detail = Some(why)))
    }

    /// With the error behind it, which the sender does not see.
    #[must_use]
    pub fn because(self, source: impl StdError + Send + Sync + 'static) -> Self {
        Self(self.0.with(|about| about.source = Some(Box::new(source))))
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Refused {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        refused.0
    }
}
