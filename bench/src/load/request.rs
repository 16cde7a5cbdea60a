//! Requests, written once: only the key changes, in place.

use std::time::Duration;

/// Stand for a key and a tenant.
const KEY: &str = "kkkkkkkk-kkkk-kkkk-kkkk-kkkkkkkkkkkk";
const TENANT: &str = "tttt";

/// So many tenants have keys.
const TENANTS: u64 = 1_000;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    tenant: usize,
    keys: [usize; 2],
}

impl Request {
    /// To the server under test, one whose body takes so long.
    pub(crate) fn new(pause: Duration) -> Self {
        Self::to("/", pause)
    }

    pub(crate) fn to(path: &str, pause: Duration) -> Self {
        let body =
            format!(r#"{{"reference":"{KEY}","amount":129900,"currency":"EUR","pause_ms":{}}}"#, pause.as_millis());
        let text = format!(
            "POST {path} HTTP/1.1\r\nhost: bench\r\nx-tenant: {TENANT}\r\nidempotency-key: \"{KEY}\"\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len(),
        );
        let at = |what| text.find(what).unwrap_or_default();
        let (tenant, keys) = (at(TENANT), [at(KEY), text.rfind(KEY).unwrap_or_default()]);
        Self { bytes: text.into_bytes(), tenant, keys }
    }

    /// The request with this key; equal numbers give equal requests.
    pub(crate) fn with_key(&mut self, nr: u64) -> &[u8] {
        let (key, tenant) = (key(nr), tenant(nr));
        for at in self.keys {
            self.bytes[at..at + key.len()].copy_from_slice(&key);
        }
        self.bytes[self.tenant..self.tenant + tenant.len()].copy_from_slice(&tenant);
        &self.bytes
    }
}

/// A key of 36 characters, as scattered as a random UUID.
pub(crate) fn key(nr: u64) -> [u8; 36] {
    let mut key = *b"00000000-0000-0000-0000-000000000000";
    let (mut high, mut low) = (scatter(nr), scatter(nr ^ (1 << 63)));
    let places = key.iter_mut().filter(|place| **place != b'-').enumerate();
    for (nr, place) in places {
        let half = if nr < 16 { &mut high } else { &mut low };
        *place = b"0123456789abcdef"[usize::try_from(*half & 15).unwrap_or_default()];
        *half >>= 4;
    }
    key
}

fn tenant(nr: u64) -> [u8; 4] {
    let mut tenant = *b"t000";
    let mut rest = scatter(nr) % TENANTS;
    for place in tenant[1..].iter_mut().rev() {
        *place = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
    }
    tenant
}

/// SplitMix64: one to one, and nothing like its input.
fn scatter(nr: u64) -> u64 {
    let z = nr.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_request_has_its_key_in_its_head_and_in_its_body() {
        let mut request = Request::new(Duration::from_millis(20));
        let text = String::from_utf8(request.with_key(7).to_vec()).unwrap();
        assert_eq!(text.matches(str::from_utf8(&key(7)).unwrap()).count(), 2);
        assert!(!text.contains('k') || !text.contains(KEY));
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())));
        assert_ne!(request.with_key(8), text.as_bytes());
        assert_eq!(request.with_key(7), text.as_bytes());
    }

    #[test]
    fn keys_are_scattered_and_each_its_own() {
        let keys: BTreeSet<_> = (0..1_000).map(key).collect();
        assert_eq!(keys.len(), 1_000);
        let first_digits: BTreeSet<u8> = keys.iter().map(|key| key[0]).collect();
        assert_eq!(first_digits.len(), 16);
    }
}
