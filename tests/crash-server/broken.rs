//! Engines that break the contract. The harness must find them out.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use idem_runtime::{
    Record, RecordId,
    state::Reason,
    store::{
        Attempt, Begin, Begun, Claim, Claimed, Commit, Committed, Due, EndStep, Filter, Finish, Finished, Found, Link,
        OpenTransaction, Outcome, Page, Peek, Purge, Purged, PutOff, Recover, Recovering, Renewal, Renewed, Resolve,
        Resume, Resuming, StartStep, Started, Step, StepBegun, StepEnded, Store, StoreError, Strip, Stripped, Survey,
        Transactions,
    },
};
use sqlx::{AnyPool, AssertSqlSafe, any::AnyPoolOptions};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// What a run writes at its end is compared with nothing: whoever comes last has it.
    NoFence,
    /// A 5xx frees its key.
    ReleaseOn5xx,
    /// Each hundredth success is in doubt.
    Doubts,
}

pub(crate) struct Broken {
    fault: Fault,
    successes: AtomicU32,
    inner: Arc<dyn Store>,
    records: AnyPool,
    sqlite: bool,
}

impl Broken {
    pub(crate) async fn new(fault: &str, inner: Arc<dyn Store>, url: &str) -> Self {
        let fault = match fault {
            "no-fence" => Fault::NoFence,
            "release-on-5xx" => Fault::ReleaseOn5xx,
            "doubts" => Fault::Doubts,
            other => panic!("BROKEN is `{other}`"),
        };
        sqlx::any::install_default_drivers();
        let records = AnyPoolOptions::new().max_connections(1).connect(url).await.unwrap();
        Self { fault, successes: AtomicU32::new(0), inner, records, sqlite: url.starts_with("sqlite:") }
    }

    /// Makes this attempt the record's owner, whoever is.
    async fn usurp(&self, record: RecordId, attempt: Attempt) {
        let attempt = attempt.to_string();
        let sql = if self.sqlite {
            let attempt = attempt.replace('-', "");
            format!("update idem_key set state = 1, attempt = x'{attempt}' where kid = x'{record}'")
        } else {
            format!("update idem.idem_key set state = 1, attempt = '{attempt}' where kid = '{record}'")
        };
        let _ = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&self.records).await; // one of many that try
    }
}

#[async_trait]
impl Store for Broken {
    async fn finish(&self, finishes: &[Finish]) -> Result<Vec<Finished>, StoreError> {
        if self.fault == Fault::NoFence {
            for finish in finishes {
                self.usurp(finish.record, finish.attempt).await;
            }
            return self.inner.finish(finishes).await;
        }
        let otherwise = |finish: &Finish| match (self.fault, &finish.outcome) {
            (Fault::ReleaseOn5xx, Outcome::InDoubt(reason @ Reason::Status)) => {
                Finish { outcome: Outcome::Released(*reason), ..finish.clone() }
            }
            (Fault::Doubts, Outcome::Done(_)) if self.successes.fetch_add(1, Ordering::Relaxed) % 100 == 99 => {
                Finish { outcome: Outcome::InDoubt(Reason::Store), ..finish.clone() }
            }
            _ => finish.clone(),
        };
        self.inner.finish(&finishes.iter().map(otherwise).collect::<Vec<_>>()).await
    }
    async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>, StoreError> {
        self.inner.claim(claims).await
    }
    async fn peek(&self, peeks: &[Peek]) -> Result<Vec<Option<Found>>, StoreError> {
        self.inner.peek(peeks).await
    }
    async fn renew(&self, renewals: &[Renewal], lease: Duration) -> Result<Vec<Renewed>, StoreError> {
        let renewed = self.inner.renew(renewals, lease).await?;
        if self.fault == Fault::NoFence {
            return Ok(vec![Renewed::Held; renewed.len()]);
        }
        Ok(renewed)
    }
    async fn link(&self, links: &[Link]) -> Result<(), StoreError> {
        self.inner.link(links).await
    }
    async fn find(&self, record: RecordId) -> Result<Option<Record>, StoreError> {
        self.inner.find(record).await
    }
    async fn list(&self, filter: &Filter, page: Page) -> Result<Vec<Record>, StoreError> {
        self.inner.list(filter, page).await
    }
    async fn linked(&self, provider: &str, id: &str) -> Result<Vec<Record>, StoreError> {
        self.inner.linked(provider, id).await
    }
    async fn resolve(&self, resolve: &Resolve) -> Result<bool, StoreError> {
        self.inner.resolve(resolve).await
    }
    async fn recover(&self, recover: &Recover) -> Result<Vec<Recovering>, StoreError> {
        self.inner.recover(recover).await
    }
    async fn put_off(&self, put_off: &PutOff) -> Result<bool, StoreError> {
        self.inner.put_off(put_off).await
    }
    async fn interrupted(&self, resume: &Resume) -> Result<Vec<Resuming>, StoreError> {
        self.inner.interrupted(resume).await
    }
    async fn survey(&self) -> Result<Survey, StoreError> {
        self.inner.survey().await
    }
    async fn due(&self) -> Result<Due, StoreError> {
        self.inner.due().await
    }
    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        self.inner.purge(purge).await
    }
    async fn strip(&self, strip: &Strip) -> Result<Stripped, StoreError> {
        self.inner.strip(strip).await
    }
    fn transactions(&self) -> Option<Transactions> {
        self.inner.transactions()
    }
    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        self.inner.begin(begin).await
    }
    async fn commit(&self, transaction: OpenTransaction, commit: &Commit) -> Result<Committed, StoreError> {
        self.inner.commit(transaction, commit).await
    }
    fn keeps_steps(&self) -> bool {
        self.inner.keeps_steps()
    }
    async fn start_steps(&self, starts: &[StartStep]) -> Result<Vec<Started>, StoreError> {
        self.inner.start_steps(starts).await
    }
    async fn end_steps(&self, ends: &[EndStep]) -> Result<Vec<StepEnded>, StoreError> {
        self.inner.end_steps(ends).await
    }
    async fn steps(&self, record: RecordId) -> Result<Vec<Step>, StoreError> {
        self.inner.steps(record).await
    }
    async fn begin_step(&self, start: &StartStep, limit: Duration) -> Result<StepBegun, StoreError> {
        self.inner.begin_step(start, limit).await
    }
    async fn commit_step(&self, transaction: OpenTransaction, end: &EndStep) -> Result<Committed, StoreError> {
        self.inner.commit_step(transaction, end).await
    }
    async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.inner.check().await
    }
    async fn check_transactions(&self) -> Result<Vec<String>, StoreError> {
        self.inner.check_transactions().await
    }
}
