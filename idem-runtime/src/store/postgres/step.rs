//! Steps: statements and verbs.
//!
//! Each statement that writes takes the records' rows `for share` first, in the order of their ids, and looks at attempt and
//! state on the latest version. A claim or a recovery needs such a row for itself, so it comes before the statement, which
//! then writes nothing, or after its commit, and then whoever takes over sees what was written. To read the row without a
//! lock and to compare a step's fence with it would shut out an old owner only from those steps that the new one has started
//! again, and the new one does not start what it finds finished: a late end could change that under its hands. What it
//! costs: a renewal at this moment goes by and comes again. Steps of one run do not wait for each other.

use std::collections::HashMap;

use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::{
    argument::{Arg, text},
    error::corrupt,
    record::{self, column},
    sql::Statement,
    verbs::{Verbs, attempt, uuid},
};
use crate::{
    key::RecordId,
    store::{EndStep, StartStep, Started, Step, StepEnded, StepKind, StoreError, row::Millis},
};

/// The statements of this module, of one schema.
#[derive(Debug)]
pub(super) struct Statements {
    start: Statement,
    pub(super) begin: Statement,
    end: Statement,
    pub(super) commit: Statement,
    steps: Statement,
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        let statement = |template: &str| Statement::new(schema, &template.replace("{columns_of_s}", COLUMNS));
        let start = |lock, cur, must_finish| {
            statement(&START.replace("{lock}", lock).replace("{cur}", cur).replace("{must_finish}", must_finish))
        };
        Self {
            start: start("for share of k", "", "null"),
            begin: start("", "and s.result is not null", "m.kid"),
            end: statement(&END.replace("{begun}", "")),
            commit: statement(&END.replace("{begun}", "and s.must_finish is not null")),
            steps: statement(STEPS),
        }
    }
}

const COLUMNS: &str = "
    s.kid, s.step, s.kind, s.input, s.result, floor(extract(epoch from s.started_at) * 1000)::int8 as started_at,
    floor(extract(epoch from {now}) * 1000)::int8 as now";

/// Notes steps, and reads those that are noted already, which makes no new version of anything; no row where the record is not the attempt's.
/// The conflict arm is for a start that is sent again while it runs, and for what a transaction has begun.
///
/// In a transaction (`begin`) the record's row is not locked, or a claim and a renewal would wait for the body: `commit` looks
/// at it. `must_finish` makes the server refuse a commit before the result, also of a step that had been started before.
const START: &str = "
with u as materialized (
  select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::int2[], $5::bytea[]) with ordinality
         as u (kid, attempt, step, kind, input, nr)
),
mine as materialized (
  select u.*, k.epoch from u join {schema}.idem_key k on k.kid = u.kid and k.attempt = u.attempt
   where k.state = 1 order by k.kid {lock}
),
cur as materialized (
  select s.* from mine m join {schema}.idem_step s on s.kid = m.kid and s.epoch = m.epoch and s.step = m.step {cur}
),
ins as (
  insert into {schema}.idem_step as s (kid, epoch, step, kind, input, started_at, nr, must_finish)
  select m.kid, m.epoch, m.step, m.kind, m.input, {now}, nextval('{schema}.idem_fence'), {must_finish}
    from mine m where not exists (select from cur c where c.kid = m.kid and c.step = m.step)
   order by m.kid, m.nr
  on conflict (kid, epoch, step) do update set must_finish = case when s.result is null then excluded.must_finish end
  returning s.*
)
select {columns_of_s} from (select ins.* from ins union all select cur.* from cur) s";

/// Notes results; the first one stays. No row where the record is not the attempt's, or the step was not started. A `commit`
/// ends only what `begin` has begun in the same transaction: nothing else has `must_finish`, and a ROLLBACK of the body's own
/// takes it away, also from a step that had been started before. Its durability is that of a finish.
const END: &str = "
with u as materialized (
  select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::bytea[]) as u (kid, attempt, step, result)
),
cur as materialized (
  select s.kid, s.epoch, s.step, u.result
    from u join {schema}.idem_key k on k.kid = u.kid and k.attempt = u.attempt
           join {schema}.idem_step s on s.kid = k.kid and s.epoch = k.epoch and s.step = u.step {begun}
   where k.state = 1 order by k.kid, s.step for share of k for no key update of s
),
ended as (
  update {schema}.idem_step s set result = cur.result, must_finish = null
    from cur where s.kid = cur.kid and s.epoch = cur.epoch and s.step = cur.step and s.result is null
)
select cur.kid, cur.step{durable} from cur";

