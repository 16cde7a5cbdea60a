//! The names of all metrics, what they mean, and how they are counted.
//!
//! The keys of an operation are made once; counting then looks the instrument up in whatever recorder the program has
//! installed, and allocates nothing. Without a recorder that is a branch.

use std::{iter, time::Duration};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, SharedString, Unit, with_recorder};

use super::{Ending, Recovered, Resumed};
use crate::{purge, store::Doubts};

/// What is known of a metric beside its values.
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) unit: Unit,
    pub(super) says: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

const fn counter(name: &'static str, says: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, unit: Unit::Count, says }
}

const fn gauge(name: &'static str, unit: Unit, says: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, unit, says }
}

const fn seconds(name: &'static str, says: &'static str) -> Metric {
    Metric { name, kind: Kind::Histogram, unit: Unit::Seconds, says }
}

// Dashboards name these: a change is a breaking one.
const REQUESTS: Metric = counter("idem_requests_total", "Calls of an operation, each once, by what they came to.");
const CLAIM: Metric = seconds("idem_claim_seconds", "From asking the store for a key to its answer.");
const FINISH: Metric = seconds("idem_finish_seconds", "From the end of a body to its outcome being stored, all tries.");
const BODY: Metric = seconds("idem_body_seconds", "How long protected bodies ran.");
const IN_FLIGHT: Metric = gauge("idem_in_flight", Unit::Count, "Protected bodies that run in this process.");
const IN_DOUBT: Metric = gauge("idem_in_doubt", Unit::Count, "Records of the store whose outcome is unknown.");
const OLDEST: Metric =
    gauge("idem_in_doubt_oldest_seconds", Unit::Seconds, "Age of the oldest record whose outcome is unknown.");
const FENCED: Metric =
    counter("idem_fence_rejected_total", "Outcomes that were refused because the lease had been lost.");
const UNPROTECTED: Metric =
    counter("idem_unprotected_total", "Requests without a key that ran, where a key is optional.");
const UNKNOWN_FINGERPRINT: Metric = counter(
    "idem_unknown_fingerprint_total",
    "Replays whose payload could not be compared: its fingerprint is of another algorithm.",
);
const REPLAY_HEAVY: Metric =
    counter("idem_replay_heavy_scopes_total", "Scopes whose clients retry far more than all others, once a window.");
const RECOVERIES: Metric =
    counter("idem_recoveries_total", "Questions to recovery hooks about doubts, by what came of them.");
const RESUMPTIONS: Metric =
    counter("idem_resumptions_total", "Interrupted operations that were called again, by what came of them.");
const PURGED_RECORDS: Metric = counter("idem_purged_records_total", "Records that were removed.");
const PURGED_ANSWERS: Metric = counter("idem_purged_answers_total", "Answers that were removed before their records.");
const PURGE_REFUSALS: Metric =
    counter("idem_purge_refusals_total", "Purges that did not start because something was wrong, by reason.");
const PURGE: Metric = seconds("idem_purge_seconds", "How long one purge took.");

pub(super) const ALL: [&Metric; 17] = [
    &REQUESTS,
    &CLAIM,
    &FINISH,
    &BODY,
    &IN_FLIGHT,
    &IN_DOUBT,
    &OLDEST,
    &FENCED,
    &UNPROTECTED,
    &UNKNOWN_FINGERPRINT,
    &REPLAY_HEAVY,
    &RECOVERIES,
    &RESUMPTIONS,
    &PURGED_RECORDS,
    &PURGED_ANSWERS,
    &PURGE_REFUSALS,
    &PURGE,
];

static ORIGIN: Metadata<'static> = Metadata::new("idem", Level::INFO, Some(module_path!()));

/// Tells the recorder what each metric means; again and again does no harm.
pub(super) fn describe() {
    with_recorder(|recorder| {
        for &Metric { name, kind, unit, says } in ALL {
            let (name, unit, says) = (KeyName::from_const_str(name), Some(unit), SharedString::const_str(says));
            match kind {
                Kind::Counter => recorder.describe_counter(name, unit, says),
                Kind::Gauge => recorder.describe_gauge(name, unit, says),
                Kind::Histogram => recorder.describe_histogram(name, unit, says),
            }
        }
    });
}

/// The metrics of one operation.
pub(super) struct Meters {
    pub(super) op: &'static str,
    requests: [Key; Ending::ALL.len()],
    claim: Key,
    finish: Key,
    body: Key,
    in_flight: Key,
    fenced: Key,
    unprotected: Key,
    unknown_fingerprint: Key,
    replay_heavy: Key,
    recoveries: [Key; Recovered::ALL.len()],
    resumptions: [Key; Resumed::ALL.len()],
}

