//! `GET /metrics`, as Prometheus reads it.

use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// From a local claim of a millisecond to a provider that takes a minute; seconds.
const BUCKETS: [f64; 13] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0];
/// What nobody fetches is summed up this often, so that it does not pile up.
const UPKEEP: Duration = Duration::from_secs(5);

/// What has been recorded since the start.
#[derive(Clone)]
pub(crate) struct Metrics(PrometheusHandle);

impl Metrics {
    /// Records everything from here on: first of all, since the runtime tells the recorder what its metrics mean.
    pub(crate) fn install() -> Result<Self, BuildError> {
        let seconds = Matcher::Suffix("_seconds".to_owned());
        Ok(Self(PrometheusBuilder::new().set_buckets_for_metric(seconds, &BUCKETS)?.install_recorder()?))
    }

    pub(crate) fn render(&self) -> String {
        self.0.render()
    }

    /// Never ends; drop it when the program does.
    pub(crate) async fn keep_up(self) {
        loop {
            tokio::time::sleep(UPKEEP).await;
            self.0.run_upkeep();
        }
    }
}
