//! Why a runtime could not be built.

use std::fmt;

use super::Config;
use crate::operation::Operation;

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

/// Where a transaction keeps every other writer waiting: a lease is renewed when a third of it is over.
pub(super) fn keeps_renewals_waiting(config: &Config, operation: &Operation) -> Option<String> {
    let limit = match operation {
        Operation { steps: true, .. } => config.transaction_timeout, // of each step
        Operation { transaction: Some(_), .. } => operation.timeout.or(config.transaction_timeout),
        _ => None,
    }?;
    (limit > config.lease / 3).then(|| {
        format!(
            "`{}` at {}: a `Tx` holds the store's only write lock, also while leases are to be renewed, and this one may \
             for {limit:?}; its `timeout` (or `transaction_timeout`) must be at most a third of `lease`, and better well below",
            operation.op, operation.place,
        )
    })
}
