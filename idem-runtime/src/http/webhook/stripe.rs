//! Stripe: <https://docs.stripe.com/webhooks#verify-manually>.

use serde::Deserialize;

use super::{Body, Delivery, InvalidSecret, Provider, Refused, Secrets, Tolerance, Verified};

/// Stripe, and whoever signs as it does: `Stripe-Signature: t=1700000000,v1=…`, an HMAC-SHA256 of time stamp and body.
///
/// The event's id is the body's own member `id`, which is signed with it: the same for each delivery, to each endpoint.
#[derive(Debug, Clone)]
pub struct Stripe {
    secrets: Secrets,
    tolerance: Tolerance,
}

impl Stripe {
    /// With the endpoint's signing secrets as the dashboard shows them, `whsec_` included.
    ///
    /// # Errors
    /// There is none, or one is empty.
    pub fn new<I: IntoIterator<Item: AsRef<str>>>(secrets: I) -> Result<Self, InvalidSecret> {
        let secrets = Secrets::new(secrets.into_iter().map(|secret| secret.as_ref().as_bytes().to_vec()))?;
        Ok(Self { secrets, tolerance: Tolerance::default() })
    }

    /// With another tolerance than 300 s, or another clock.
    #[must_use]
    pub fn with_tolerance(self, tolerance: Tolerance) -> Self {
        Self { tolerance, ..self }
    }
}

/// All that is read of an event here.
#[derive(Deserialize)]
struct Identified {
    id: String,
}

impl Provider for Stripe {
    type Event = Body;

    fn verify(&self, delivery: &Delivery<'_>) -> Result<Verified<Self>, Refused> {
        let header = delivery.signature("stripe-signature")?;
        let items = || header.split(',').filter_map(|item| item.split_once('='));
        let sent = items().find_map(|(name, value)| (name.trim() == "t").then_some(value.trim()));
        let sent = sent.ok_or_else(|| Refused::unverified("the signature has no time stamp"))?;
        let signatures: Vec<_> = items()
            .filter(|(name, _)| name.trim() == "v1")
            .filter_map(|(_, hex)| hex::decode(hex.trim()).ok())
            .collect();
        self.secrets.verify_sha256(&[sent.as_bytes(), b".", delivery.body()], &signatures)?;
        self.tolerance.check(sent)?;
        let event: Identified = serde_json::from_slice(delivery.body())
            .map_err(|error| Refused::malformed("the body is no JSON object with an `id`").because(error))?;
        if event.id.is_empty() {
            return Err(Refused::malformed("the event's `id` is empty"));
        }
        Ok(Verified::new(event.id, Body::from(delivery.body().clone())))
    }
}
