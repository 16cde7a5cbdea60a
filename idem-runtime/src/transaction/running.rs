//! What runs in a transaction in this process.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Runtime, call::Call, fingerprint::Fingerprint, key::RecordId, store::Found};

/// The records whose transactions run in this process: nobody else sees their rows, so duplicates are answered from here.
#[derive(Default)]
pub(crate) struct Transactions(Mutex<HashMap<RecordId, Entry>>);

struct Entry {
    began: Instant,
    fingerprint: Fingerprint,
    given_up: CancellationToken,
    /// It has its claim. Until then nothing is bound, neither to it nor to its payload.
    granted: bool,
    /// Its COMMIT is on its way, if it has not arrived: nobody can say any more that it is undone.
    commits: bool,
}

impl Transactions {
    fn entries(&self) -> MutexGuard<'_, HashMap<RecordId, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a call for this record finds in this process, where the store knows of nothing.
    pub(crate) fn look(&self, call: &Call) -> Option<Found> {
        self.entries().get(&call.record).map(|entry| entry.found(call))
    }

    /// It is about to be committed; `false` if it was given up before.
    pub(super) fn commits(&self, record: RecordId) -> bool {
        self.entries().get_mut(&record).is_some_and(|entry| {
            entry.commits = !entry.given_up.is_cancelled();
            entry.commits
        })
    }

    /// Shutdown's time is up: bodies are cut off, and what they wrote is undone. How many they are; not those whose COMMIT
    /// is under way.
    pub(crate) fn give_up(&self) -> usize {
        let entries = self.entries();
        let undone = entries.values().filter(|entry| !entry.commits);
        undone.inspect(|entry| entry.given_up.cancel()).count()
    }
}

impl Entry {
    fn found(&self, call: &Call) -> Found {
        if !self.granted || self.fingerprint.matches(&call.fingerprint) {
            Found::InFlight { age: self.began.elapsed() }
        } else {
            Found::Mismatch
        }
    }
}

/// An entry of [`Transactions`]. Dropped, it is taken out, and who waits for it looks again.
pub(super) struct Listed {
    runtime: Runtime,
    record: RecordId,
    wakes: bool,
}

impl Listed {
    pub(super) fn new(runtime: &Runtime, call: &Call, given_up: &CancellationToken) -> Result<Self, Box<Found>> {
        let mut entries = runtime.transactions().entries();
        if let Some(entry) = entries.get(&call.record) {
            return Err(Box::new(entry.found(call)));
        }
        let entry = Entry {
            began: Instant::now(),
            fingerprint: call.fingerprint,
            given_up: given_up.clone(),
            granted: false,
            commits: false,
        };
        entries.insert(call.record, entry);
        Ok(Self { runtime: runtime.clone(), record: call.record, wakes: true })
    }

    /// Nothing has come of it. Who waits would do the same again, one after the other and without a pause.
    pub(super) fn leave(mut self) {
        self.wakes = false;
    }

    /// Its claim was granted.
    pub(super) fn granted(&self) {
        if let Some(entry) = self.runtime.transactions().entries().get_mut(&self.record) {
            entry.granted = true;
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.runtime.transactions().entries().remove(&self.record);
        if self.wakes {
            self.runtime.waiters().wake(self.record);
        }
    }
}
