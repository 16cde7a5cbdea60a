//! How many statements of one lane are on their way at once.

use std::time::Duration;

use tokio::time::Instant;

/// However slow a flush is.
pub(super) const MOST: usize = 16;

/// What a statement costs the database's processors, about. In the time of a statement that carries little, most of which
/// is a wait for the disk, they could have worked off as many others as this fits into it. (Chosen, with room, by what a
/// committed statement was measured to cost on two cores: 115 us of server and client. No other rule was compared.)
const WORK: Duration = Duration::from_micros(250);

/// A statement with more rows than this says more about its rows than about the disk.
const LITTLE: usize = 4;

/// For so many statements, and for so long at most, the quickest one counts.
const WINDOW: (u32, Duration) = (64, Duration::from_secs(10));

/// One where a flush is quick, since then processors are the bound, and a second statement only takes its rows from the
/// first; more where flushes are slow, since then they are idle, and whoever comes first should not wait for two flushes.
///
/// The quickest of the last statements is taken, because load makes them slower, and is no reason to send more.
pub(super) struct Width {
    most: usize,
    now: usize,
    /// The quickest in this window and in the one before.
    quickest: [Option<Duration>; 2],
    seen: u32,
    since: Instant,
}

impl Width {
    pub(super) fn new(most: usize) -> Self {
        Self { most, now: 1, quickest: [None; 2], seen: 0, since: Instant::now() }
    }

    pub(super) fn now(&self) -> usize {
        self.now
    }

    /// A statement has been answered.
    pub(super) fn took(&mut self, rows: usize, time: Duration) {
        if rows > LITTLE || self.most == 1 {
            return;
        }
        if self.seen >= WINDOW.0 || self.since.elapsed() >= WINDOW.1 {
            self.quickest = [None, self.quickest[0]];
            (self.seen, self.since) = (0, Instant::now());
        }
        self.seen += 1;
        self.quickest[0] = Some(self.quickest[0].map_or(time, |quickest| quickest.min(time)));
        let quickest = self.quickest.into_iter().flatten().min().unwrap_or_default();
        let fit = quickest.as_nanos() / WORK.as_nanos();
        self.now = usize::try_from(fit).unwrap_or(self.most).clamp(1, self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_flush_lets_more_statements_go_at_once() {
        let mut width = Width::new(MOST);
        assert_eq!(width.now(), 1);
        width.took(1, us(300));
        assert_eq!(width.now(), 1);
        for _ in 0..2 * WINDOW.0 {
            width.took(1, us(1_300));
        }
        assert_eq!(width.now(), 5);
        for _ in 0..2 * WINDOW.0 {
            width.took(1, us(1_000_000));
        }
        assert_eq!(width.now(), MOST);
        width.took(2, us(400)); // a quick one is believed at once
        assert_eq!(width.now(), 1);
        width.took(LITTLE + 1, us(1)); // and one with many rows never
        assert_eq!(width.now(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_hour_does_not_keep_what_was_measured_before() {
        let mut width = Width::new(MOST);
        width.took(1, us(200));
        for _ in 0..2 {
            tokio::time::advance(WINDOW.1).await;
            width.took(1, us(2_000));
        }
        assert_eq!(width.now(), 8);
    }

    #[tokio::test]
    async fn where_one_can_write_it_stays_one() {
        let mut width = Width::new(1);
        width.took(1, Duration::from_secs(1));
        assert_eq!(width.now(), 1);
    }
}
