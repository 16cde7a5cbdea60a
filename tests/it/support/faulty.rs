//! A store that fails when told to, and counts what it is asked.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use idem_runtime::store::{Claim, Store, StoreError};

use super::forwarding::{Between, Forwarding, Verb};

/// Wraps stores; clones share their faults and counts.
#[derive(Clone, Default)]
pub(crate) struct Faulty {
    verbs: Arc<Mutex<HashMap<Verb, Told>>>,
}

#[derive(Default, Clone, Copy)]
struct Told {
    calls: usize,
    fault: Option<Fault>,
}

/// How a verb fails.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// The store cannot be reached: nothing happens.
    Down,
    /// It happens, but the reply is lost, so many times.
    ReplyLost(usize),
    /// It fails so many times, then works.
    Fails(usize),
    /// It happens after a while.
    Slow(Duration),
    /// It happens at once, but the reply takes this long.
    ReplySlow(Duration),
    /// It panics once, then works.
    Panics,
    /// Claims only: it fails at once, and each happens after all, this much later.
    Late(Duration),
}

enum Then {
    Ask,
    AskAndFail,
    AskAndWait(Duration),
    Fail,
    Panic,
}

impl Faulty {
    /// The store with these faults.
    pub(crate) fn around(&self, inner: Arc<dyn Store>) -> Forwarding<Self> {
        Forwarding::new(inner, self.clone())
    }

    pub(crate) fn tell(&self, verb: Verb, fault: Fault) {
        self.verbs.lock().unwrap().entry(verb).or_default().fault = Some(fault);
    }

    /// Every verb fails until `heal`.
    pub(crate) fn down(&self) {
        use Verb::{
            Begin, Claim, Commit, Find, Finish, Interrupted, Link, Peek, Purge, Recover, Renew, Resolve, Survey,
        };
        let all = [Claim, Peek, Finish, Renew, Link, Find, Resolve, Survey, Recover, Interrupted, Purge, Begin, Commit];
        for verb in all {
            self.tell(verb, Fault::Down);
        }
    }

    pub(crate) fn heal(&self) {
        self.verbs.lock().unwrap().values_mut().for_each(|told| told.fault = None);
    }

    /// How often a verb was called.
    pub(crate) fn calls(&self, verb: Verb) -> usize {
        self.verbs.lock().unwrap().get(&verb).map_or(0, |told| told.calls)
    }

    async fn before(&self, verb: Verb) -> Then {
        let (then, pause) = {
            let mut verbs = self.verbs.lock().unwrap();
            let told = verbs.entry(verb).or_default();
            told.calls += 1;
            match told.fault {
                None => (Then::Ask, None),
                Some(Fault::Down) => (Then::Fail, None),
                Some(Fault::Slow(pause)) => (Then::Ask, Some(pause)),
                Some(Fault::ReplySlow(pause)) => (Then::AskAndWait(pause), None),
                Some(Fault::Panics) => {
                    told.fault = None;
                    (Then::Panic, None)
                }
                Some(Fault::Late(_)) => (Then::Fail, None),
                Some(Fault::Fails(n)) => {
                    told.fault = (n > 1).then_some(Fault::Fails(n - 1));
                    (Then::Fail, None)
                }
                Some(Fault::ReplyLost(n)) => {
                    told.fault = (n > 1).then_some(Fault::ReplyLost(n - 1));
                    (Then::AskAndFail, None)
                }
            }
        };
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
        then
    }
}

impl Between for Faulty {
    async fn send<T: Send>(
        &self,
        verb: Verb,
        ask: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        match self.before(verb).await {
            Then::Ask => ask.await,
            Then::Fail => Err(StoreError::unavailable("the test says so")),
            Then::AskAndWait(pause) => {
                let answer = ask.await;
                tokio::time::sleep(pause).await;
                answer
            }
            Then::Panic => panic!("the test says so"),
            Then::AskAndFail => {
                ask.await?;
                Err(StoreError::unavailable("the test lost the reply"))
            }
        }
    }

    fn claiming(&self, inner: &Arc<dyn Store>, claims: &[Claim]) {
        if let Some(Fault::Late(by)) = self.verbs.lock().unwrap().get(&Verb::Claim).and_then(|told| told.fault) {
            let (inner, claims) = (Arc::clone(inner), claims.to_vec());
            tokio::spawn(async move {
                tokio::time::sleep(by).await;
                inner.claim(&claims).await
            });
        }
    }
}
