//! A process that kills itself at a moment of its own.

use std::{
    process::abort,
    sync::atomic::{AtomicU32, Ordering},
};

use idem_runtime::store::StoreError;

use crate::forwarding::{Between, Verb};

/// Each verb of a request has two moments: before it is sent, and when it has happened, before anybody is told.
pub(crate) struct Dying {
    at: u32,
    moments: AtomicU32,
}

impl Dying {
    /// Moments are counted from 1.
    pub(crate) fn new(at: u32) -> Self {
        Self { at, moments: AtomicU32::new(0) }
    }

    fn moment(&self) {
        if self.moments.fetch_add(1, Ordering::SeqCst) + 1 == self.at {
            abort(); // as SIGKILL: nothing is put in order, and nobody is told
        }
    }
}

impl Between for Dying {
    async fn send<T: Send>(
        &self,
        verb: Verb,
        ask: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        if !is_of_a_request(verb) {
            return ask.await;
        }
        self.moment();
        let answer = ask.await;
        self.moment();
        answer
    }
}

/// Not those that only look, or come by themselves.
fn is_of_a_request(verb: Verb) -> bool {
    use Verb::{
        Begin, BeginStep, Claim, Commit, CommitStep, EndSteps, Find, Finish, Interrupted, Link, Peek, Purge, Recover,
        Renew, Resolve, StartSteps, Steps, Survey,
    };
    match verb {
        Claim | Finish | Link | Begin | Commit | StartSteps | EndSteps | Steps | BeginStep | CommitStep => true,
        Peek | Renew | Find | Resolve | Survey | Recover | Interrupted | Purge => false,
    }
}
