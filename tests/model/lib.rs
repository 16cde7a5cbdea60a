#![doc = include_str!("README.md")]

mod config;
mod invariant;
mod played;
mod reached;
mod step;
mod store;
mod time;
mod world;

use stateright::{Checker as _, Model as _};

use crate::step::Checked;
pub use crate::{
    config::{A, Compare, Config, CutOff, Dedupe, Mode, Release, Settler},
    invariant::Invariant,
    played::play,
    reached::Reached,
};

/// What the checker found.
#[derive(Debug)]
pub struct Report {
    /// How many different states there are.
    pub states: usize,
    /// What is broken.
    pub broken: Vec<Invariant>,
    /// What was to be reached and was not.
    pub missed: Vec<Reached>,
}

impl Config {
    /// Walks all interleavings.
    #[must_use]
    pub fn check(self, reached: &[Reached]) -> Report {
        let invariants = Invariant::ALL.to_vec();
        let checker = Checked { config: self, invariants, reached: reached.to_vec() }.checker().spawn_bfs().join();
        let found = checker.discoveries();
        Report {
            states: checker.unique_state_count(),
            broken: Invariant::ALL.into_iter().filter(|invariant| found.contains_key(invariant.property().0)).collect(),
            missed: reached.iter().copied().filter(|reached| !found.contains_key(reached.property().0)).collect(),
        }
    }

    /// Walks until `invariant` is broken: the steps to that, as few as possible; `None` if it holds.
    #[must_use]
    pub fn break_it(self, invariant: Invariant) -> Option<String> {
        // One property alone, so that the checker stops at the first state that breaks it.
        let checked = Checked { config: self, invariants: vec![invariant], reached: Vec::new() };
        let path = checked.checker().spawn_bfs().join().discovery(invariant.property().0)?;
        Some(path.into_actions().iter().map(|step| format!("{step:?}")).collect::<Vec<_>>().join(", "))
    }
}
