//! Steps, on one connection. What is written is decided under the write lock, which a takeover would need, too.

use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    error::{corrupt, failed},
    sql::now,
    verbs,
};
use crate::{
    key::RecordId,
    store::{
        Attempt, EndStep, Fence, StartStep, Started, Step, StepDecision, StepDecisions, StepEnded, StepKind,
        StoreError, row::Millis,
    },
};

const STEP: &str = "
    select step, kind, input, result, started_at from idem_step where kid = ?1 and epoch = ?2 and step = ?3";

/// Notes a step. After STEP in the same transaction found none.
const START: &str = "
    insert into idem_step (kid, epoch, step, kind, input, started_at) values (?1, ?2, ?3, ?4, ?5, ?6)";

/// The first result stays.
const END: &str = "
    update idem_step set result = coalesce(result, ?4) where kid = ?1 and epoch = ?2 and step = ?3";

/// A commit before COMMIT is refused from here on, as by MUST_FINISH for a record.
const MUST_FINISH: &str = "update idem_step set must_finish = kid where kid = ?1 and epoch = ?2 and step = ?3";

/// Ends what MUST_FINISH has begun in the same transaction: a ROLLBACK of the body's own takes the mark away, also from a
/// step that had been started before.
const COMMIT: &str = "
    update idem_step set result = ?4, must_finish = null
     where kid = ?1 and epoch = ?2 and step = ?3 and must_finish = ?1";

/// Of a step that was begun and, as an operator or a hook says, surely did not happen.
const FORGET: &str = "delete from idem_step where kid = ?1 and epoch = ?2 and step = ?3 and result is null";

/// The steps of the record's epoch, in the order of their first starts.
const STEPS: &str = concat!(
    "select s.step, s.kind, s.input, s.result, s.started_at, ",
    now!(),
    " as now
       from idem_key k join idem_step s on s.kid = k.kid and s.epoch = k.epoch
      where k.kid = ?1 order by s.rowid"
);

pub(super) async fn start(
    transaction: &mut SqliteConnection,
    starts: &[StartStep],
) -> Result<Vec<Started>, StoreError> {
    let now = verbs::now(transaction).await?;
    let mut started = Vec::with_capacity(starts.len());
    for start in starts {
        started.push(match epoch(transaction, start.record, start.attempt).await? {
            Some(epoch) => Started::Step(noted(transaction, start, epoch, now).await?),
            None => Started::Lost,
        });
    }
    Ok(started)
}

pub(super) async fn end(transaction: &mut SqliteConnection, ends: &[EndStep]) -> Result<Vec<StepEnded>, StoreError> {
    let mut ended = Vec::with_capacity(ends.len());
    for end in ends {
        ended.push(write(transaction, END, end).await?);
    }
    Ok(ended)
}

pub(super) async fn steps(reader: &mut SqliteConnection, record: RecordId) -> Result<Vec<Step>, StoreError> {
    let rows = sqlx::query(STEPS).bind(record.as_bytes().as_slice()).fetch_all(reader).await.map_err(failed)?;
    rows.iter().map(|row| step(row, Millis(row.try_get("now").map_err(failed)?))).collect()
}

/// As `start`, for one step that the transaction will end; it is marked if it has no result.
pub(super) async fn begin(transaction: &mut SqliteConnection, start: &StartStep) -> Result<Started, StoreError> {
    let now = verbs::now(transaction).await?;
    let Some(epoch) = epoch(transaction, start.record, start.attempt).await? else { return Ok(Started::Lost) };
    let step = noted(transaction, start, epoch, now).await?;
    if step.result.is_none() {
        let mark = sqlx::query(MUST_FINISH).bind(start.record.as_bytes().as_slice()).bind(epoch.0).bind(&start.name);
        mark.execute(transaction).await.map_err(failed)?;
    }
    Ok(Started::Step(step))
}

/// Ends what `begin` has begun in this transaction.
pub(super) async fn commit(transaction: &mut SqliteConnection, end: &EndStep) -> Result<StepEnded, StoreError> {
    write(transaction, COMMIT, end).await
}

/// Writes what is decided about single steps, which are open.
pub(super) async fn decide(
    transaction: &mut SqliteConnection,
    record: RecordId,
    epoch: Fence,
    decisions: &StepDecisions,
) -> Result<(), StoreError> {
    for (name, decision) in decisions.iter() {
        let written = match decision {
            StepDecision::Done(result) => sqlx::query(END)
                .bind(record.as_bytes().as_slice())
                .bind(epoch.0)
                .bind(name)
                .bind(&**result)
                .execute(&mut *transaction),
            StepDecision::NotDone => sqlx::query(FORGET)
                .bind(record.as_bytes().as_slice())
                .bind(epoch.0)
                .bind(name)
                .execute(&mut *transaction),
            StepDecision::AskAgain => continue,
        };
        written.await.map_err(failed)?;
    }
    Ok(())
}

/// The epoch of the record while it is in flight for the attempt.
async fn epoch(
    transaction: &mut SqliteConnection,
    record: RecordId,
    attempt: Attempt,
) -> Result<Option<Fence>, StoreError> {
    let found = verbs::row(transaction, record).await?;
    Ok(found.filter(|found| found.row.held_by(attempt)).map(|found| found.row.epoch))
}

/// The step as it is, or as it is from now on.
async fn noted(
    transaction: &mut SqliteConnection,
    start: &StartStep,
    epoch: Fence,
    now: Millis,
) -> Result<Step, StoreError> {
    let kid = start.record.as_bytes().as_slice();
    let found = sqlx::query(STEP).bind(kid).bind(epoch.0).bind(&start.name).fetch_optional(&mut *transaction);
    if let Some(found) = found.await.map_err(failed)? {
        return step(&found, now);
    }
    sqlx::query(START)
        .bind(kid)
        .bind(epoch.0)
        .bind(&start.name)
        .bind(start.kind.code())
        .bind(start.input.as_ref().map(<[u8; 32]>::as_slice))
        .bind(now.0)
        .execute(transaction)
        .await
        .map_err(failed)?;
    let StartStep { name, kind, input, .. } = start.clone();
    Ok(Step { name, kind, input, result: None, age: now.since(now) })
}

async fn write(
    transaction: &mut SqliteConnection,
    statement: &'static str,
    end: &EndStep,
) -> Result<StepEnded, StoreError> {
    let Some(epoch) = epoch(transaction, end.record, end.attempt).await? else { return Ok(StepEnded::Lost) };
    let written = sqlx::query(statement)
        .bind(end.record.as_bytes().as_slice())
        .bind(epoch.0)
        .bind(&end.name)
        .bind(&*end.result)
        .execute(transaction)
        .await
        .map_err(failed)?;
    Ok(if written.rows_affected() == 1 { StepEnded::Stored } else { StepEnded::Lost })
}

fn step(row: &SqliteRow, now: Millis) -> Result<Step, StoreError> {
    let input: Option<Vec<u8>> = row.try_get("input").map_err(failed)?;
    let input = input.map(<[u8; 32]>::try_from).transpose().map_err(|_| corrupt("`input` has not 32 bytes"))?;
    let kind = i16::try_from(row.try_get::<i64, _>("kind").map_err(failed)?);
    let result: Option<Vec<u8>> = row.try_get("result").map_err(failed)?;
    Ok(Step {
        name: row.try_get("step").map_err(failed)?,
        kind: StepKind::from_code(kind.map_err(|_| corrupt("`kind` is out of range"))?),
        input,
        result: result.map(Into::into),
        age: now.since(Millis(row.try_get("started_at").map_err(failed)?)),
    })
}
