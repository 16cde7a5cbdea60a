//! What was seen: by the clients, by the provider, by whoever did the damage, and in the database. The checker knows no more.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    time::Duration,
};

use idem_runtime::state::State;

/// How a body runs. One row here and one route in the server make another mode; jobs come by the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Mode {
    Held,
    Recovered,
    Deduped,
    Transactional,
    Resumable,
    Job,
}

impl Mode {
    pub(crate) const ALL: [Self; 6] =
        [Self::Held, Self::Recovered, Self::Deduped, Self::Transactional, Self::Resumable, Self::Job];

    /// Its `op`, and its route if it has one.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Recovered => "recovered",
            Self::Deduped => "deduped",
            Self::Transactional => "transactional",
            Self::Resumable => "resumable",
            Self::Job => "job",
        }
    }

    /// What became of a run may stay unknown for ever, for want of anybody who finds out.
    pub(crate) fn may_stay_in_doubt(self) -> bool {
        self == Self::Held
    }

    /// The provider dedupes by its key: however often it is asked, it acts once.
    pub(crate) fn is_deduped(self) -> bool {
        matches!(self, Self::Deduped | Self::Resumable | Self::Job)
    }

    /// The effects of a key that has come to its end well, by their steps.
    pub(crate) fn steps(self) -> &'static [&'static str] {
        if self == Self::Resumable { &STEPS } else { &[CHARGE] }
    }
}

pub(crate) const UNAVAILABLE: &str = "idempotency-store-unavailable";

/// The step whose effect the answer speaks of: the only one, but of operations with several.
pub(crate) const CHARGE: &str = "charge";
/// Of an operation with several.
pub(crate) const STEPS: [&str; 5] = ["user", "workspace", CHARGE, "mail", "customer"];

/// One action of a client, with as many requests as it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) mode: Mode,
    pub(crate) nr: u64,
}

impl Key {
    /// As a server names it.
    pub(crate) fn of(mode: &str, text: &str) -> Self {
        let mode = Mode::ALL.into_iter().find(|known| known.name() == mode).unwrap();
        Self { mode, nr: text[1..].parse().unwrap() }
    }

    /// As it is sent.
    pub(crate) fn text(self) -> String {
        format!("k{}", self.nr)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.mode.name(), self.text())
    }
}

/// One request, or one delivery of a job.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) key: Key,
    pub(crate) server: usize,
    /// Since the start.
    pub(crate) sent: Duration,
    pub(crate) ended: Duration,
    /// `None`: the client hung up, or the connection broke; or the queue heard nothing of it.
    pub(crate) answer: Option<Answer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) replayed: bool,
    /// `Idempotency-Status: unrecorded`.
    pub(crate) unrecorded: bool,
    /// The end of a problem's type. Answers of bodies have none.
    pub(crate) slug: Option<String>,
    pub(crate) body: String,
}

impl Answer {
    /// It has happened: a retry gets the same.
    pub(crate) fn is_final(&self) -> bool {
        self.slug.is_none() && matches!(self.status, 201 | 402)
    }

    /// A job is over, but its value is not to be had.
    pub(crate) fn is_acknowledgement(&self) -> bool {
        self.slug.is_none() && self.status == 200
    }

    /// What it says, shortly.
    pub(crate) fn said(&self) -> &str {
        self.slug.as_deref().unwrap_or(&self.body)
    }

    /// Nobody could look.
    pub(crate) fn is_unavailable(&self) -> bool {
        self.slug.as_deref() == Some(UNAVAILABLE)
    }

    pub(crate) fn is_doubt(&self) -> bool {
        self.slug.as_deref() == Some("idempotency-outcome-unknown")
    }

    /// Of the effect that it speaks of.
    pub(crate) fn nonce(&self) -> Option<String> {
        let told: serde_json::Value = serde_json::from_str(&self.body).ok()?;
        Some(told["nonce"].as_str()?.to_owned())
    }
}

/// What happened outside of the records: at the provider, or as a row of a body's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) key: Key,
    pub(crate) step: String,
    pub(crate) nonce: String,
}

/// What was done to a server, or to all of them.
#[derive(Debug, Clone)]
pub(crate) struct Damage {
    pub(crate) what: &'static str,
    /// `None`: all of them, by way of the database.
    pub(crate) server: Option<usize>,
    pub(crate) from: Duration,
    pub(crate) to: Duration,
}

/// What is left of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Left {
    /// Of its record; `None`: there is none.
    pub(crate) state: Option<State>,
    pub(crate) effects: usize,
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) told: Vec<Told>,
    /// Bodies that have begun, once per run.
    pub(crate) runs: Vec<Key>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) damage: Vec<Damage>,
    /// What was there when the damage had ended, before anybody asked again.
    pub(crate) left: HashMap<Key, Left>,
    /// What each key was told in the end, when nothing was broken any more.
    pub(crate) last: HashMap<Key, Answer>,
    /// A run of these was drawn to end as 5xx or panic.
    pub(crate) failing: HashSet<Key>,
    /// These began when the damage had ended, and none of their runs was drawn to fail.
    pub(crate) calm: HashSet<Key>,
}
