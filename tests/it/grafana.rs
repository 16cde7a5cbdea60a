//! `examples/grafana` speaks of metrics that there are, with labels that they have.

use std::collections::BTreeSet;

use serde_json::Value;

const DASHBOARD: &str = include_str!("../../examples/grafana/dashboard.json");
const ALERTS: &str = include_str!("../../examples/grafana/alerts.yaml");

/// What exists, with its labels.
const COUNTERS_AND_GAUGES: [(&str, &[&str]); 13] = [
    ("idem_requests_total", &["op", "outcome"]),
    ("idem_in_flight", &["op"]),
    ("idem_in_doubt", &["op"]),
    ("idem_in_doubt_oldest_seconds", &["op"]),
    ("idem_fence_rejected_total", &["op"]),
    ("idem_unprotected_total", &["op"]),
    ("idem_unknown_fingerprint_total", &["op"]),
    ("idem_replay_heavy_scopes_total", &["op"]),
    ("idem_recoveries_total", &["op", "outcome"]),
    ("idem_resumptions_total", &["op", "outcome"]),
    ("idem_purged_records_total", &[]),
    ("idem_purged_answers_total", &[]),
    ("idem_purge_refusals_total", &["reason"]),
];

/// As Prometheus has them: `.._bucket`, with the label `le`, `.._sum` and `.._count`.
const HISTOGRAMS: [(&str, &[&str]); 4] = [
    ("idem_claim_seconds", &["op"]),
    ("idem_finish_seconds", &["op"]),
    ("idem_body_seconds", &["op"]),
    ("idem_purge_seconds", &[]),
];

/// The values of `outcome`.
const OUTCOMES: [&str; 25] = [
    "executed",
    "unrecorded",
    "replayed",
    "accepted",
    "mismatch",
    "in_progress",
    "in_doubt",
    "result_expired",
    "result_unavailable",
    "missing_key",
    "invalid_key",
    "replay_forbidden",
    "store_unavailable",
    "draining",
    "timed_out",
    "panicked",
    "fenced",
    "transaction_failed",
    "unprotected",
    "bypassed",
    "rejected",
    "released",
    "rejected_kept",
    "held",
    "resumable",
];

/// The values of `outcome` of `idem_recoveries_total`.
const RECOVERED: [&str; 7] = ["completed", "not_applied", "resumed", "still_unknown", "quarantined", "failed", "lost"];

/// The labels of what a query calls `name`; `None` if there is no such metric.
fn labels(name: &str) -> Option<Vec<&'static str>> {
    let is = |(metric, _): &&(&str, _)| *metric == name;
    if let Some((_, labels)) = COUNTERS_AND_GAUGES.iter().find(is) {
        return Some(labels.to_vec());
    }
    HISTOGRAMS.iter().find_map(|(metric, labels)| match name.strip_prefix(metric)? {
        "_bucket" => Some([labels, &["le"][..]].concat()),
        "_sum" | "_count" => Some(labels.to_vec()),
        _ => None,
    })
}

/// The words of a query, without those in quotes.
fn words(expr: &str) -> Vec<&str> {
    let unquoted = expr.split('"').step_by(2);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    unquoted.flat_map(|part| part.split(move |c| !is_word(c))).filter(|word| !word.is_empty()).collect()
}

/// What stands in quotes after `label=` or `label=~`, one by one.
fn values<'a>(expr: &'a str, label: &str) -> Vec<&'a str> {
    let parts: Vec<_> = expr.split('"').collect();
    let named = |before: &str| before.trim_end_matches(['=', '~', '!']).ends_with(label);
    parts.windows(2).step_by(2).filter(|pair| named(pair[0])).flat_map(|pair| pair[1].split('|')).collect()
}

/// Checks a query, and returns the metrics that it asks for.
fn metrics(expr: &str) -> BTreeSet<String> {
    let names: BTreeSet<_> = words(expr).into_iter().filter(|word| word.starts_with("idem_")).collect();
    assert!(!names.is_empty(), "asks for nothing of ours: {expr}");
    let known: Vec<_> =
        names.iter().map(|name| labels(name).unwrap_or_else(|| panic!("there is no {name}: {expr}"))).collect();
    for word in words(expr).into_iter().filter(|word| ["op", "outcome", "reason", "le"].contains(word)) {
        assert!(known.iter().all(|labels| labels.contains(&word)), "no label `{word}`: {expr}");
    }
    let outcomes = if names.contains("idem_recoveries_total") { &RECOVERED[..] } else { &OUTCOMES };
    for outcome in values(expr, "outcome") {
        assert!(outcomes.contains(&outcome), "no outcome `{outcome}`: {expr}");
    }
    names.into_iter().map(str::to_owned).collect()
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_else(|| panic!("no `{member}` in {value}"))
}

#[test]
fn the_dashboard_shows_every_metric_and_nothing_else() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels: Vec<_> =
        dashboard["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row").collect();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    let titles: BTreeSet<_> = panels.iter().map(|panel| (text(panel, "type"), text(panel, "title"))).collect();
    assert_eq!((ids.len(), titles.len()), (panels.len(), panels.len()), "each its own id and title");
    let mut shown = BTreeSet::new();
    for panel in &panels {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "the one that is chosen at the top");
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}");
            shown.extend(metrics(text(target, "expr")));
        }
    }
    let simple = COUNTERS_AND_GAUGES.iter().map(|(metric, _)| (*metric).to_owned());
    let all: BTreeSet<_> = simple.chain(HISTOGRAMS.iter().map(|(metric, _)| format!("{metric}_bucket"))).collect();
    assert_eq!(shown, all);
}

#[test]
fn the_dashboard_s_panels_do_not_lie_on_each_other() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut taken = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let at = |side: &str| panel["gridPos"][side].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{panel}");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(taken.insert((x, y)), "{}", text(panel, "title"));
            }
        }
    }
}

#[test]
fn every_alert_says_what_it_is_and_what_to_do() {
    let file: Value = serde_saphyr::from_str(ALERTS).unwrap();
    let groups = file["groups"].as_array().unwrap();
    let rules: Vec<_> = groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).collect();
    let names: BTreeSet<_> = rules.iter().map(|rule| text(rule, "alert")).collect();
    assert_eq!(names.len(), rules.len(), "each its own name");
    for rule in rules {
        metrics(text(rule, "expr"));
        assert!(["critical", "warning", "info"].contains(&text(&rule["labels"], "severity")), "{rule}");
        for annotation in ["summary", "runbook"] {
            assert!(text(&rule["annotations"], annotation).len() > 20, "{rule}");
        }
    }
}

/// The checks above find what they are for.
#[test]
fn a_query_of_something_else_is_found() {
    for (expr, fault) in [
        ("rate(idem_request_total[5m])", "there is no idem_request_total"),
        ("idem_claim_seconds", "there is no idem_claim_seconds"),
        ("sum by (op) (idem_purged_records_total)", "no label `op`"),
        ("idem_requests_total{outcome=~\"replayed|repeated\"}", "no outcome `repeated`"),
        ("idem_recoveries_total{outcome=\"replayed\"}", "no outcome `replayed`"),
        ("up == 0", "nothing of ours"),
    ] {
        let panic = std::panic::catch_unwind(|| metrics(expr)).unwrap_err();
        let told = panic.downcast_ref::<String>().unwrap();
        assert!(told.contains(fault), "{told}");
    }
}
