//! Says for every key whether the contract held. Pure: it knows the log, and nothing else.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    time::Duration,
};

use idem_runtime::state::State;

use super::{
    log::{Answer, CHARGE, Damage, Effect, Key, Log, Mode, Told, UNAVAILABLE},
    plan::LEASE,
};

/// What can be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Rule {
    /// A key has one effect at most.
    OneEffect,
    /// Whoever was told of a success, or that something is final, was told of an effect; and a job that was acknowledged is done.
    TruthfulAnswer,
    /// All final answers of a key are one, byte for byte.
    OneAnswer,
    /// A final answer is never taken back: whoever asks afterwards gets it.
    KeptAnswer,
    /// An effect is never forgotten: its key is not free.
    KeptEffect,
    /// A key comes to its end.
    Settled,
    /// A key is in doubt for a reason.
    DoubtHasReason,
    /// Nothing is told that no client has asked for.
    ExpectedAnswer,
}

/// A rule that a key broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Breach {
    pub(crate) rule: Rule,
    pub(crate) key: Key,
    what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}: {}", self.rule, self.key, self.what)
    }
}

/// How long a run goes on after its client has gone, at most, and how long before a doubt its cause may lie.
const AFTERMATH: Duration = Duration::from_secs(6);

/// Problems that a fault explains. Of all others none is due to clients that repeat one payload.
const EXPECTED: [&str; 7] = [
    "idempotency-store-unavailable",
    "idempotency-draining",
    "idempotency-in-progress",
    "idempotency-outcome-unknown",
    "idempotency-body-timeout",
    "idempotency-body-panicked",
    "idempotency-transaction-failed",
];

/// Every breach, in the order of the keys.
pub(crate) fn check(log: &Log) -> Vec<Breach> {
    let mut told: BTreeMap<Key, Vec<&Told>> = BTreeMap::new();
    for one in &log.told {
        told.entry(one.key).or_default().push(one);
    }
    let mut effects: HashMap<Key, Vec<&Effect>> = HashMap::new();
    for effect in &log.effects {
        effects.entry(effect.key).or_default().push(effect);
    }
    let mut breaches = Vec::new();
    for (key, told) in &told {
        let effects = effects.get(key).map_or(&[][..], Vec::as_slice);
        let history = History { key: *key, told, effects, log };
        breaches.extend(history.breaches().map(|(rule, what)| Breach { rule, key: *key, what }));
    }
    breaches
}

/// All that is known of one key.
struct History<'a> {
    key: Key,
    told: &'a [&'a Told],
    effects: &'a [&'a Effect],
    log: &'a Log,
}

impl<'a> History<'a> {
    fn breaches(&self) -> impl Iterator<Item = (Rule, String)> {
        [
            (Rule::OneEffect, self.more_than_one_effect()),
            (Rule::TruthfulAnswer, self.an_answer_without_its_effect()),
            (Rule::OneAnswer, self.two_answers()),
            (Rule::KeptAnswer, self.an_answer_taken_back()),
            (Rule::KeptEffect, self.an_effect_forgotten()),
            (Rule::Settled, self.no_end()),
            (Rule::DoubtHasReason, self.a_doubt_without_reason()),
            (Rule::ExpectedAnswer, self.an_unexpected_answer()),
        ]
        .into_iter()
        .filter_map(|(rule, found)| Some((rule, found?)))
    }

    fn answers(&self) -> impl Iterator<Item = (&'a Told, &'a Answer)> {
        self.told.iter().filter_map(|told| Some((*told, told.answer.as_ref()?)))
    }

    fn finals(&self) -> impl Iterator<Item = (&'a Told, &'a Answer)> {
        self.answers().filter(|(_, answer)| answer.is_final())
    }

    fn more_than_one_effect(&self) -> Option<String> {
        let count = |step: &str| self.effects.iter().filter(|effect| effect.step == step).count();
        let step = self.effects.iter().map(|effect| &*effect.step).find(|step| count(step) > 1)?;
        Some(format!("{} effects of `{step}`", count(step)))
    }

    /// Also one that was not recorded speaks of what has happened, and of all of it.
    fn an_answer_without_its_effect(&self) -> Option<String> {
        let happened = |step: &str, is: &dyn Fn(&str) -> bool| {
            self.effects.iter().any(|effect| effect.step == step && is(&effect.nonce))
        };
        let known = |answer: &Answer| {
            let its_own = || answer.nonce().is_some_and(|nonce| happened(CHARGE, &|known| known == nonce));
            (answer.is_acknowledgement() || its_own())
                && self.key.mode.steps().iter().all(|step| happened(step, &|_| true))
        };
        let mut finals = self.answers().filter(|(_, answer)| answer.is_final() || answer.is_acknowledgement());
        let (_, lie) = finals.find(|(_, answer)| !known(answer))?;
        Some(format!("told {} {}, but the effects are {:?}", lie.status, lie.body, self.effects))
    }

