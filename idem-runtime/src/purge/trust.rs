//! Whether the store's clock can be trusted with removing records for good. Pure.
//!
//! A clock that jumps ahead makes everything look over at once. What claims decide by it can be borne: they refuse, or
//! hold in doubt. What a purge decides by it is gone, and each retry that is still to come would run again.

use std::time::Duration;

use tokio::time::Instant;

use crate::store::Due;

/// How far the store's clock may run ahead of ours between two looks, and how long ago a purge may be without a question.
pub(super) const JUMP: Duration = Duration::from_secs(3600);

/// Fewer than this are never too many: a small shop's weekend needs no operator.
const FEW: u64 = 1_000;

/// Above one part in so many it is too much for a first look.
const PART: u64 = 5;

/// How often a refusal is told again.
const AGAIN: Duration = Duration::from_secs(3600);

/// Why nothing is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The store's clock went so much further than ours since the last look.
    Jumped(Duration),
    /// The last purge is so long ago, and so many records of so many would go.
    TooMuch { since_purge: Duration, records: u64, of: u64 },
}

pub(super) const CLOCK_JUMPED: &str = "clock_jumped";
pub(super) const TOO_MUCH: &str = "too_much";

impl Refusal {
    /// In a word, for a label.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Jumped(_) => CLOCK_JUMPED,
            Self::TooMuch { .. } => TOO_MUCH,
        }
    }
}

/// What a look that was trusted saw.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) since_purge: Duration,
    pub(super) at: Instant,
}

impl Seen {
    /// How long ago the last purge is, by this process's clock.
    fn ours(&self, now: Instant) -> Duration {
        self.since_purge.saturating_add(now.saturating_duration_since(self.at))
    }
}

/// The rule. `last` is the last look of this process that was trusted, `standing` what was said at the one before this.
///
/// A purge within the last hour by the store's own clock settles it, whoever made it: either the clock has not jumped
/// since, or somebody has confirmed that it is right.
pub(super) fn refusal(due: &Due, now: Instant, last: Option<Seen>, standing: Option<Refusal>) -> Option<Refusal> {
    if due.since_purge <= JUMP {
        return None;
    }
    if standing.is_some() {
        return standing;
    }
    let Some(last) = last else {
        let too_much = due.records > FEW && due.records > due.of / PART;
        let Due { since_purge, records, of } = *due;
        return too_much.then_some(Refusal::TooMuch { since_purge, records, of });
    };
    let ahead = due.since_purge.saturating_sub(last.ours(now));
    (ahead > JUMP).then_some(Refusal::Jumped(ahead))
}

/// What a look leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Trusted,
    /// And whether it is time to tell somebody.
    Refused {
        refusal: Refusal,
        tell: bool,
    },
}

/// The rule, over time.
#[derive(Debug, Default)]
pub(super) struct Trust {
    last: Option<Seen>,
    standing: Option<(Refusal, Instant)>,
}

impl Trust {
    /// A look at `now`. `confirmed`: an operator says that the clock is right.
    pub(super) fn look(&mut self, due: &Due, now: Instant, confirmed: bool) -> Verdict {
        let standing = self.standing.map(|(refusal, _)| refusal);
        match refusal(due, now, self.last, standing) {
            Some(refusal) if !confirmed => {
                let tell = self.standing.is_none_or(|(_, told)| now.saturating_duration_since(told) >= AGAIN);
                if tell {
                    self.standing = Some((refusal, now));
                }
                Verdict::Refused { refusal, tell }
            }
            _ => {
                self.standing = None;
                self.last = Some(Seen { since_purge: due.since_purge, at: now });
                Verdict::Trusted
            }
        }
    }

    /// How long ago the last purge may be by the store's clock, for one that is sent at `now`: the look before it holds for
    /// that moment only.
    pub(super) fn within(&self, now: Instant) -> Duration {
        let ours = self.last.map_or(Duration::ZERO, |last| last.ours(now));
        ours.saturating_add(JUMP)
    }

