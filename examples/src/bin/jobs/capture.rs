//! The job: capture a payment.

use idem_runtime::{Execution, Runtime, idempotent};

use crate::{
    gateway::{Charge, Gateway},
    queue::Queue,
};

/// What a job needs.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) idem: Runtime,
    pub(crate) gateway: Gateway,
    pub(crate) queue: Queue,
}

/// One delivery of a job. Its id is the queue's, and the same over all deliveries.
pub(crate) struct Job {
    pub(crate) queue: &'static str,
    pub(crate) id: String,
    pub(crate) amount: i64,
}

#[derive(Debug)]
pub(crate) enum JobError {
    Gateway(sqlx::Error),
    Idempotency(idem_runtime::Error),
}

impl From<idem_runtime::Error> for JobError {
    fn from(error: idem_runtime::Error) -> Self {
        Self::Idempotency(error)
    }
}

impl From<sqlx::Error> for JobError {
    fn from(error: sqlx::Error) -> Self {
        Self::Gateway(error)
    }
}

/// The gateway dedupes by the key it is given, so what a killed worker left may be run again.
#[idempotent(function, runtime = worker.idem, scope = job.queue, op = "capture", key = job.id,
    in_doubt = rerun_deduped, ttl = "7d")]
pub(crate) async fn capture(worker: &Worker, job: &Job, #[idem] exec: Execution) -> Result<Charge, JobError> {
    let charge = worker.gateway.charge(exec.provider_key(), &job.id, job.amount).await?;
    exec.link("gateway", &charge.id).await?; // which charge was it, and which job
    Ok(charge)
}
