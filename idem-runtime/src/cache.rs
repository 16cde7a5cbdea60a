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
        // A copy: what a handler hands over may be a small part of a large buffer, which would be kept, but not weighed.
        let copy = |bytes: &bytes::Bytes| bytes::Bytes::copy_from_slice(bytes);
        let StoredResponse { status, headers, body } = &replay.response;
        let response = StoredResponse { status: *status, headers: copy(headers), body: body.as_ref().map(copy) };
        let fingerprint = replay.fingerprint;
        entries.insert(record, Arc::new(Entry { fingerprint, response, due_until }));
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::time::advance;

    use super::*;
    use crate::{
        observe::Observer,
        operation::{Kind, Operation, Place},
    };

    const SECOND: Duration = Duration::from_secs(1);
    static OPERATION: Operation =
        Operation::new("op", Kind::Handler, Place { file: "", line: 0, column: 0, function: "" });

    fn fingerprint(payload: u8) -> Fingerprint {
        Fingerprint::from_parts(Fingerprint::ALGORITHM, [payload; 32])
    }

    fn call(record: u8, payload: u8) -> Call {
        let (record, fingerprint) = (RecordId::from([record; 16]), fingerprint(payload));
        let watch = Observer::new(None).watch("op", None);
        let (scope, patience, accepts) = ("".into(), Duration::ZERO, false);
        Call { input: None, order: None, operation: &OPERATION, record, scope, fingerprint, patience, accepts, watch }
    }

    fn answer(body: &'static str, ttl_left: Duration) -> Replay {
        let body = Some(Bytes::from_static(body.as_bytes()));
        let response = StoredResponse { status: Some(201), headers: Bytes::new(), body };
        Replay { response, fingerprint: fingerprint(1), ttl_left, is_final: true }
    }

    fn keep(cache: &Cache, record: u8, replay: &Replay) {
        cache.keep(RecordId::from([record; 16]), replay);
    }

    fn body_of(found: Option<Found>) -> Option<Bytes> {
        match found {
            None => None,
            Some(Found::Replay(replay)) => replay.response.body,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn clause_12_an_entry_lives_as_long_as_the_store_said() {
        let cache = Cache::new(1 << 20);
        keep(&cache, 1, &answer("first", 10 * SECOND));
        advance(9 * SECOND).await;
        let Some(Found::Replay(replay)) = cache.look(&call(1, 1)) else { panic!("gone too early") };
        assert_eq!(replay.ttl_left, SECOND, "what is read here is not good for longer than before");
        keep(&cache, 1, &answer("first", 10 * SECOND)); // a slow reader, whose answer is older than it says
        advance(SECOND).await;
        assert!(cache.look(&call(1, 1)).is_none());
        keep(&cache, 1, &answer("afresh", 10 * SECOND));
        assert_eq!(body_of(cache.look(&call(1, 1))), Some("afresh".into()));
    }

    /// However long the caller then takes, memory is no reason to refuse it.
    #[tokio::test(start_paused = true)]
    async fn clause_12_an_expired_entry_has_no_say_in_a_mismatch() {
        let cache = Cache::new(1 << 20);
        keep(&cache, 1, &answer("first", SECOND));
        assert!(matches!(cache.look(&call(1, 2)), Some(Found::Mismatch)));
        advance(SECOND).await;
        assert!(cache.look(&call(1, 2)).is_none());
    }

    #[tokio::test]
    async fn case_54_only_what_cannot_change_is_kept() {
        let cache = Cache::new(1 << 20);
        keep(&cache, 1, &Replay { is_final: false, ..answer("declined", SECOND) });
        keep(&cache, 2, &answer("over", Duration::ZERO));
        assert!(cache.look(&call(1, 1)).is_none() && cache.look(&call(2, 1)).is_none());
    }

    #[tokio::test]
    async fn a_cache_of_no_bytes_is_off() {
        let cache = Cache::new(0);
        keep(&cache, 1, &answer("first", SECOND));
        assert!(cache.look(&call(1, 1)).is_none());
    }

    #[tokio::test]
    async fn the_bound_is_in_bytes_of_whole_records() {
        let cache = Cache::new(4 * (OVERHEAD as u64 + 1000));
        let text: &'static str = "x".repeat(1000).leak();
        for record in 0..40 {
            keep(&cache, record, &answer(text, 10 * SECOND));
        }
        let entries = cache.entries.as_ref().unwrap();
        entries.run_pending_tasks();
        assert!((1..=4).contains(&entries.entry_count()), "{}", entries.entry_count());
    }
}
