//! What this thread counts. A `#[tokio::test]` runs server, bodies and client on its one thread, so that is all of a test.

use std::{cell::RefCell, collections::BTreeMap};

use metrics::LocalRecorderGuard;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

/// Collects until dropped.
pub(crate) struct Meters {
    snapshotter: Snapshotter,
    seen: RefCell<BTreeMap<String, Value>>,
    _until_dropped: LocalRecorderGuard<'static>,
}

#[derive(Default, Clone, Copy)]
struct Value {
    now: f64,
    reported: f64,
}

impl Meters {
    pub(crate) fn collect() -> Self {
        let recorder: &'static DebuggingRecorder = Box::leak(Box::default()); // the guard borrows it
        let until_dropped = metrics::set_default_local_recorder(recorder);
        Self { snapshotter: recorder.snapshotter(), seen: RefCell::default(), _until_dropped: until_dropped }
    }

    /// The value of a metric as `name{label=value,..}`; of a histogram how many values. Zero if there is none.
    pub(crate) fn value(&self, metric: &str) -> f64 {
        self.look();
        self.seen.borrow().get(metric).map_or(0.0, |value| value.now)
    }

    /// What has changed since this was last asked, among the metrics whose name and labels begin so.
    pub(crate) fn newly(&self, start: &str) -> Vec<(String, f64)> {
        self.look();
        let mut seen = self.seen.borrow_mut();
        let changed =
            seen.iter_mut().filter(|(metric, value)| metric.starts_with(start) && value.now != value.reported);
        let newly = changed.map(|(metric, value)| {
            let by = value.now - value.reported;
            value.reported = value.now;
            (metric.clone(), by)
        });
        newly.collect()
    }

    /// Every metric with its labels.
    pub(crate) fn all(&self) -> Vec<String> {
        self.look();
        self.seen.borrow().keys().cloned().collect()
    }

    /// A snapshot begins the recorder anew: what it shows is what has come since the last one.
    fn look(&self) {
        let mut seen = self.seen.borrow_mut();
        for (key, _, _, value) in self.snapshotter.snapshot().into_vec() {
            let (_, key) = key.into_parts();
            let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            let metric = format!("{}{{{}}}", key.name(), labels.join(","));
            seen.entry(metric).or_default().now += match value {
                DebugValue::Counter(count) => count as f64,
                DebugValue::Gauge(change) => change.into_inner(),
                DebugValue::Histogram(values) => values.len() as f64,
            };
        }
    }
}
