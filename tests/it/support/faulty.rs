//! A store that fails when told to, and counts what it is asked.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use idem_runtime::{
    Record, RecordId,
    store::{
        Begin, Begun, Claim, Claimed, Commit, Committed, Due, EndStep, Filter, Finish, Finished, Found, Link,
        OpenTransaction, Page, Peek, Purge, Purged, PutOff, Recover, Recovering, Renewal, Renewed, Resolve, Resume,
        Resuming, StartStep, Started, Step, StepBegun, StepEnded, Store, StoreError, Strip, Stripped, Survey,
        Transactions,
    },
};

/// Wraps a store; clones share their faults and counts.
#[derive(Clone)]
pub(crate) struct Faulty {
    inner: Arc<dyn Store>,
    verbs: Arc<Mutex<HashMap<Verb, Told>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    Claim,
    Peek,
    Finish,
    Renew,
    Link,
    /// All that operators look with.
    Find,
    Resolve,
    Survey,
    /// All that recoveries do to take and put off.
    Recover,
    Interrupted,
    /// All that looks for records that are over.
    Purge,
    Begin,
    Commit,
    StartSteps,
    EndSteps,
    /// Reads them.
    Steps,
    BeginStep,
    CommitStep,
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
    pub(crate) fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, verbs: Arc::default() }
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

    async fn go<T>(&self, verb: Verb, ask: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
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
}

#[async_trait::async_trait]
impl Store for Faulty {
    async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>, StoreError> {
        if let Some(Fault::Late(by)) = self.verbs.lock().unwrap().get(&Verb::Claim).and_then(|told| told.fault) {
            let (inner, claims) = (Arc::clone(&self.inner), claims.to_vec());
            tokio::spawn(async move {
                tokio::time::sleep(by).await;
                inner.claim(&claims).await
            });
        }
        self.go(Verb::Claim, self.inner.claim(claims)).await
    }
    async fn peek(&self, peeks: &[Peek]) -> Result<Vec<Option<Found>>, StoreError> {
        self.go(Verb::Peek, self.inner.peek(peeks)).await
    }
    async fn finish(&self, finishes: &[Finish]) -> Result<Vec<Finished>, StoreError> {
        self.go(Verb::Finish, self.inner.finish(finishes)).await
    }
    async fn renew(&self, renewals: &[Renewal], lease: Duration) -> Result<Vec<Renewed>, StoreError> {
        self.go(Verb::Renew, self.inner.renew(renewals, lease)).await
    }
    async fn link(&self, links: &[Link]) -> Result<(), StoreError> {
        self.go(Verb::Link, self.inner.link(links)).await
    }
    async fn find(&self, record: RecordId) -> Result<Option<Record>, StoreError> {
        self.go(Verb::Find, self.inner.find(record)).await
    }
    async fn list(&self, filter: &Filter, page: Page) -> Result<Vec<Record>, StoreError> {
        self.go(Verb::Find, self.inner.list(filter, page)).await
    }
    async fn linked(&self, provider: &str, id: &str) -> Result<Vec<Record>, StoreError> {
        self.go(Verb::Find, self.inner.linked(provider, id)).await
    }
    async fn resolve(&self, resolve: &Resolve) -> Result<bool, StoreError> {
        self.go(Verb::Resolve, self.inner.resolve(resolve)).await
    }
    async fn recover(&self, recover: &Recover) -> Result<Vec<Recovering>, StoreError> {
        self.go(Verb::Recover, self.inner.recover(recover)).await
    }
    async fn interrupted(&self, resume: &Resume) -> Result<Vec<Resuming>, StoreError> {
        self.go(Verb::Interrupted, self.inner.interrupted(resume)).await
    }

    async fn put_off(&self, put_off: &PutOff) -> Result<bool, StoreError> {
        self.go(Verb::Recover, self.inner.put_off(put_off)).await
    }
    async fn survey(&self) -> Result<Survey, StoreError> {
        self.go(Verb::Survey, self.inner.survey()).await
    }
    async fn due(&self) -> Result<Due, StoreError> {
        self.go(Verb::Purge, self.inner.due()).await
    }
    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        self.go(Verb::Purge, self.inner.purge(purge)).await
    }
    async fn strip(&self, strip: &Strip) -> Result<Stripped, StoreError> {
        self.go(Verb::Purge, self.inner.strip(strip)).await
    }
    fn transactions(&self) -> Option<Transactions> {
        self.inner.transactions()
    }
    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        self.go(Verb::Begin, self.inner.begin(begin)).await
    }
    async fn commit(&self, transaction: OpenTransaction, commit: &Commit) -> Result<Committed, StoreError> {
        self.go(Verb::Commit, self.inner.commit(transaction, commit)).await
    }
    fn keeps_steps(&self) -> bool {
        self.inner.keeps_steps()
    }
    async fn start_steps(&self, starts: &[StartStep]) -> Result<Vec<Started>, StoreError> {
        self.go(Verb::StartSteps, self.inner.start_steps(starts)).await
    }
    async fn end_steps(&self, ends: &[EndStep]) -> Result<Vec<StepEnded>, StoreError> {
        self.go(Verb::EndSteps, self.inner.end_steps(ends)).await
    }
    async fn steps(&self, record: RecordId) -> Result<Vec<Step>, StoreError> {
        self.go(Verb::Steps, self.inner.steps(record)).await
    }
    async fn begin_step(&self, start: &StartStep, limit: Duration) -> Result<StepBegun, StoreError> {
        self.go(Verb::BeginStep, self.inner.begin_step(start, limit)).await
    }
    async fn commit_step(&self, transaction: OpenTransaction, end: &EndStep) -> Result<Committed, StoreError> {
        self.go(Verb::CommitStep, self.inner.commit_step(transaction, end)).await
    }
    async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.inner.check().await
    }
    async fn check_transactions(&self) -> Result<Vec<String>, StoreError> {
        self.inner.check_transactions().await
    }
}