impl Meters {
    pub(super) fn new(op: &'static str) -> Self {
        let key = |metric: &Metric| Key::from_parts(metric.name, vec![by_op(op)]);
        let ending = |ending: Ending| {
            Key::from_parts(REQUESTS.name, vec![by_op(op), Label::from_static_parts("outcome", ending.as_str())])
        };
        let recovered = |recovered: Recovered| {
            Key::from_parts(RECOVERIES.name, vec![by_op(op), Label::from_static_parts("outcome", recovered.as_str())])
        };
        let resumed = |resumed: Resumed| {
            Key::from_parts(RESUMPTIONS.name, vec![by_op(op), Label::from_static_parts("outcome", resumed.as_str())])
        };
        let meters = Self {
            op,
            requests: Ending::ALL.map(ending),
            claim: key(&CLAIM),
            finish: key(&FINISH),
            body: key(&BODY),
            in_flight: key(&IN_FLIGHT),
            fenced: key(&FENCED),
            unprotected: key(&UNPROTECTED),
            unknown_fingerprint: key(&UNKNOWN_FINGERPRINT),
            replay_heavy: key(&REPLAY_HEAVY),
            recoveries: Recovered::ALL.map(recovered),
            resumptions: Resumed::ALL.map(resumed),
        };
        meters.begin_at_zero();
        meters
    }

    /// A counter that is first seen at 1 has not risen for whoever watches it, so the first of its kind would wake nobody.
    fn begin_at_zero(&self) {
        let others = [&self.fenced, &self.unprotected, &self.unknown_fingerprint, &self.replay_heavy];
        self.requests
            .iter()
            .chain(&self.recoveries)
            .chain(&self.resumptions)
            .chain(others)
            .for_each(|key| count(key, 0));
    }

    pub(super) fn ended(&self, ending: Ending) {
        count(&self.requests[ending as usize], 1);
        if ending == Ending::Unprotected {
            count(&self.unprotected, 1);
        }
    }

    pub(super) fn recovered(&self, recovered: Recovered) {
        count(&self.recoveries[recovered as usize], 1);
    }

    pub(super) fn resumed(&self, resumed: Resumed) {
        count(&self.resumptions[resumed as usize], 1);
    }

    pub(super) fn fenced(&self) {
        count(&self.fenced, 1);
    }

    pub(super) fn claim_took(&self, took: Duration) {
        measure(&self.claim, took);
    }

    pub(super) fn finish_took(&self, took: Duration) {
        measure(&self.finish, took);
    }

    pub(super) fn body_took(&self, took: Duration) {
        measure(&self.body, took);
    }

    /// The gauge itself, since what goes up must come down, even if the program installs a recorder in between.
    pub(super) fn in_flight(&self) -> Gauge {
        gauge_of(&self.in_flight)
    }

    pub(super) fn unknown_fingerprint(&self) {
        count(&self.unknown_fingerprint, 1);
    }

    pub(super) fn replay_heavy(&self) {
        count(&self.replay_heavy, 1);
    }
}

fn by_op(op: &'static str) -> Label {
    Label::from_static_parts("op", op)
}

fn count(key: &Key, by: u64) {
    let counter: Counter = with_recorder(|recorder| recorder.register_counter(key, &ORIGIN));
    counter.increment(by);
}

fn measure(key: &Key, took: Duration) {
    let histogram: Histogram = with_recorder(|recorder| recorder.register_histogram(key, &ORIGIN));
    histogram.record(took);
}

fn gauge_of(key: &Key) -> Gauge {
    with_recorder(|recorder| recorder.register_gauge(key, &ORIGIN))
}

/// The operations of the store that this program does not know, together.
const OTHERS: &str = "(other)";

/// What the whole store holds in doubt, now. Operations of this runtime that are not named have none. All others become
/// one, since what a store holds is no bound for a label.
pub(super) fn doubts(ours: impl Iterator<Item = &'static str>, found: &[Doubts]) {
    let mut all: Vec<_> = ours.chain(iter::once(OTHERS)).map(|op| (op, 0, Duration::ZERO)).collect();
    for Doubts { op, count, oldest, .. } in found {
        let place = all.iter().position(|(known, ..)| known == op).unwrap_or(all.len() - 1);
        let (_, sum, age) = &mut all[place];
        (*sum, *age) = (*sum + count, (*age).max(*oldest));
    }
    for (op, records, oldest) in all {
        gauge_of(&Key::from_parts(IN_DOUBT.name, vec![by_op(op)])).set(records as f64);
        gauge_of(&Key::from_parts(OLDEST.name, vec![by_op(op)])).set(oldest);
    }
}

/// One purge, or one portion of it.
pub(crate) fn purged(records: u64, answers: u64, took: Duration) {
    count(&Key::from_static_name(PURGED_RECORDS.name), records);
    count(&Key::from_static_name(PURGED_ANSWERS.name), answers);
    measure(&Key::from_static_name(PURGE.name), took);
}

/// A purge that removed nothing. `reason` is one of [`purge::REASONS`].
pub(crate) fn purge_refused(reason: &'static str) {
    count(&purge_refusals(reason), 1);
}

fn purge_refusals(reason: &'static str) -> Key {
    Key::from_parts(PURGE_REFUSALS.name, vec![Label::from_static_parts("reason", reason)])
}

/// As [`Meters::begin_at_zero`], for what is of no operation.
pub(super) fn begin_at_zero() {
    [&PURGED_RECORDS, &PURGED_ANSWERS].into_iter().for_each(|metric| count(&Key::from_static_name(metric.name), 0));
    purge::REASONS.into_iter().for_each(|reason| count(&purge_refusals(reason), 0));
}
