//! Why a runtime could not be built.

use std::fmt;

/// Every reason why a runtime could not be built. Its `Debug` is its `Display`: `main` shows that.
pub struct BuildError {
    pub(super) faults: Vec<Fault>,
}

impl BuildError {
    /// The faults, in no particular order; at least one.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the idempotency runtime cannot start:")?;
        self.faults.iter().try_for_each(|fault| write!(f, "\n  - {fault}"))
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for BuildError {}

/// One thing that must change before the runtime can start, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(pub(super) String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
