//! GitHub: <https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries>.

use sha2::{Digest, Sha256};

use super::{Body, Delivery, InvalidSecret, Provider, Refused, Secrets, Verified};

/// GitHub: `X-Hub-Signature-256: sha256=…`, an HMAC-SHA256 of the body.
///
/// Nothing but the body is signed, so the event's id is its SHA-256. GitHub's own id, `X-GitHub-Delivery`, is
/// [`delivery`](Verified::delivery): whoever has seen one delivery could send it again under another. The name of the event
/// in `X-GitHub-Event` is not signed either.
///
/// A webhook with the content type `application/x-www-form-urlencoded` wraps its JSON; choose `application/json`.
#[derive(Debug, Clone)]
pub struct GitHub {
    secrets: Secrets,
}

impl GitHub {
    /// With the webhook's secrets.
    ///
    /// # Errors
    /// There is none, or one is empty.
    pub fn new<I: IntoIterator<Item: AsRef<str>>>(secrets: I) -> Result<Self, InvalidSecret> {
        let secrets = Secrets::new(secrets.into_iter().map(|secret| secret.as_ref().as_bytes().to_vec()))?;
        Ok(Self { secrets })
    }
}

impl Provider for GitHub {
    type Event = Body;

    fn verify(&self, delivery: &Delivery<'_>) -> Result<Verified<Self>, Refused> {
        let header = delivery.signature("x-hub-signature-256")?;
        let signature = header.strip_prefix("sha256=").and_then(|digits| hex::decode(digits).ok());
        let signature = signature.ok_or_else(|| Refused::unverified("the signature is no `sha256=` and digits"))?;
        self.secrets.verify_sha256(&[delivery.body()], &[signature])?;
        let id = hex::encode(Sha256::digest(delivery.body()));
        let event = Verified::<Self>::new(id, Body::from(delivery.body().clone()));
        Ok(event.delivered_as(delivery.unsigned("x-github-delivery")))
    }
}
