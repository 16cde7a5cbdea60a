use std::{collections::BTreeMap, time::Duration};

use metrics::{Unit, with_local_recorder};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

use super::{Ending, Observer, meters, purge_refused, purged};
use crate::{key::RecordId, state::Reason, store::Doubts};

const DOCUMENTED: &str = include_str!("../docs/observing.md");

/// What is recorded meanwhile, as `name{label=value,..}`; of a histogram how many values.
fn recorded(what: impl FnOnce()) -> BTreeMap<String, f64> {
    let recorder = DebuggingRecorder::new();
    with_local_recorder(&recorder, what);
    let snapshot = recorder.snapshotter().snapshot().into_vec();
    let metrics = snapshot.into_iter().map(|(key, unit, says, value)| {
        let (_, key) = key.into_parts();
        assert_eq!((unit.is_some(), says.is_some()), (true, true), "{key} is described");
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let value = match value {
            DebugValue::Counter(n) => n as f64,
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Histogram(values) => values.len() as f64,
        };
        (format!("{}{{{}}}", key.name(), labels.join(",")), value)
    });
    metrics.collect()
}

#[test]
fn every_metric_and_every_outcome_is_documented_once() {
    for metric in meters::ALL {
        let row = format!("\n| `{}` | ", metric.name);
        assert_eq!(DOCUMENTED.matches(&row).count(), 1, "{row}");
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let unit = if metric.unit == Unit::Seconds { ", s" } else { "" };
        assert!(DOCUMENTED.contains(&format!("{row}{kind}{unit} | ")), "{row}{kind}{unit}");
    }
    for ending in Ending::ALL {
        let row = format!("\n| `{}` | ", ending.as_str());
        let fields = ["replayed"].iter().filter(|field| **field == ending.as_str()).count();
        assert_eq!(DOCUMENTED.matches(&row).count(), 1 + fields, "{row}");
    }
    assert_eq!(DOCUMENTED.matches("\n| `idem_").count(), meters::ALL.len(), "and nothing else is");
}

#[test]
fn every_reason_is_documented_with_its_number() {
    let reasons = (1..100).filter_map(Reason::from_code).filter(|reason| !matches!(reason, Reason::Unknown(_)));
    let rows: Vec<String> = reasons.map(|reason| format!("\n| `{reason:?}` | {} | ", reason.code())).collect();
    assert_eq!(rows.len(), 12);
    for row in &rows {
        assert_eq!(DOCUMENTED.matches(row).count(), 1, "{row}");
    }
    let (_, section) = DOCUMENTED.split_once("\n# Reasons\n").unwrap();
    let ended = section.lines().find(|line| line.starts_with("After ")).unwrap();
    for reason in (1..8).filter_map(Reason::from_code) {
        assert_eq!(ended.contains(&format!("`{reason:?}`")), !reason.body_has_ended(), "{reason:?}");
    }
}

#[test]
fn each_ending_has_a_number_and_a_name_of_its_own() {
    for (n, ending) in Ending::ALL.into_iter().enumerate() {
        assert_eq!(ending as usize, n);
        let seen = recorded(|| Observer::new(["op"]).watch("op", None).end(ending));
        assert_eq!(seen[&format!("idem_requests_total{{op=op,outcome={}}}", ending.as_str())], 1.0);
    }
}

#[test]
fn each_outcome_of_a_recovery_has_a_number_and_a_name_of_its_own() {
    for (n, recovered) in super::Recovered::ALL.into_iter().enumerate() {
        assert_eq!(recovered as usize, n);
        assert!(DOCUMENTED.contains(&format!("`{}`", recovered.as_str())));
        let seen = recorded(|| Observer::new(["op"]).recovered("op", recovered));
        assert_eq!(seen[&format!("idem_recoveries_total{{op=op,outcome={}}}", recovered.as_str())], 1.0);
    }
}

#[test]
fn a_call_ends_once_and_one_that_nobody_ends_was_left() {
    let seen = recorded(|| {
        let observer = Observer::new(["op"]);
        let watch = observer.watch("op", None);
        watch.clone().end(Ending::Executed);
        watch.end(Ending::Replayed);
        drop(observer.watch("of another runtime", None));
    });
    let of = |op, outcome| (format!("idem_requests_total{{op={op},outcome={outcome}}}"), 1.0);
    let (counted, there): (BTreeMap<_, _>, BTreeMap<_, _>) = seen.into_iter().partition(|(_, value)| *value > 0.0);
    assert_eq!(counted, BTreeMap::from([of("op", "executed"), of("of another runtime", "left")]));
    for first in ["idem_requests_total{op=op,outcome=unrecorded}", "idem_fence_rejected_total{op=op}"] {
        assert_eq!(there.get(first), Some(&0.0), "a counter that is born at 1 has not risen");
    }
}

#[test]
fn doubts_are_set_for_every_operation_and_those_of_strangers_are_one() {
    let secs = Duration::from_secs;
    let looked = |found: &[(&str, u64, Duration)]| {
        let found: Vec<_> = found
            .iter()
            .map(|&(op, count, oldest)| Doubts { op: op.to_owned(), count, oldest, record: RecordId::from([7; 16]) })
            .collect();
        let seen = recorded(|| Observer::new(["charge", "payout"]).doubts(&found));
        ["charge", "payout", "(other)"].map(|op| {
            let of = |name| seen[&format!("{name}{{op={op}}}")];
            (of("idem_in_doubt"), of("idem_in_doubt_oldest_seconds"))
        })
    };
    let seen = looked(&[("charge", 1, secs(3)), ("theirs", 2, secs(10)), ("theirs.too", 3, secs(7))]);
    assert_eq!(seen, [(1.0, 3.0), (0.0, 0.0), (5.0, 10.0)]);
    assert_eq!(looked(&[]), [(0.0, 0.0); 3], "set, so that what is gone is gone");
}

#[test]
fn a_purge_is_counted() {
    let seen = recorded(|| {
        drop(Observer::new(None));
        purged(7, 9, Duration::from_millis(20));
        purge_refused("clock_jumped");
    });
    let names = [
        "idem_purged_records_total{}",
        "idem_purged_answers_total{}",
        "idem_purge_seconds{}",
        "idem_purge_refusals_total{reason=clock_jumped}",
    ];
    assert_eq!(names.map(|name| seen[name]), [7.0, 9.0, 1.0, 1.0]);
}
