//! Whether a step that was begun, and has no result, may go on; and so whether the next run could.

use std::time::Duration;

use crate::store::{Resolution, Step, StepKind};

/// Why a run that comes to a step which was begun so long ago, and has no result, must not begin it again. `window`: for how
/// long providers know a step.
pub(crate) fn why_not_again(kind: StepKind, age: Duration, window: Duration) -> Option<&'static str> {
    match kind {
        StepKind::Run if age < window => None,
        StepKind::Run => Some(
            "an earlier run has begun it longer ago than `provider_window`, so its provider may have forgotten its key",
        ),
        // Its rows went with it.
        StepKind::Transaction => None,
        StepKind::Once | StepKind::Unknown(_) => {
            Some("an earlier run has begun it and not said what it came to, and it must not be run again")
        }
    }
}

/// The steps, as words, at which a run that went on by this decision would end in doubt: nothing is decided about them.
pub(crate) fn undecided(steps: &[Step], to: &Resolution, window: Duration) -> Option<String> {
    let stops = |step: &&Step| step.is_open() && why_not_again(step.kind, step.age, window).is_some();
    let undecided = |step: &&Step| to.decisions().all(|(name, _)| name != step.name);
    let names: Vec<&str> = steps.iter().filter(stops).filter(undecided).map(|step| &*step.name).collect();
    (!names.is_empty()).then(|| format!("`{}`", names.join("`, `")))
}