    /// One that was not recorded is out of this: its caller was told that nobody else gets it.
    fn two_answers(&self) -> Option<String> {
        let mut recorded = self.finals().map(|(_, answer)| answer).filter(|answer| !answer.unrecorded);
        let first = recorded.next()?;
        let other = recorded.find(|answer| (answer.status, &answer.body) != (first.status, &first.body))?;
        Some(format!("told {} {}, and {} {}", first.status, first.body, other.status, other.body))
    }

    /// Requests that were sent after a final answer had arrived get it too, or are told that nobody can look.
    fn an_answer_taken_back(&self) -> Option<String> {
        let recorded = self.finals().filter(|(_, answer)| !answer.unrecorded);
        let arrived = recorded.map(|(told, _)| told.ended).min()?;
        let away = |answer: &Answer| matches!(answer.slug.as_deref(), Some(UNAVAILABLE | "idempotency-draining"));
        let (told, answer) =
            self.answers().find(|(told, answer)| told.sent > arrived && !answer.is_final() && !away(answer))?;
        Some(format!("final at {arrived:?}, but at {:?} {} {}", told.sent, answer.status, answer.said()))
    }

    fn an_effect_forgotten(&self) -> Option<String> {
        let left = self.log.left.get(&self.key)?;
        let free = matches!(left.state, None | Some(State::Released));
        (free && left.effects > 0).then(|| format!("{left:?}"))
    }

    fn no_end(&self) -> Option<String> {
        match self.log.last.get(&self.key) {
            Some(answer) if answer.is_final() || answer.is_acknowledgement() => None,
            Some(answer) if answer.is_doubt() && self.key.mode.may_stay_in_doubt() => None,
            Some(answer) => Some(format!("in the end it is told {} {}", answer.status, answer.said())),
            None => Some("in the end nobody answers".to_owned()),
        }
    }

    fn a_doubt_without_reason(&self) -> Option<String> {
        if self.log.calm.contains(&self.key) {
            return self.a_doubt_in_calm();
        }
        let in_doubt = self.log.last.get(&self.key).is_some_and(Answer::is_doubt);
        let excused = self.log.failing.contains(&self.key)
            || self.answers().any(|(_, answer)| answer.is_unavailable()) // a claim may have come late
            || self.log.damage.iter().map(|damage| damage.to).max().is_some_and(|calm| self.was_slow_from(calm))
            || self.told.iter().any(|told| self.log.damage.iter().any(|damage| hits(damage, told)));
        (in_doubt && !excused).then(|| "in doubt, but nothing had happened to it".to_owned())
    }

    /// No hook settles it soon enough to hide it. The machine may be slow, though, so that a lease ended since the first request.
    fn a_doubt_in_calm(&self) -> Option<String> {
        let first = self.told.iter().map(|told| told.sent).min()?;
        let excused = |told: &Told| self.was_slow_from(first) && told.ended - first >= LEASE;
        let (told, _) = self.answers().find(|(told, answer)| answer.is_doubt() && !excused(told))?;
        Some(format!("in doubt {:?} after its first request, when all was calm", told.ended - first))
    }

    /// A request took as long as a lease, or nobody saw its end, although nothing was broken any more.
    fn was_slow_from(&self, calm: Duration) -> bool {
        let slow = |told: &Told| told.answer.is_none() || told.ended - told.sent >= LEASE;
        self.told.iter().any(|told| told.sent >= calm && slow(told))
    }

    fn an_unexpected_answer(&self) -> Option<String> {
        let expected = |answer: &Answer| match answer.slug.as_deref() {
            Some(slug) => EXPECTED.contains(&slug),
            None if self.key.mode == Mode::Job => matches!(answer.status, 200 | 201 | 402 | 500),
            None => matches!(answer.status, 201 | 402 | 422 | 500 | 503),
        };
        let (_, odd) = self.answers().find(|(_, answer)| !expected(answer))?;
        Some(format!("told {} {}", odd.status, odd.said()))
    }
}

/// It was done to the server that was asked, while the run may have been under way.
fn hits(damage: &Damage, told: &Told) -> bool {
    let there = damage.server.is_none_or(|server| server == told.server);
    there && damage.from <= told.ended + AFTERMATH && told.sent <= damage.to
}
