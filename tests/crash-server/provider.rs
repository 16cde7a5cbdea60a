//! The provider, as the bodies see it.

use std::time::Duration;

use serde_json::{Value, json};

/// One that is asked outside of the database, in the harness' own process: it survives every fault.
#[derive(Clone)]
pub(crate) struct Provider {
    base: String,
    client: reqwest::Client,
}

impl Provider {
    pub(crate) fn new(base: String) -> Self {
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build().unwrap();
        Self { base, client }
    }

    /// Says that a body has begun; it is the key's `n`th.
    pub(crate) async fn begins(&self, mode: &str, key: &str) -> Result<u32, reqwest::Error> {
        self.tell("runs", &json!({ "mode": mode, "key": key })).await?.json().await
    }

    /// Has the effect, and returns its nonce: another run's, where the provider dedupes.
    pub(crate) async fn effect(
        &self,
        mode: &str,
        key: &str,
        (step, by): (&str, &str),
        answer: &Value,
    ) -> Result<Value, reqwest::Error> {
        let effect = json!({ "mode": mode, "key": key, "provider_key": by, "step": step, "answer": answer });
        self.tell("effects", &effect).await?.json().await
    }

    /// What has been done by this provider key, if anything.
    pub(crate) async fn find(&self, by: &str) -> Result<Option<Value>, reqwest::Error> {
        self.client.get(format!("{}/effects/{by}", self.base)).send().await?.error_for_status()?.json().await
    }

    async fn tell(&self, what: &str, text: &Value) -> Result<reqwest::Response, reqwest::Error> {
        self.client.post(format!("{}/{what}", self.base)).json(text).send().await?.error_for_status()
    }
}
