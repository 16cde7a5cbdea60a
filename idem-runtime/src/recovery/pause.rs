//! When a hook is asked again, and how often.

use std::time::Duration;

/// Between two tries, at first and at most.
pub(super) const BACK_OFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5 * 60));
/// What a hook may wish for.
const WISH: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(24 * 3600));
/// With the pauses between them, about a day, whatever a hook wishes; and three quarantines, where that is more.
pub(crate) const TRIES: u32 = 300;
/// So many pauses a hook may shorten.
const SHORT_PAUSES: u32 = 20;

/// Until the next try: 1 s, 2 s, 4 s … 5 min, or a hundredth of the quarantine, so that there are tries left after it; or as
/// the hook wishes, if that leaves enough of them, too.
pub(super) fn pause(tries: u32, wish: Option<Duration>, quarantine: Duration) -> Duration {
    let doubled = 1_u32.checked_shl(tries.saturating_sub(1)).unwrap_or(u32::MAX);
    let own = BACK_OFF.0.saturating_mul(doubled).min(longest_pause(quarantine));
    match wish.map(|wish| wish.clamp(WISH.0, WISH.1)) {
        None => own,
        Some(wish) if tries <= SHORT_PAUSES => wish,
        Some(wish) => wish.max(own),
    }
}

pub(super) fn longest_pause(quarantine: Duration) -> Duration {
    BACK_OFF.1.max(quarantine / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUARANTINE: Duration = Duration::from_secs(600);
    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn clause_33_tries_come_later_and_later() {
        let seconds: Vec<u64> = (1..=11).map(|tries| pause(tries, None, QUARANTINE).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(pause(TRIES, None, QUARANTINE).as_secs(), 300);
    }

    /// "About a day" and "after the quarantine" hold for any hook.
    #[test]
    fn clause_33_an_impatient_hook_is_asked_for_as_long() {
        for wish in [None, Some(Duration::ZERO), Some(QUARANTINE / 100)] {
            let lasts = |quarantine| (1..TRIES).map(|tries| pause(tries, wish, quarantine)).sum::<Duration>();
            let day = lasts(QUARANTINE);
            assert!(day > HOUR * 23 && day < HOUR * 25, "{wish:?}: {day:?}");
            let week = HOUR * 24 * 7;
            assert!(lasts(week) > week * 2, "{wish:?}");
        }
        assert_eq!(pause(SHORT_PAUSES, Some(Duration::ZERO), QUARANTINE), WISH.0);
        assert_eq!(pause(250, Some(HOUR * 100), QUARANTINE), WISH.1);
    }
}
