//! How long the bodies of each operation run: so that a duplicate can be told when it is worth coming back.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Per operation, so many runs are remembered.
const WINDOW: usize = 128;
/// With fewer runs than this, a percentile would be a guess.
const ENOUGH: usize = 20;

/// Tells a duplicate when it is worth coming back.
#[derive(Default)]
pub(crate) struct Pace {
    runs: Mutex<HashMap<&'static str, Runs>>,
}

#[derive(Default)]
struct Runs {
    recent: Vec<Duration>,
    next: usize,
}

impl Pace {
    pub(crate) fn ran(&self, op: &'static str, took: Duration) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = runs.entry(op).or_default();
        if runs.recent.len() < WINDOW {
            runs.recent.push(took);
        } else {
            runs.recent[runs.next] = took;
        }
        runs.next = (runs.next + 1) % WINDOW;
    }

    /// What 95 of 100 runs of `op` would still need at this `age`: 1 to 5 s, and 1 s while too little is known.
    pub(crate) fn retry_after(&self, op: &str, age: Duration) -> Duration {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let p95 = runs.get(op).and_then(Runs::p95).unwrap_or_default();
        p95.saturating_sub(age).clamp(Duration::from_secs(1), Duration::from_secs(5))
    }
}

impl Runs {
    fn p95(&self) -> Option<Duration> {
        if self.recent.len() < ENOUGH {
            return None;
        }
        let mut sorted = self.recent.clone();
        sorted.sort_unstable();
        sorted.get((sorted.len() * 95).div_ceil(100) - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn clause_04_retry_after_is_what_95_of_100_runs_still_need() {
        let pace = Pace::default();
        for _ in 0..19 {
            pace.ran("charge", secs(4));
        }
        assert_eq!(pace.retry_after("charge", secs(0)), secs(1), "19 runs are too few");
        pace.ran("charge", secs(4));
        assert_eq!(pace.retry_after("charge", secs(0)), secs(4));
        assert_eq!(pace.retry_after("charge", secs(2)), secs(2));
        assert_eq!(pace.retry_after("charge", secs(60)), secs(1));
        assert_eq!(pace.retry_after("other", secs(0)), secs(1));
        for _ in 0..WINDOW {
            pace.ran("charge", secs(900));
        }
        assert_eq!(pace.retry_after("charge", secs(0)), secs(5), "old runs are forgotten, the bound holds");
    }

    #[test]
    fn one_slow_run_in_a_hundred_does_not_count() {
        let pace = Pace::default();
        (0..99).for_each(|_| pace.ran("op", secs(2)));
        pace.ran("op", secs(300));
        assert_eq!(pace.retry_after("op", secs(0)), secs(2));
    }
}
