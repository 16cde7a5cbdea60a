//! Twilio: <https://www.twilio.com/docs/usage/security#validating-requests>.

use std::{collections::BTreeSet, fmt};

use http::Uri;
use sha2::{Digest, Sha256};

use super::{Body, Delivery, InvalidSecret, Provider, Refused, Secrets, Verified};

/// Twilio: `X-Twilio-Signature`, an HMAC-SHA1 of the URL and the form's parameters; of a JSON body, the URL has the digest.
///
/// The event's id is the SHA-256 of what is signed: URL, and names and values in order. Among them are `MessageSid`,
/// `CallSid` and the status, so another event is another id. Twilio's own `I-Twilio-Idempotency-Token` is not signed; it is
/// [`delivery`](Verified::delivery).
#[derive(Debug, Clone)]
pub struct Twilio {
    url: String,
    secrets: Secrets,
}

/// What a Twilio event says.
#[derive(Clone)]
#[non_exhaustive]
pub enum Parameters {
    /// Names and values of a form, sorted, each pair once: as they are signed.
    Form(Vec<(String, String)>),
    /// A body whose digest is signed.
    Body(Body),
}

impl Twilio {
    /// The public `url` of the endpoint as Twilio is told it, but without its query; the query is taken from each request.
    /// What this server sees behind a proxy is something else. The secrets are the account's auth tokens.
    ///
    /// # Errors
    /// There is no secret, or one is empty.
    pub fn new<I: IntoIterator<Item: AsRef<str>>>(url: impl Into<String>, secrets: I) -> Result<Self, InvalidSecret> {
        let secrets = Secrets::new(secrets.into_iter().map(|secret| secret.as_ref().as_bytes().to_vec()))?;
        Ok(Self { url: url.into(), secrets })
    }

    /// Twilio may sign the URL with its port or without: its own libraries try both.
    fn spellings(&self) -> Vec<String> {
        let mut all = vec![self.url.clone()];
        let uri: Option<Uri> = self.url.parse().ok();
        let other = uri.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.authority()?)));
        if let Some((scheme, authority)) = other {
            let authority = authority.as_str();
            let respelled = match uri.as_ref().and_then(Uri::port) {
                Some(port) => authority.trim_end_matches(port.as_str()).trim_end_matches(':').to_owned(),
                None => format!("{authority}:{}", if scheme == "http" { 80 } else { 443 }),
            };
            all.push(self.url.replacen(authority, &respelled, 1));
        }
        all
    }
}

impl Provider for Twilio {
    type Event = Parameters;

    fn verify(&self, delivery: &Delivery<'_>) -> Result<Verified<Self>, Refused> {
        let signature = delivery.base64("x-twilio-signature")?;
        let query = delivery.uri().query();
        let rest = query.map_or_else(String::new, |query| format!("?{query}"));
        let announced = query.and_then(|query| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find_map(|(name, value)| (name == "bodySHA256").then_some(value))
        });
        let (content, rest) = match announced {
            Some(digest) => (hashed(delivery, &digest)?, rest),
            None => {
                let pairs = pairs(delivery.body());
                let signed = pairs.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
                let rest = [rest.as_str()].into_iter().chain(signed).collect();
                (Parameters::Form(pairs), rest)
            }
        };
        let verified = self
            .spellings()
            .iter()
            .any(|url| self.secrets.verify_sha1(&[url.as_bytes(), rest.as_bytes()], &[&signature]).is_ok());
        if !verified {
            return Err(Refused::unverified("the signature is not that of this URL and these parameters"));
        }
        let id = Sha256::new().chain_update(&self.url).chain_update(&rest).finalize();
        let event = Verified::<Self>::new(hex::encode(id), content);
        Ok(event.delivered_as(delivery.unsigned("i-twilio-idempotency-token")))
    }
}

/// A body, whatever it is, whose digest is in the signed URL. Nothing else of it would be signed.
fn hashed(delivery: &Delivery<'_>, announced: &str) -> Result<Parameters, Refused> {
    let digest = hex::decode(announced).ok();
    if digest.as_deref() != Some(Sha256::digest(delivery.body()).as_slice()) {
        return Err(Refused::unverified("the body is not the one that `bodySHA256` names")); // both are known to the sender
    }
    Ok(Parameters::Body(Body::from(delivery.body().clone())))
}

fn pairs(form: &[u8]) -> Vec<(String, String)> {
    let pairs = form_urlencoded::parse(form).map(|(name, value)| (name.into_owned(), value.into_owned()));
    pairs.collect::<BTreeSet<_>>().into_iter().collect()
}

impl Parameters {
    /// The first value of a form's parameter. `None` also for a body that is no form.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        match self {
            Self::Form(pairs) => pairs.iter().find_map(|(known, value)| (known == name).then_some(value.as_str())),
            Self::Body(_) => None,
        }
    }
}

/// Without names and values.
impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form(_) => "Form(..)",
            Self::Body(_) => "Body(..)",
        })
    }
}
