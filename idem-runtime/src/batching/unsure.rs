//! Attempts that were sent and got no answer.

use std::collections::{HashSet, VecDeque};

use crate::store::Attempt;

/// An outage leaves one per claim. Whoever sends a claim again does so within a second, so what is forgotten beyond this
/// does not come again.
const MOST: usize = 10_000;

/// Such an attempt may have its record already, and must hear that from the store: what a neighbour with the same payload
/// finds, "somebody runs it", would be about itself.
#[derive(Default)]
pub(super) struct Unsure {
    attempts: HashSet<Attempt>,
    order: VecDeque<Attempt>,
}

impl Unsure {
    pub(super) fn contains(&self, attempt: Option<Attempt>) -> bool {
        attempt.is_some_and(|attempt| self.attempts.contains(&attempt))
    }

    /// It was sent, and whether it counted is not known.
    pub(super) fn went_unanswered(&mut self, attempt: Attempt) {
        if self.attempts.insert(attempt) {
            self.order.push_back(attempt);
        }
        while self.order.len() > MOST {
            if let Some(oldest) = self.order.pop_front() {
                self.attempts.remove(&oldest);
            }
        }
    }

    /// (It stays in the order until it is pushed out: at worst another one is forgotten a little early.)
    pub(super) fn was_answered(&mut self, attempt: Attempt) {
        if !self.attempts.is_empty() {
            self.attempts.remove(&attempt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut unsure = Unsure::default();
        let attempts: Vec<Attempt> = (0..=MOST).map(|_| Attempt::random()).collect();
        attempts.iter().for_each(|attempt| unsure.went_unanswered(*attempt));
        assert!(!unsure.contains(Some(attempts[0])));
        assert!(unsure.contains(Some(attempts[1])) && unsure.contains(Some(attempts[MOST])));
        unsure.was_answered(attempts[1]);
        assert!(!unsure.contains(Some(attempts[1])) && !unsure.contains(None));
        assert_eq!((unsure.attempts.len(), unsure.order.len()), (MOST - 1, MOST));
    }
}
