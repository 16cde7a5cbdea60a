//! What a run came to, in numbers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use super::log::{Answer, Key, Log, Mode};
use crate::support::Backend;

pub(crate) struct Report {
    backend: Backend,
    seed: u64,
    lasted: Duration,
    pub(crate) modes: BTreeMap<Mode, Numbers>,
    pub(crate) damage: BTreeMap<&'static str, usize>,
}

/// Of one mode.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) keys: usize,
    pub(crate) requests: usize,
    pub(crate) runs: usize,
    pub(crate) effects: usize,
    pub(crate) settled: usize,
    pub(crate) in_doubt: usize,
    pub(crate) replays: usize,
    pub(crate) unavailable: usize,
    pub(crate) unanswered: usize,
    pub(crate) unrecorded: usize,
}

impl Report {
    pub(crate) fn of(log: &Log, seed: u64, backend: Backend, lasted: Duration, modes: &[Mode]) -> Self {
        let numbers = modes.iter().map(|mode| (*mode, Numbers::of(log, *mode))).collect();
        let mut damage = BTreeMap::new();
        for one in &log.damage {
            *damage.entry(one.what).or_default() += 1;
        }
        Self { backend, seed, lasted, modes: numbers, damage }
    }
}

impl Numbers {
    fn of(log: &Log, mode: Mode) -> Self {
        let told: Vec<_> = log.told.iter().filter(|told| told.key.mode == mode).collect();
        let keys: BTreeSet<Key> = told.iter().map(|told| told.key).collect();
        let answered =
            |what: fn(&Answer) -> bool| told.iter().filter_map(|told| told.answer.as_ref()).filter(|a| what(a)).count();
        let last = |what: fn(&Answer) -> bool| log.last.iter().filter(|(key, a)| key.mode == mode && what(a)).count();
        Self {
            keys: keys.len(),
            requests: told.len(),
            runs: log.runs.iter().filter(|key| key.mode == mode).count(),
            effects: log.effects.iter().filter(|effect| effect.key.mode == mode).count(),
            settled: last(Answer::is_final),
            in_doubt: last(Answer::is_doubt),
            replays: answered(|answer| answer.replayed),
            unavailable: answered(|answer| answer.status == 503 && answer.slug.is_some()),
            unanswered: told.iter().filter(|told| told.answer.is_none()).count(),
            unrecorded: answered(|answer| answer.unrecorded),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}, {} s, SEED={}", self.backend, self.lasted.as_secs(), self.seed)?;
        let damage: Vec<String> = self.damage.iter().map(|(what, count)| format!("{what} {count}")).collect();
        writeln!(f, "damage: {}", damage.join(", "))?;
        writeln!(
            f,
            "{:<14}{:>8}{:>9}{:>8}{:>8}{:>8}{:>9}{:>8}{:>6}{:>11}{:>11}",
            "mode",
            "keys",
            "requests",
            "runs",
            "effects",
            "final",
            "in doubt",
            "replays",
            "503",
            "unanswered",
            "unrecorded"
        )?;
        for (mode, n) in &self.modes {
            writeln!(
                f,
                "{:<14}{:>8}{:>9}{:>8}{:>8}{:>8}{:>9}{:>8}{:>6}{:>11}{:>11}",
                mode.name(),
                n.keys,
                n.requests,
                n.runs,
                n.effects,
                n.settled,
                n.in_doubt,
                n.replays,
                n.unavailable,
                n.unanswered,
                n.unrecorded
            )?;
        }
        Ok(())
    }
}
