//! What one statement carries, and who is told what came of it.

use std::collections::{BTreeMap, VecDeque, btree_map::Entry};

use tokio::sync::oneshot;

use super::{unsure::Unsure, verb::Verb};
use crate::store::{Alike, StoreError, StoreErrorKind};

/// Answers and arguments of more than this are not put together: a message should not grow with the number of callers.
const BYTES: usize = 1024 * 1024;

/// So many that cannot be in this slice are looked past for each of its rows.
const LOOK_PAST: usize = 4;

/// The store panicked, as whoever asks would have seen by itself.
#[derive(Debug)]
pub(super) struct Panicked;

pub(super) type Told<T> = Result<Result<T, StoreError>, Panicked>;

/// A caller, and what it asks.
pub(super) struct Waiting<V: Verb> {
    pub(super) item: V::Item,
    pub(super) told: oneshot::Sender<Told<V::Answer>>,
}

impl<V: Verb> Waiting<V> {
    /// Nobody waits for it any more.
    pub(super) fn is_gone(&self) -> bool {
        self.told.is_closed()
    }

    /// (Who has gone meanwhile is told nothing.)
    fn tell(self, told: Told<V::Answer>) {
        let _ = self.told.send(told);
    }
}

/// A row of a slice: whoever asked first, and those who are told by its answer.
pub(super) struct Seat<V: Verb> {
    first: oneshot::Sender<Told<V::Answer>>,
    others: Vec<Waiting<V>>,
}

impl<V: Verb> Seat<V> {
    pub(super) fn is_gone(&self) -> bool {
        self.first.is_closed() && self.others.iter().all(Waiting::is_gone)
    }

    pub(super) fn answer(self, item: &V::Item, answer: V::Answer) {
        for other in self.others {
            let echo = V::echo(item, &answer, &other.item).ok_or_else(unanswered);
            other.tell(Ok(echo));
        }
        let _ = self.first.send(Ok(Ok(answer)));
    }

    pub(super) fn fail(self, error: StoreError) {
        if self.others.is_empty() {
            let _ = self.first.send(Ok(Err(error)));
        } else {
            self.fail_alike(&Alike::new(error));
        }
    }

    pub(super) fn fail_alike(self, alike: &Alike) {
        self.others.into_iter().for_each(|other| other.tell(Ok(Err(alike.error()))));
        let _ = self.first.send(Ok(Err(alike.error())));
    }

    pub(super) fn panicked(self) {
        self.others.into_iter().for_each(|other| other.tell(Err(Panicked)));
        let _ = self.first.send(Err(Panicked));
    }
}

/// Rows in the order of their records, each with its seat.
pub(super) struct Slice<V: Verb> {
    pub(super) items: Vec<V::Item>,
    pub(super) seats: Vec<Seat<V>>,
}

impl<V: Verb> Slice<V> {
    /// Takes from the front of the queue what one statement can carry. What cannot be in it, because its record is in it for
    /// somebody else, stays in front.
    pub(super) fn take(queue: &mut VecDeque<Waiting<V>>, most: usize, unsure: &Unsure) -> Self {
        let (mut rows, mut past, mut bytes) = (BTreeMap::new(), Vec::new(), 0);
        while past.len() <= most * LOOK_PAST {
            let Some(waiting) = queue.pop_front() else { break };
            if waiting.is_gone() {
                continue;
            }
            let more = V::bytes(&waiting.item);
            let is_full = rows.len() >= most || (bytes + more > BYTES && !rows.is_empty());
            match rows.entry(V::record(&waiting.item)) {
                Entry::Vacant(_) if is_full => {
                    queue.push_front(waiting);
                    break;
                }
                Entry::Vacant(place) => {
                    bytes += more;
                    place.insert((waiting.item, Seat { first: waiting.told, others: Vec::new() }));
                }
                Entry::Occupied(mut place) => {
                    let (first, seat): &mut (V::Item, Seat<V>) = place.get_mut();
                    match V::says(first, &waiting.item) && !unsure.contains(V::attempt(&waiting.item)) {
                        true => seat.others.push(waiting),
                        false => past.push(waiting),
                    }
                }
            }
        }
        past.into_iter().rev().for_each(|waiting| queue.push_front(waiting));
        let (items, seats) = rows.into_values().unzip();
        Self { items, seats }
    }
}

/// A store that answers with too much or too little.
pub(super) fn unanswered() -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, "the store did not answer all that it was asked")
}