    /// A purge that was sent at `now` noted its time.
    pub(super) fn purged(&mut self, now: Instant) {
        self.last = Some(Seen { since_purge: Duration::ZERO, at: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const MINUTE: Duration = Duration::from_secs(60);

    fn due(since_purge: Duration, records: u64, of: u64) -> Due {
        Due { since_purge, records, of }
    }

    /// What a running process says, one minute after a look right after a purge.
    fn running(due: &Due) -> Option<Refusal> {
        let at = Instant::now();
        refusal(due, at + MINUTE, Some(Seen { since_purge: Duration::ZERO, at }), None)
    }

    #[test]
    fn clause_24_a_clock_that_jumped_more_than_an_hour_is_not_trusted() {
        assert_eq!(running(&due(MINUTE, 1_000_000, 1_000_000)), None, "however many there are");
        assert_eq!(running(&due(MINUTE + HOUR, 5, 5)), None);
        let late = MINUTE + HOUR + Duration::from_millis(1);
        assert_eq!(running(&due(late, 5, 5)), Some(Refusal::Jumped(HOUR + Duration::from_millis(1))));
        assert_eq!(running(&due(25 * HOUR, 0, 5)), Some(Refusal::Jumped(25 * HOUR - MINUTE)), "nor with nothing to do");
    }

    #[test]
    fn clause_24_a_look_holds_for_its_moment_and_each_batch_for_its_own() {
        let (mut trust, start) = (Trust::default(), Instant::now());
        assert_eq!(trust.within(start), HOUR, "without a look, what a first look would take");
        trust.look(&due(3 * HOUR, 5, 5_000), start, false);
        assert_eq!(trust.within(start + MINUTE), 4 * HOUR + MINUTE);
        trust.purged(start + MINUTE);
        assert_eq!(trust.within(start + MINUTE * 2), HOUR + MINUTE);
    }

    #[test]
    fn clause_24_time_in_which_no_purge_succeeded_is_no_jump() {
        let at = Instant::now();
        let last = Some(Seen { since_purge: 3 * HOUR, at });
        assert_eq!(refusal(&due(8 * HOUR, 5_000, 5_000), at + 5 * HOUR, last, None), None);
        assert!(refusal(&due(8 * HOUR, 5_000, 5_000), at + 3 * HOUR, last, None).is_some());
    }

    #[test]
    fn clause_24_a_first_look_refuses_only_much_after_long() {
        let first = |due| refusal(&due, Instant::now(), None, None);
        assert_eq!(first(due(HOUR, 9_000, 9_000)), None, "a purge within the hour");
        assert_eq!(first(due(60 * HOUR, 1_000, 1_000)), None, "few");
        assert_eq!(first(due(60 * HOUR, 2_000, 10_000)), None, "a fifth");
        let (since_purge, records, of) = (60 * HOUR, 2_001, 10_000);
        assert_eq!(first(due(since_purge, records, of)), Some(Refusal::TooMuch { since_purge, records, of }));
        assert!(first(due(60 * HOUR, u64::MAX, u64::MAX)).is_some());
    }

    #[test]
    fn clause_24_a_refusal_stands_until_it_is_confirmed() {
        let (mut trust, start) = (Trust::default(), Instant::now());
        let much = due(60 * HOUR, 5_000, 5_000);
        assert!(matches!(trust.look(&much, start, false), Verdict::Refused { tell: true, .. }));
        let less = due(61 * HOUR, 5, 5_000);
        assert!(matches!(trust.look(&less, start + MINUTE, false), Verdict::Refused { tell: false, .. }), "told once");
        assert!(
            matches!(trust.look(&less, start + HOUR, false), Verdict::Refused { tell: true, .. }),
            "and again hourly"
        );
        assert_eq!(trust.look(&less, start + HOUR, true), Verdict::Trusted);
        let later = due(62 * HOUR, 5_000, 5_000);
        assert_eq!(trust.look(&later, start + 2 * HOUR, false), Verdict::Trusted, "though that purge failed");
    }

    #[test]
    fn clause_24_a_refusal_ends_with_another_process_purge() {
        let (mut trust, start) = (Trust::default(), Instant::now());
        trust.purged(start);
        assert!(matches!(
            trust.look(&due(25 * HOUR, 9, 9), start + MINUTE, false),
            Verdict::Refused { tell: true, .. }
        ));
        assert_eq!(trust.look(&due(MINUTE, 9, 9), start + 2 * MINUTE, false), Verdict::Trusted);
        assert_eq!(trust.look(&due(2 * MINUTE, 9, 9), start + 3 * MINUTE, false), Verdict::Trusted);
    }
}
