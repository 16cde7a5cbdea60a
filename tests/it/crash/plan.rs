//! What a run does: drawn from the seed, the key and the number of the run, so that the server that runs it and whoever
//! reads the logs afterwards say the same.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use fastrand::Rng;

/// How a run ends, and whether it has its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// 201, after its effect.
    Created,
    /// 402 that is final, after its effect: the provider charged for it.
    Declined,
    /// 422, without an effect: the key is free.
    Refused,
    /// `NotApplied`: a 503, and the key is free.
    NotApplied,
    /// 500, before or after its effect.
    Fails { after: bool },
    /// A panic, before or after its effect.
    Panics { after: bool },
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Before the effect, and from there to the answer.
    pub(crate) before: Duration,
    pub(crate) after: Duration,
    pub(crate) end: End,
}

/// How bodies are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mix {
    /// Short, most of them well.
    Usual,
    /// Long, and all of them well: whoever is frozen is frozen in the middle of many.
    Long,
    /// Half of them end as 500 after their effect.
    Failing,
    /// As usual, but none fails.
    Calm,
    /// Short, and all of them well.
    Well,
}

/// Of the servers.
pub(crate) const LEASE: Duration = Duration::from_secs(1);

/// From this run of a key on all is well, so that keys come to an end.
const PATIENCE: u32 = 4;

impl Mix {
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Usual, Self::Long, Self::Failing, Self::Calm, Self::Well].into_iter().find(|mix| mix.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::Long => "long",
            Self::Failing => "failing",
            Self::Calm => "calm",
            Self::Well => "well",
        }
    }
}

impl Plan {
    /// Of the `run`th run of this key, counted from 1.
    pub(crate) fn draw(mix: Mix, seed: u64, key: &str, run: u32) -> Self {
        let mut hasher = DefaultHasher::new();
        (seed, key, run).hash(&mut hasher);
        let mut random = Rng::with_seed(hasher.finish());
        let (after, lot) = (random.bool(), random.u32(0..100));
        let end = match (mix, lot) {
            _ if run >= PATIENCE => End::Created,
            (Mix::Failing, ..50) => End::Fails { after: true },
            (Mix::Failing | Mix::Long | Mix::Well, _) => End::Created,
            (Mix::Usual, ..4) => End::Fails { after },
            (Mix::Usual, 4..6) => End::Panics { after },
            (Mix::Calm, ..6) => End::Created,
            (Mix::Usual | Mix::Calm, 6..14) if run > 1 && is_rerun(key) => End::Created, // an earlier run may have acted
            (Mix::Usual | Mix::Calm, 6..10) => End::Refused,
            (Mix::Usual | Mix::Calm, 10..14) => End::NotApplied,
            (Mix::Usual | Mix::Calm, 14..17) => End::Declined,
            (Mix::Usual | Mix::Calm, _) => End::Created,
        };
        // On SQLite a transaction keeps all others from writing.
        let longest = match mix {
            Mix::Long => 800,
            _ if key.starts_with("transactional") => 4,
            _ => 25,
        };
        let mut delay = || Duration::from_millis(random.u64(0..longest));
        Self { before: delay(), after: delay(), end }
    }
}

/// Of these a later run may follow one that has acted and does not know it.
fn is_rerun(key: &str) -> bool {
    ["deduped/", "job/"].iter().any(|mode| key.starts_with(mode))
}
