//! What senders do: sign, and deliver.

use std::time::{Duration, SystemTime};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, KeyInit, Mac};
use idem_runtime::webhook::Tolerance;
use reqwest::RequestBuilder;
use serde_json::Value;
use sha2::Sha256;

use crate::support::Shop;

pub(super) const STRIPE: &str = "whsec_of_stripe";
pub(super) const STANDARD: &str = "whsec_b2Ygc3RhbmRhcmQ=";
/// When all is sent, in Unix seconds.
pub(super) const SENT: u64 = 1_700_000_000;

pub(super) fn at_sent() -> Tolerance {
    Tolerance::default().with_clock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(SENT))
}

pub(super) fn hmac_sha256(secret: &[u8], signed: &str) -> Vec<u8> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret).unwrap();
    mac.update(signed.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// `Stripe-Signature`.
pub(super) fn of_stripe(secret: &str, sent: u64, body: &str) -> String {
    format!("t={sent},v1={}", hex::encode(hmac_sha256(secret.as_bytes(), &format!("{sent}.{body}"))))
}

/// `webhook-signature`.
pub(super) fn of_standard(secret: &str, id: &str, sent: u64, body: &str) -> String {
    let secret = BASE64.decode(secret.trim_start_matches("whsec_")).unwrap();
    format!("v1,{}", BASE64.encode(hmac_sha256(&secret, &format!("{id}.{sent}.{body}"))))
}

impl Shop {
    pub(super) fn stripe(&self, path: &str, event: &Value) -> RequestBuilder {
        self.stripe_text(path, &event.to_string())
    }

    pub(super) fn stripe_text(&self, path: &str, body: &str) -> RequestBuilder {
        let signature = of_stripe(STRIPE, SENT, body);
        self.client.post(self.url(path)).header("stripe-signature", signature).body(body.to_owned())
    }

    pub(super) fn standard(&self, path: &str, id: &str, body: &str) -> RequestBuilder {
        self.standard_signed(path, id, body, &of_standard(STANDARD, id, SENT, body))
    }

    pub(super) fn standard_signed(&self, path: &str, id: &str, body: &str, signature: &str) -> RequestBuilder {
        let request = self.client.post(self.url(path)).header("webhook-id", id).body(body.to_owned());
        request.header("webhook-timestamp", SENT).header("webhook-signature", signature)
    }
}
