//! What the runtime has seen: metrics, the span of each call, how long bodies run, whose clients retry too much.
//!
//! The one room that names metrics and spans; the others say what happened, in words. What a reader of dashboards needs
//! to know stands in `docs/observing.md`.

mod ending;
mod meters;
mod pace;
mod recovered;
mod replays;
mod resumed;
#[cfg(test)]
mod tests;
mod watch;

use std::{collections::HashMap, sync::Arc};

pub(crate) use self::meters::{purge_refused, purged};
pub(crate) use self::{
    ending::Ending,
    pace::Pace,
    recovered::Recovered,
    resumed::Resumed,
    watch::{Running, Watch},
};
use self::{meters::Meters, replays::Replays};
use crate::{key::Scope, store::Doubts};

/// What one runtime watches with.
pub(crate) struct Observer {
    operations: HashMap<&'static str, Arc<Meters>>,
    replays: Replays,
}

impl Observer {
    /// For these operations; says what each metric means to whoever records them.
    pub(crate) fn new(ops: impl IntoIterator<Item = &'static str>) -> Arc<Self> {
        meters::describe();
        meters::begin_at_zero();
        let operations = ops.into_iter().map(|op| (op, Arc::new(Meters::new(op)))).collect();
        Arc::new(Self { operations, replays: Replays::default() })
    }

    /// Watches one call, from here to its answer. Without a scope where none could be read.
    pub(crate) fn watch(self: &Arc<Self>, op: &'static str, scope: Option<&Scope>) -> Watch {
        Watch::new(Arc::clone(self), self.meters(op), scope)
    }

    /// Watches somebody who fetches a result: no call of the operation, and so not counted as one.
    pub(crate) fn fetch(self: &Arc<Self>, op: &'static str) -> Watch {
        Watch::uncounted(Arc::clone(self), self.meters(op))
    }

    /// What the whole store holds in doubt, now.
    pub(crate) fn doubts(&self, found: &[Doubts]) {
        meters::doubts(self.operations.keys().copied(), found);
    }

    /// What a recovery hook was asked, and what came of it.
    pub(crate) fn recovered(&self, op: &'static str, recovered: Recovered) {
        self.meters(op).recovered(recovered);
    }

    /// An interrupted operation was called again, and what came of it.
    pub(crate) fn resumed(&self, op: &'static str, resumed: Resumed) {
        self.meters(op).resumed(resumed);
    }

    fn meters(&self, op: &'static str) -> Arc<Meters> {
        let known = self.operations.get(op).map(Arc::clone);
        known.unwrap_or_else(|| Arc::new(Meters::new(op))) // one that this runtime does not serve
    }
}
