//! Finished records, kept in this process: a replay from here touches no store.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    call::Call,
    fingerprint::Fingerprint,
    key::RecordId,
    store::{Found, Replay, StoredResponse},
};

/// What an entry costs beyond its answer: identity, fingerprint, times, and the map's own share.
const OVERHEAD: usize = 256;

/// Bounded in bytes. Holds only answers that cannot change any more, each until its replay window ends, measured by
/// the monotonic clock from what the store said was left.
pub(crate) struct Cache {
    entries: Option<moka::sync::Cache<RecordId, Arc<Entry>>>,
}

struct Entry {
    fingerprint: Fingerprint,
    response: StoredResponse,
    due_until: Instant,
}

impl Cache {
    /// Of at most `bytes` bytes; 0 turns it off.
    pub(crate) fn new(bytes: u64) -> Self {
        let entries = (bytes > 0).then(|| {
            let weigh = |_: &RecordId, entry: &Arc<Entry>| {
                let body = entry.response.body.as_ref().map_or(0, bytes::Bytes::len);
                u32::try_from(OVERHEAD + entry.response.headers.len() + body).unwrap_or(u32::MAX)
            };
            moka::sync::Cache::builder().max_capacity(bytes).weigher(weigh).build()
        });
        Self { entries }
    }

    /// What the call would find in the store, if this process knows. The payload is compared here as it is there.
    pub(crate) fn look(&self, call: &Call) -> Option<Found> {
        let entries = self.entries.as_ref()?;
        let entry = entries.get(&call.record)?;
        let ttl_left = entry.due_until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        let Some(ttl_left) = ttl_left else {
            entries.invalidate(&call.record);
            return None;
        };
        if !entry.fingerprint.matches(&call.fingerprint) {
            return Some(Found::Mismatch);
        }
        let (response, fingerprint) = (entry.response.clone(), entry.fingerprint);
        Some(Found::Replay(Replay { response, fingerprint, ttl_left, is_final: true }))
    }

    pub(crate) fn keep(&self, record: RecordId, replay: &Replay) {
        let Some(entries) = &self.entries else { return };
        if !replay.is_final || replay.ttl_left < Duration::from_millis(1) || entries.contains_key(&record) {
            return;
        }
        let due_until = Instant::now() + replay.ttl_left;
        let (fingerprint, response) = (replay.fingerprint, replay.response.clone());
        entries.insert(record, Arc::new(Entry { fingerprint, response, due_until }));
    }
}
