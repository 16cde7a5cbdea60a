//! Requests without a key whose handler takes a `Tx`.

use axum::response::Response;

use super::{Body, declared};
use crate::{
    Runtime,
    error::{Error, ErrorKind, Fate},
    execution::{Execution, Supply},
    operation::Operation,
    outcome::Declared,
    transaction,
};

/// There is no claim, but the body's rows belong together all the same. On its own task, as a protected body: a COMMIT must
/// not be cut off.
pub(super) async fn in_transaction(
    runtime: &Runtime,
    operation: &'static Operation,
    body: Body,
) -> Result<Response, Error> {
    let on_task = runtime.clone();
    let task = Box::pin(async move {
        let (runtime, execution) = (on_task.clone(), Execution::unprotected(&on_task, operation));
        let slot = transaction::open(&runtime, operation).await?;
        let body = body(&mut Supply::new(execution.clone(), Some(slot.clone())))?;
        let body = transaction::holding(&runtime, body);
        let Ok(response) = tokio::time::timeout(transaction::limit(&runtime, operation), body).await else {
            drop(slot.close());
            return Err(Error::new(ErrorKind::TimedOut).with(|about| about.fate = Some(Fate::Undone)));
        };
        let succeeded = response.status().as_u16() < 400;
        let keeps_rows = match declared(&response, &execution) {
            Some(Declared::Final) => true,
            Some(Declared::NotApplied) => false,
            None => succeeded,
        };
        transaction::close(&runtime, &slot, keeps_rows).await?;
        Ok(response)
    });
    let panicked = || Error::new(ErrorKind::Panicked).with(|about| about.fate = Some(Fate::Undone));
    runtime.on_its_own_task(task).await.unwrap_or_else(|| Err(panicked()))
}