/// The steps of the record's epoch, in the order of their first starts.
const STEPS: &str = "
select {columns_of_s}
  from {schema}.idem_key k join {schema}.idem_step s on s.kid = k.kid and s.epoch = k.epoch
 where k.kid = $1::uuid order by s.started_at, s.nr";

impl Verbs {
    pub(super) async fn start_steps(&self, starts: &[StartStep]) -> Result<Vec<Started>, StoreError> {
        let rows = self.connections.rows(&self.statements.steps.start, &start_args(starts)).await?;
        let rows = by_step(&rows)?;
        starts.iter().map(|start| started(rows.get(&(uuid(start.record), text(&start.name).into())).copied())).collect()
    }

    pub(super) async fn end_steps(&self, ends: &[EndStep]) -> Result<Vec<StepEnded>, StoreError> {
        let rows = self.connections.rows(&self.statements.steps.end, &end_args(ends)).await?;
        let rows = by_step(&rows)?;
        let ended = |end: &EndStep| match rows.contains_key(&(uuid(end.record), text(&end.name).into())) {
            true => StepEnded::Stored,
            false => StepEnded::Lost,
        };
        Ok(ends.iter().map(ended).collect())
    }

    pub(super) async fn steps(&self, record: RecordId) -> Result<Vec<Step>, StoreError> {
        let rows = self.connections.rows(&self.statements.steps.steps, &[Arg::Uuid(uuid(record))]).await?;
        rows.iter().map(step).collect()
    }
}

pub(super) fn start_args(starts: &[StartStep]) -> Vec<Arg<'_>> {
    vec![
        Arg::Uuids(starts.iter().map(|start| uuid(start.record)).collect()),
        Arg::Uuids(starts.iter().map(|start| attempt(start.attempt)).collect()),
        Arg::Texts(starts.iter().map(|start| text(&start.name)).collect()),
        Arg::Shorts(starts.iter().map(|start| start.kind.code()).collect()),
        Arg::ByteStrings(starts.iter().map(|start| start.input.as_ref().map(<[u8; 32]>::as_slice)).collect()),
    ]
}

pub(super) fn end_args(ends: &[EndStep]) -> Vec<Arg<'_>> {
    vec![
        Arg::Uuids(ends.iter().map(|end| uuid(end.record)).collect()),
        Arg::Uuids(ends.iter().map(|end| attempt(end.attempt)).collect()),
        Arg::Texts(ends.iter().map(|end| text(&end.name)).collect()),
        Arg::ByteStrings(ends.iter().map(|end| Some(&*end.result)).collect()),
    ]
}

/// Several steps of one slice may be of one record.
fn by_step(rows: &[PgRow]) -> Result<HashMap<(Uuid, String), &PgRow>, StoreError> {
    rows.iter().map(|row| Ok(((record::kid(row)?, column(row, "step")?), row))).collect()
}

pub(super) fn started(row: Option<&PgRow>) -> Result<Started, StoreError> {
    row.map_or(Ok(Started::Lost), |row| step(row).map(Started::Step))
}

fn step(row: &PgRow) -> Result<Step, StoreError> {
    let input: Option<Vec<u8>> = column(row, "input")?;
    let input = input.map(<[u8; 32]>::try_from).transpose().map_err(|_| corrupt("`input` has not 32 bytes"))?;
    Ok(Step {
        name: column(row, "step")?,
        kind: StepKind::from_code(column(row, "kind")?),
        input,
        result: column::<Option<Vec<u8>>>(row, "result")?.map(Into::into),
        age: Millis(column(row, "now")?).since(Millis(column(row, "started_at")?)),
    })
}

#[cfg(test)]
impl Statements {
    /// What a test looks at the plans of.
    pub(super) fn tried(&self) -> [(&Statement, Vec<Arg<'static>>); 5] {
        let kids = || Arg::Uuids(vec![Uuid::nil(); 2]);
        let names = || Arg::Texts(vec!["a".into(), "b".into()]);
        let bytes = || Arg::ByteStrings(vec![None, Some(b"x")]);
        let start = || vec![kids(), kids(), names(), Arg::Shorts(vec![1, 2]), bytes()];
        let end = || vec![kids(), kids(), names(), bytes()];
        [
            (&self.start, start()),
            (&self.begin, start()),
            (&self.end, end()),
            (&self.commit, end()),
            (&self.steps, vec![Arg::Uuid(Uuid::nil())]),
        ]
    }
}
