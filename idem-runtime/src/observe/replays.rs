//! Whose clients retry too much: a time-out that is set too low makes every request of a client a first try that is
//! given up and a replay. Better seen here than in a dispute about an invoice.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// How long is counted, before it starts from nothing.
const WINDOW: Duration = Duration::from_secs(5 * 60);
/// So many scopes of all operations are told apart in one window. The rest only counts among the others.
const MAX_SCOPES: usize = 1024;
/// Fewer replays are no pattern.
const ENOUGH: u64 = 50;
/// How many times the share of replays must be that of all other scopes.
const TIMES: u64 = 5;

/// Scopes by the first four bytes of their digest: enough to find one, and nothing else is kept.
#[derive(Default)]
pub(super) struct Replays(Mutex<Window>);

#[derive(Default)]
struct Window {
    ends: Option<Instant>,
    all: HashMap<&'static str, Tally>,
    scopes: HashMap<(&'static str, u32), Tally>,
    /// Until the window ends, no more scopes are taken in.
    full: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) requests: u64,
    pub(super) replays: u64,
    told: bool,
}

impl Replays {
    /// One request with a key. `Some`, once a window, if its scope's clients now retry too much.
    pub(super) fn saw(&self, op: &'static str, scope: u32, replayed: bool, now: Instant) -> Option<Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).saw(op, scope, replayed, now)
    }
}

impl Window {
    fn saw(&mut self, op: &'static str, scope: u32, replayed: bool, now: Instant) -> Option<Tally> {
        if self.ends.is_none_or(|ends| now >= ends) {
            self.all.clear();
            self.scopes.clear();
            (self.ends, self.full) = (Some(now + WINDOW), false);
        }
        let all = self.all.entry(op).or_default();
        all.add(replayed);
        let all = *all;
        self.make_room(op, scope);
        let mine = match self.scopes.get_mut(&(op, scope)) {
            Some(mine) => mine,
            None if self.full => return None,
            None => self.scopes.entry((op, scope)).or_default(),
        };
        mine.add(replayed);
        if mine.told || !mine.is_heavy(all) {
            return None;
        }
        mine.told = true;
        Some(*mine)
    }

    /// Scopes without a replay are the first to go: at worst, one is told of a little later.
    fn make_room(&mut self, op: &'static str, scope: u32) {
        if self.full || self.scopes.len() < MAX_SCOPES || self.scopes.contains_key(&(op, scope)) {
            return;
        }
        self.scopes.retain(|_, tally| tally.replays > 0);
        self.full = self.scopes.len() > MAX_SCOPES / 2; // else every new scope would be a search through all
    }
}

impl Tally {
    fn add(&mut self, replayed: bool) {
        self.requests += 1;
        self.replays += u64::from(replayed);
    }

    /// Many replays, more than half of the requests, and far more than those of all others have. (Without division.)
    fn is_heavy(&self, all: Self) -> bool {
        let (requests, replays) = (all.requests - self.requests, all.replays - self.replays);
        self.replays >= ENOUGH
            && self.replays * 2 > self.requests
            && self.replays * requests >= TIMES * replays * self.requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many(window: &mut Window, scope: u32, requests: u64, replays: u64, now: Instant) -> Vec<Tally> {
        let all = (0..requests).map(|n| n >= requests - replays); // the replays last
        all.filter_map(|replayed| window.saw("charge", scope, replayed, now)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_scope_that_replays_far_more_than_the_others_is_told_of_once_a_window() {
        let (mut window, now) = (Window::default(), Instant::now());
        assert!(many(&mut window, 1, 1000, 10, now).is_empty(), "the others");
        assert!(many(&mut window, 2, 98, 49, now).is_empty(), "49 are too few");
        assert!(window.saw("charge", 2, true, now).is_some(), "50 of 99");
        assert!(many(&mut window, 2, 500, 500, now).is_empty(), "told already");
        let late = now + WINDOW - Duration::from_millis(1);
        assert!(many(&mut window, 2, 500, 500, late).is_empty());
        let next = now + WINDOW;
        assert_eq!(many(&mut window, 2, 60, 55, next), [Tally { requests: 55, replays: 50, told: true }]);
    }

    #[tokio::test(start_paused = true)]
    async fn half_of_its_requests_are_not_more_than_half() {
        let (mut window, now) = (Window::default(), Instant::now());
        assert!(many(&mut window, 2, 200, 100, now).is_empty());
        assert!(window.saw("charge", 2, true, now).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn where_all_retry_much_nobody_is_told_of() {
        let (mut window, now) = (Window::default(), Instant::now());
        many(&mut window, 1, 1000, 200, now);
        assert!(many(&mut window, 2, 99, 98, now).is_empty(), "just under five times as much");
        let (mut window, now) = (Window::default(), Instant::now());
        many(&mut window, 1, 1000, 200, now);
        assert_eq!(many(&mut window, 2, 100, 100, now).len(), 1, "five times as much");
    }

    #[tokio::test(start_paused = true)]
    async fn operations_are_apart() {
        let (mut window, now) = (Window::default(), Instant::now());
        for _ in 0..49 {
            assert!(window.saw("charge", 1, true, now).is_none());
            assert!(window.saw("payout", 1, true, now).is_none());
        }
        assert!(window.saw("payout", 1, true, now).is_some(), "a scope that is alone has nobody to be compared with");
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded_and_quiet_scopes_make_room() {
        let (mut window, now) = (Window::default(), Instant::now());
        for scope in 10..100_000 {
            window.saw("charge", scope, false, now);
            assert!(window.scopes.len() <= MAX_SCOPES);
        }
        assert_eq!(many(&mut window, 1, 60, 55, now).len(), 1, "still seen");
        let (mut window, now) = (Window::default(), Instant::now());
        for scope in 10..100_000 {
            window.saw("charge", scope, true, now);
            assert!(window.scopes.len() <= MAX_SCOPES);
        }
        assert!(window.full && many(&mut window, 1, 60, 60, now).is_empty(), "not told apart from the others");
        assert_eq!(window.all["charge"].requests, 100_000 - 10 + 60);
        assert_eq!(many(&mut window, 1, 60, 60, now + WINDOW).len(), 1, "until the window ends");
    }
}
