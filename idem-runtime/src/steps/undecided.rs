//! Whether the next run could go on.

use std::time::Duration;

use crate::store::{Resolution, Step, StepKind};

/// The steps, as words, at which a run that went on by this decision would end in doubt: begun and without a result, not to be
/// run again or too late for that, and nothing is decided about them. `window`: for how long providers know a step.
pub(crate) fn undecided(steps: &[Step], to: &Resolution, window: Duration) -> Option<String> {
    let stops = |step: &&Step| match step.kind {
        _ if step.result.is_some() => false,
        StepKind::Run => step.age >= window,
        StepKind::Transaction => false,
        StepKind::Once | StepKind::Unknown(_) => true,
    };
    let undecided = |step: &&Step| to.decisions().all(|(name, _)| name != step.name);
    let names: Vec<&str> = steps.iter().filter(stops).filter(undecided).map(|step| &*step.name).collect();
    (!names.is_empty()).then(|| format!("`{}`", names.join("`, `")))
}
