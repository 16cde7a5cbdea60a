//! The secrets of one endpoint, and the comparison.

use std::{fmt, sync::Arc};

use hmac::{EagerHash, Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;

use super::Refused;

/// The secrets of one endpoint: one, or while they are exchanged several, each of which is good.
#[derive(Clone)]
pub struct Secrets(Arc<[Vec<u8>]>);

/// A secret by which anybody could sign: none at all, or an empty one, or one that is not in its sender's form.
#[derive(Debug, thiserror::Error)]
#[error("a webhook's secret {what}")]
#[non_exhaustive]
pub struct InvalidSecret {
    what: &'static str,
    source: Option<base64::DecodeError>,
}

impl InvalidSecret {
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, source: None }
    }

    pub(super) fn because(self, source: base64::DecodeError) -> Self {
        Self { source: Some(source), ..self }
    }
}

impl Secrets {
    /// Takes each secret as the bytes that it is.
    ///
    /// # Errors
    /// There is none, or one is empty: an unset variable of the environment must not let everybody in.
    pub fn new<I>(secrets: I) -> Result<Self, InvalidSecret>
    where
        I: IntoIterator<Item: AsRef<[u8]>>,
    {
        let secrets: Arc<[Vec<u8>]> = secrets.into_iter().map(|secret| secret.as_ref().to_vec()).collect();
        if secrets.is_empty() {
            return Err(InvalidSecret::new("is missing"));
        }
        if secrets.iter().any(Vec::is_empty) {
            return Err(InvalidSecret::new("is empty"));
        }
        Ok(Self(secrets))
    }

    /// Whether one of `signatures` is the HMAC-SHA256 of `signed`, all of it in one, by one of the secrets. Compares in
    /// constant time.
    ///
    /// # Errors
    /// 401: none is.
    pub fn verify_sha256(&self, signed: &[&[u8]], signatures: &[impl AsRef<[u8]>]) -> Result<(), Refused> {
        self.verify::<Sha256>(signed, signatures)
    }

    /// As [`verify_sha256`](Self::verify_sha256), with HMAC-SHA1.
    ///
    /// # Errors
    /// 401: none is.
    pub fn verify_sha1(&self, signed: &[&[u8]], signatures: &[impl AsRef<[u8]>]) -> Result<(), Refused> {
        self.verify::<Sha1>(signed, signatures)
    }

    fn verify<D: EagerHash>(&self, signed: &[&[u8]], signatures: &[impl AsRef<[u8]>]) -> Result<(), Refused>
    where
        Hmac<D>: KeyInit + Mac + Clone,
    {
        for secret in self.0.iter() {
            let Ok(mut mac) = <Hmac<D> as KeyInit>::new_from_slice(secret) else { continue }; // takes keys of any length
            for part in signed {
                mac.update(part);
            }
            if signatures.iter().any(|signature| mac.clone().verify_slice(signature.as_ref()).is_ok()) {
                return Ok(());
            }
        }
        Err(Refused::unverified("no signature is that of this body"))
    }
}

/// How many, and nothing of them.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}
