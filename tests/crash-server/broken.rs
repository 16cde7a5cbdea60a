//! Engines that break the contract. The harness must find them out.

use std::sync::atomic::{AtomicU32, Ordering};

use idem_runtime::{
    RecordId,
    state::Reason,
    store::{Attempt, Finish, Outcome, Renewed},
};
use sqlx::{AnyPool, AssertSqlSafe, any::AnyPoolOptions};

use crate::forwarding::Between;

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
    records: AnyPool,
    sqlite: bool,
}

impl Broken {
    pub(crate) async fn new(fault: &str, url: &str) -> Self {
        let fault = match fault {
            "no-fence" => Fault::NoFence,
            "release-on-5xx" => Fault::ReleaseOn5xx,
            "doubts" => Fault::Doubts,
            other => panic!("BROKEN is `{other}`"),
        };
        sqlx::any::install_default_drivers();
        let records = AnyPoolOptions::new().max_connections(1).connect(url).await.unwrap();
        Self { fault, successes: AtomicU32::new(0), records, sqlite: url.starts_with("sqlite:") }
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

impl Between for Broken {
    async fn finishing(&self, finishes: &[Finish]) -> Vec<Finish> {
        if self.fault == Fault::NoFence {
            for finish in finishes {
                self.usurp(finish.record, finish.attempt).await;
            }
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
        finishes.iter().map(otherwise).collect()
    }

    fn renewed(&self, renewed: Vec<Renewed>) -> Vec<Renewed> {
        if self.fault == Fault::NoFence { vec![Renewed::Held; renewed.len()] } else { renewed }
    }
}
