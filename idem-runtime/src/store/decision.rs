//! What an operator, or a recovery hook, decides about single steps.

use std::fmt;

use bytes::Bytes;
use serde::Serialize;

use super::{Resolution, Step};

/// What is decided about steps that were begun and never ended, when their operation is to go on:
/// [`Resolution::ResumeWith`], [`Recovery::ResumeWith`](crate::Recovery::ResumeWith).
///
/// ```
/// # fn main() -> Result<(), serde_json::Error> {
/// use idem_runtime::{Resolution, StepDecision, StepDecisions};
///
/// // The fax company has it in its list; the letter was never handed in.
/// let decided = StepDecisions::new().step("fax", StepDecision::done(&"fx_17")?).step("letter", StepDecision::NotDone);
/// let how = Resolution::ResumeWith(decided);
/// # drop(how); Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepDecisions(Vec<(String, StepDecision)>);

/// What became of a step, or is to become of it. Its `Debug` shows the size of a result only.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepDecision {
    /// It has happened, and this is its result, as JSON: the next run gets it instead of calling the step. Made by
    /// [`done`](Self::done).
    Done(Bytes),
    /// Surely it did not happen, and nothing that was sent will still make it happen; or its provider still knows its
    /// [`StepKey`](crate::StepKey). The next run calls it as if for the first time, with the same key. On the conditions of
    /// [`Resolution::Release`]: no run can act any more.
    NotDone,
    /// The next run is to find out, by `once_or_find`: refused for a step that is none. Not for a hook, which can ask the provider itself, and would otherwise
    /// send the operation round for as long as nothing is found.
    AskAgain,
}

impl StepDecisions {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// And this about the step of this name. Of several about one step the last counts.
    #[must_use]
    pub fn step(mut self, name: impl Into<String>, decision: StepDecision) -> Self {
        let name = name.into();
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, decision));
        self
    }

    /// All of them, each name once.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &StepDecision)> {
        self.0.iter().map(|(name, decision)| (name.as_str(), decision))
    }

    /// What is decided about this step.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<&StepDecision> {
        self.iter().find(|(known, _)| *known == name).map(|(_, decision)| decision)
    }
}

impl StepDecision {
    /// It has happened, with this result: of the type that the body's step returns, or the next run cannot read it.
    ///
    /// # Errors
    /// The encoder's, if the value cannot be written as JSON.
    pub fn done<T: Serialize + ?Sized>(result: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_vec(result).map(|bytes| Self::Done(bytes.into()))
    }
}

impl Resolution {
    /// What it says of single steps.
    pub fn decisions(&self) -> impl Iterator<Item = (&str, &StepDecision)> {
        let decisions = if let Self::ResumeWith(decisions) = self { Some(decisions) } else { None };
        decisions.into_iter().flat_map(StepDecisions::iter)
    }

    /// Something that a run may have done is to be done anew, so no run may act any more: what
    /// [`Event::ResolveReleased`](crate::state::Event::ResolveReleased) asks of the record holds for this decision, too.
    #[must_use]
    pub fn does_anew(&self) -> bool {
        matches!(self, Self::Release) || self.decisions().any(|(_, decision)| *decision == StepDecision::NotDone)
    }

    /// It may be taken about a record that has these steps in its epoch: nothing is released of which a step has a result, and
    /// decided is only what was begun and has none.
    #[must_use]
    pub fn fits(&self, steps: &[Step]) -> bool {
        let acted = steps.iter().any(|step| !step.is_open());
        !(matches!(self, Self::Release) && acted) && self.not_open(steps).is_none()
    }

    /// A step that it decides about and that is not open.
    pub(crate) fn not_open(&self, steps: &[Step]) -> Option<&str> {
        let open = |name: &str| steps.iter().any(|step| step.name == name && step.is_open());
        self.decisions().map(|(name, _)| name).find(|name| !open(name))
    }

    /// A step whose run is to ask for it, and cannot.
    pub(crate) fn not_asked(&self, steps: &[Step]) -> Option<&str> {
        let asks = self.decisions().filter(|(_, decision)| **decision == StepDecision::AskAgain);
        let deaf = |name: &str| steps.iter().any(|step| step.name == name && !step.may_be_asked());
        asks.map(|(name, _)| name).find(|name| deaf(name))
    }
}

impl fmt::Debug for StepDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(result) => f.debug_struct("Done").field("result_bytes", &result.len()).finish(),
            Self::NotDone => f.write_str("NotDone"),
            Self::AskAgain => f.write_str("AskAgain"),
        }
    }
}
