//! The statements of a lane that are on their way, and which of them have been for long.

use std::time::Duration;

use tokio::time::Instant;

/// After so long, a statement is not waited for any more by those who are not in it: a lock, or a connection that fell
/// silent, must not keep its neighbours. Whoever comes, and whoever has waited for so long, looks for such; a timer per statement
/// would wake the thread that waits for the network each time.
pub(super) const STALLED: Duration = Duration::from_millis(100);

/// Few: a list is the quickest.
#[derive(Debug, Default)]
pub(super) struct Turns {
    all: Vec<Entry>,
    next: u64,
}

#[derive(Debug)]
struct Entry {
    nr: u64,
    /// When its statement was sent; `None`: none is on its way.
    sent: Option<Instant>,
    stalled: bool,
}

impl Turns {
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Without those that have stalled.
    pub(super) fn active(&self) -> usize {
        self.all.iter().filter(|turn| !turn.stalled).count()
    }

    pub(super) fn begin(&mut self) -> u64 {
        self.next += 1;
        self.all.push(Entry { nr: self.next, sent: None, stalled: false });
        self.next
    }

    pub(super) fn sends(&mut self, nr: u64) -> Instant {
        let now = Instant::now();
        self.all.iter_mut().filter(|turn| turn.nr == nr).for_each(|turn| turn.sent = Some(now));
        now
    }

    pub(super) fn answered(&mut self, nr: u64) {
        self.all.iter_mut().filter(|turn| turn.nr == nr).for_each(|turn| turn.sent = None);
    }

    pub(super) fn has_stalled(&self, nr: u64) -> bool {
        self.all.iter().any(|turn| turn.nr == nr && turn.stalled)
    }

    pub(super) fn end(&mut self, nr: u64) {
        self.all.retain(|turn| turn.nr != nr);
    }

    /// Others go on without what has been on its way for long.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        for turn in &mut self.all {
            turn.stalled |= turn.sent.is_some_and(|sent| now.duration_since(sent) >= STALLED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_what_is_on_its_way_for_long_stalls() {
        let mut turns = Turns::default();
        let [hangs, waits, ends] = [turns.begin(), turns.begin(), turns.begin()];
        turns.sends(hangs);
        turns.sends(ends);
        tokio::time::advance(STALLED).await;
        turns.answered(ends);
        turns.look();
        assert_eq!([hangs, waits, ends].map(|nr| turns.has_stalled(nr)), [true, false, false]);
        assert_eq!((turns.active(), turns.count()), (2, 3));
        turns.answered(hangs); // too late
        turns.look();
        assert!(turns.has_stalled(hangs));
        turns.end(hangs);
        assert_eq!((turns.active(), turns.count()), (2, 2));
    }
}
