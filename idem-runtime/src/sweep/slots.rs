//! What a look has found is worked on by a few tasks per operation.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

/// So many of a process work for one operation: a provider that hangs keeps nobody else's waiting.
const SLOTS: usize = 8;

/// What is done with what a look has found.
pub(crate) trait Work: Send + Sync + 'static {
    type Found: Send + 'static;

    /// At most so many that nobody else gets meanwhile. `None` if the store fails, or nothing is to be begun any more.
    fn give_out(&self, op: &'static str, limit: usize) -> impl Future<Output = Option<Vec<Self::Found>>> + Send;

    fn work_on(&self, found: Self::Found) -> impl Future<Output = ()> + Send;
}

/// The slots of each operation.
pub(crate) struct Slots {
    by_op: HashMap<&'static str, Arc<Semaphore>>,
    tasks: TaskTracker,
}

impl Slots {
    pub(crate) fn new(ops: impl IntoIterator<Item = &'static str>, tasks: TaskTracker) -> Self {
        let by_op = ops.into_iter().map(|op| (op, Arc::new(Semaphore::new(SLOTS)))).collect();
        Self { by_op, tasks }
    }

    /// As many as there are slots; `false` if none are given out. Where there are more, each slot goes on until there are
    /// none: what an outage leaves must not wait for one look per handful.
    pub(crate) async fn fill<W: Work>(&self, op: &'static str, work: &Arc<W>) -> bool {
        let Some(slots) = self.by_op.get(op) else { return true };
        let free = slots.available_permits();
        if free == 0 {
            return true;
        }
        let Some(found) = work.give_out(op, free).await else { return false };
        let more = found.len() == free;
        for first in found {
            let Ok(permit) = Arc::clone(slots).try_acquire_owned() else { break }; // never: only this takes them
            let work = Arc::clone(work);
            self.tasks.spawn(async move {
                let mut next = Some(first);
                while let Some(found) = next {
                    work.work_on(found).await;
                    next = if more { work.give_out(op, 1).await.and_then(|mut found| found.pop()) } else { None };
                }
                drop(permit);
            });
        }
        true
    }
}
