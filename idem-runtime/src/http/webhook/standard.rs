//! Standard Webhooks: <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{Body, Delivery, InvalidSecret, Provider, Refused, Secrets, Tolerance, Verified};

/// Whoever follows Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature: v1,…`, an HMAC-SHA256 of id,
/// time stamp and body.
///
/// The event's id is `webhook-id`, which is signed: the same for each delivery.
#[derive(Debug, Clone)]
pub struct Standard {
    secrets: Secrets,
    tolerance: Tolerance,
}

impl Standard {
    /// With the endpoint's secrets: base64, with `whsec_` before it or without.
    ///
    /// # Errors
    /// There is none, or one is empty or no base64.
    pub fn new<I: IntoIterator<Item: AsRef<str>>>(secrets: I) -> Result<Self, InvalidSecret> {
        let decode = |secret: &str| {
            let base64 = secret.strip_prefix("whsec_").unwrap_or(secret);
            STANDARD.decode(base64).map_err(|error| InvalidSecret::new("is no base64").because(error))
        };
        let secrets: Result<Vec<_>, _> = secrets.into_iter().map(|secret| decode(secret.as_ref())).collect();
        Ok(Self { secrets: Secrets::new(secrets?)?, tolerance: Tolerance::default() })
    }

    /// With another tolerance than 300 s, or another clock.
    #[must_use]
    pub fn with_tolerance(self, tolerance: Tolerance) -> Self {
        Self { tolerance, ..self }
    }
}

impl Provider for Standard {
    type Event = Body;

    fn verify(&self, delivery: &Delivery<'_>) -> Result<Verified<Self>, Refused> {
        let header = delivery.signature("webhook-signature")?;
        let (id, sent) = (delivery.header("webhook-id")?, delivery.header("webhook-timestamp")?);
        let versioned = header.split(' ').filter_map(|signature| signature.split_once(','));
        let signatures: Vec<_> = versioned
            .filter(|(version, _)| *version == "v1")
            .filter_map(|(_, base64)| STANDARD.decode(base64).ok())
            .collect();
        let signed: [&[u8]; 5] = [id.as_bytes(), b".", sent.as_bytes(), b".", delivery.body()];
        self.secrets.verify_sha256(&signed, &signatures)?;
        self.tolerance.check(sent)?;
        // A dot parts what is signed: with one inside of the id, two ids could be read out of one signature.
        if id.contains('.') {
            return Err(Refused::malformed("the `webhook-id` has a dot"));
        }
        Ok(Verified::new(id, Body::from(delivery.body().clone())))
    }
}
