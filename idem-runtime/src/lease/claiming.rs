//! Claims on their way to the store: one, or those of a batch in one statement.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{Guard, Held, Lease, RETRY, Stage, warn};
use crate::{
    Runtime,
    call::Call,
    store::{Attempt, Claim, Claimed, Found, StoreError, StoreErrorKind},
};

/// Dropped, those are given back that the store has granted.
pub(crate) struct Claiming {
    runtime: Runtime,
    began: Instant,
    guards: Vec<Guard>,
}

/// What the store said to a claim.
pub(crate) enum Told {
    Granted(Box<Lease>),
    Found(Found),
}

impl Claiming {
    /// Claims that are about to be sent; no record twice, and in the order of the records, so that two such slices never
    /// wait for each other. The clock runs from here.
    pub(crate) fn new(runtime: Runtime, calls: Vec<Call>) -> Self {
        let began = Instant::now();
        let guard = |call| Guard {
            held: Arc::new(Held::new(&call, began)),
            call,
            _alive: runtime.bodies().token(),
            runtime: runtime.clone(),
        };
        Self { began, guards: calls.into_iter().map(guard).collect(), runtime }
    }

    /// Sends the claims; once more, with the same attempts, if the reply is lost. The answers are in the order of the calls.
    pub(crate) async fn send(self) -> Result<Vec<Told>, StoreError> {
        let claimed = self.claim().await;
        let took = self.began.elapsed();
        if let Some(first) = self.guards.first() {
            first.call.watch.claim_took(took);
        }
        Ok(self.guards.into_iter().zip(claimed?).map(|(guard, claimed)| guard.told(claimed, took)).collect())
    }

    async fn claim(&self) -> Result<Vec<Claimed>, StoreError> {
        let Self { runtime, guards, .. } = self;
        let claims: Vec<Claim> = guards.iter().map(|guard| runtime.claim(&guard.call, guard.held.attempt)).collect();
        match runtime.ask_all(claims.len(), runtime.store().claim(&claims)).await {
            Ok(claimed) => Ok(claimed),
            Err(error) if error.kind == StoreErrorKind::Overloaded => {
                guards.iter().for_each(|guard| guard.held.progress().stage = Stage::Over); // nothing was sent
                Err(error)
            }
            Err(error) => {
                self.warn(&error, "claim failed, sending it again");
                tokio::time::sleep(RETRY.0).await; // the clock runs on: the first try may be the one that counted
                let again = runtime.ask_all(claims.len(), runtime.store().claim(&claims)).await;
                again.inspect_err(|error| self.warn(error, "claim failed; the request is refused and nothing runs"))
            }
        }
    }

    fn warn(&self, error: &StoreError, what: &'static str) {
        if let Some(first) = self.guards.first() {
            warn(&first.call, error, what);
        }
    }
}

impl Guard {
    /// The store has answered.
    fn told(self, claimed: Claimed, took: Duration) -> Told {
        match claimed {
            Claimed::Owner(owned) => {
                {
                    let mut progress = self.held.progress();
                    (progress.stage, progress.continues) = (Stage::Owned, owned.continues());
                }
                self.runtime.leases().hold(Arc::clone(&self.held));
                Told::Granted(Box::new(Lease { guard: self, owned }))
            }
            Claimed::Found(found) => {
                self.held.progress().stage = Stage::Over; // nothing to give back
                Told::Found(found.aged(took))
            }
        }
    }
}

impl Runtime {
    pub(crate) fn claim(&self, call: &Call, attempt: Attempt) -> Claim {
        let rules = self.rules(call.operation);
        Claim {
            record: call.record,
            scope: Arc::clone(&call.scope),
            op: call.operation.op,
            attempt,
            fingerprint: call.fingerprint,
            lease: self.leases().length,
            ttl: rules.ttl,
            guard: rules.guard,
            rerun: self.config().rerun_window(call.operation),
            input: call.input.clone(),
        }
    }
}
