//! How long this process has known of a doubt, by its own clock: that of the store may have jumped, and then every owner
//! looks silent for long enough.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    key::RecordId,
    store::{Fence, Recovering},
};

/// Of one operation: some megabytes. What does not fit waits until something else is settled.
const MOST: usize = 10_000;
/// Where there is no room, what has not been seen for so long, or for three pauses between tries, goes: others have settled
/// it. Long enough to go round all that there is room for; a doubt that is put off for longer begins anew.
const UNSEEN: Duration = Duration::from_secs(6 * 3600);

#[derive(Debug)]
pub(super) struct Known {
    doubts: Mutex<HashMap<RecordId, Doubt>>,
    unseen: Duration,
}

#[derive(Debug)]
struct Doubt {
    op: String,
    /// Epoch and attempts: another run of the key is another doubt.
    run: (Fence, u32),
    /// They grow with each look at one run, also by other processes.
    tries: u32,
    since: Instant,
    seen: Instant,
}

impl Known {
    /// `pause`: the longest between two tries, unless a hook wishes for more.
    pub(super) fn new(pause: Duration) -> Self {
        Self { doubts: Mutex::default(), unseen: UNSEEN.max(pause * 3) }
    }

    /// Notes a doubt that the store has just given out, and says how long it has been known: until `asked`, the instant
    /// before the store was asked. Zero for one that is new here.
    pub(super) fn note(&self, Recovering { record, tries }: &Recovering, asked: Instant) -> Duration {
        let (now, run, mut doubts) = (Instant::now(), (record.epoch, record.attempts), self.doubts());
        if let Some(doubt) = doubts.get_mut(&record.id)
            && doubt.run == run
            && doubt.tries < *tries
        {
            (doubt.tries, doubt.seen) = (*tries, now);
            return asked.saturating_duration_since(doubt.since);
        }
        let is_full = |doubts: &HashMap<RecordId, Doubt>| {
            doubts.len() >= MOST && doubts.values().filter(|doubt| doubt.op == record.op).count() >= MOST
        };
        if is_full(&doubts) {
            doubts.retain(|_, doubt| doubt.op != record.op || now.saturating_duration_since(doubt.seen) < self.unseen);
        }
        if doubts.contains_key(&record.id) || !is_full(&doubts) {
            doubts.insert(record.id, Doubt { op: record.op.clone(), run, tries: *tries, since: now, seen: now });
        }
        Duration::ZERO
    }

    /// It is settled.
    pub(super) fn forget(&self, record: RecordId) {
        self.doubts().remove(&record);
    }

    /// Forgets those of operations of which nothing is in doubt.
    pub(super) fn keep_of(&self, in_doubt: impl Fn(&str) -> bool) {
        self.doubts().retain(|_, doubt| in_doubt(&doubt.op));
    }

    fn doubts(&self) -> MutexGuard<'_, HashMap<RecordId, Doubt>> {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::{
        state::State,
        store::{Attempt, Fence, Record},
    };

    const MINUTE: Duration = Duration::from_secs(60);

    fn taken(id: [u8; 16], attempts: u32, tries: u32) -> Recovering {
        let mut record = Record::new(id.into(), "charge", State::InDoubt, Fence(1), Attempt::random());
        record.attempts = attempts;
        Recovering { record, tries }
    }

    #[tokio::test(start_paused = true)]
    async fn scenario_61_a_doubt_is_known_since_this_process_saw_it_first() {
        let known = Known::new(MINUTE * 5);
        assert_eq!(known.note(&taken([1; 16], 1, 7), Instant::now()), Duration::ZERO, "whoever tried before");
        advance(MINUTE).await;
        let asked = Instant::now();
        advance(MINUTE).await;
        assert_eq!(known.note(&taken([1; 16], 1, 8), asked), MINUTE, "not the time that the store took");
        advance(MINUTE).await;
        assert_eq!(known.note(&taken([1; 16], 1, 12), Instant::now()), MINUTE * 3, "others tried meanwhile");
        assert_eq!(known.note(&taken([2; 16], 1, 1), Instant::now()), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn scenario_61_another_doubt_of_the_key_begins_anew() {
        let known = Known::new(MINUTE * 5);
        for (attempts, tries) in [(1, 3), (2, 4), (2, 1), (2, 1)] {
            assert_eq!(known.note(&taken([1; 16], attempts, tries), Instant::now()), Duration::ZERO);
            advance(MINUTE).await;
        }
        known.forget([1; 16].into());
        assert_eq!(known.note(&taken([1; 16], 2, 2), Instant::now()), Duration::ZERO);
        advance(MINUTE).await;
        known.keep_of(|op| op == "charge");
        assert_eq!(known.note(&taken([1; 16], 2, 3), Instant::now()), MINUTE);
        known.keep_of(|_| false);
        assert!(known.doubts().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_known_is_bounded_and_those_that_came_first_stay() {
        let known = Known::new(MINUTE * 5);
        let id = |n: usize| {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&n.to_be_bytes());
            id
        };
        for n in 0..MOST + 5 {
            known.note(&taken(id(n), 1, 1), Instant::now());
        }
        assert_eq!(known.doubts().len(), MOST);
        advance(MINUTE).await;
        assert_eq!(known.note(&taken(id(0), 1, 2), Instant::now()), MINUTE);
        assert_eq!(known.note(&taken(id(MOST), 1, 2), Instant::now()), Duration::ZERO);
        let mut refund = taken(id(MOST + 5), 1, 1);
        refund.record.op = "refund".to_owned();
        known.note(&refund, Instant::now());
        assert_eq!(known.doubts().len(), MOST + 1, "one operation takes no room from another");
        advance(UNSEEN - MINUTE).await;
        known.note(&taken(id(MOST), 1, 3), Instant::now());
        assert_eq!(known.doubts().len(), 3, "the others have long been settled by somebody else");
    }
}
