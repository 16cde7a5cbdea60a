//! Settling what its run did not.

use super::{
    argument::{Arg, text},
    record::column,
    sql::Statement,
    verbs::{Verbs, attempt, body, contradiction, headers, millis, status, uuid},
};
use crate::{
    state::{Reason, State},
    store::{Attempt, Resolution, Resolve, StepDecision, StoreError},
};

/// Settles a record, as `Row::resolved` does: `$3` is the state that it gets, `$4` an attempt that is nobody's, `$5` the
/// quarantine. A record in doubt whose reason is among `{ended}` was left by a body that has ended; by the only one, if it
/// was not run again. One in flight that may be settled has lost its lease, so the audit entry says that it was in doubt. Done without an
/// answer is voided; `$11` is the reason. One that is to be run again may be so for `$12`, if it ever might. `$13`, `$14` and `$15` are the
/// steps that are decided about, as what, and with which results; where one of them, or all, is to be done anew (`$16`), nothing may act
/// any more. Steps are locked after their record, as everywhere, so that they are as nobody changes them any more; of one in flight, only
/// what `SHUT_OUT` has shut out is released.
const RESOLVE: &str = "
with cur as materialized (
  select k.kid, k.epoch, case k.state when 1 then 5 else k.state end as state from {schema}.idem_key k
   where k.kid = $1::uuid and k.fence = $2::int8
     and (k.state in (5, 6) or k.state = 1 and k.lease_until <= {now} and ($3::int2 <> 4 or k.attempt = $4::uuid))
     and ($3::int2 <> 6 or k.rerun_until > 'epoch')
     and (not $16::bool
          or k.state in (5, 6) and k.reason in ({ended}) and {only_run}
          or k.lease_until + $5::int8 * interval '1 millisecond' <= {now})
     for update of k
),
steps as materialized (
  select s.step, s.result is not null as ended
    from cur join {schema}.idem_step s on s.kid = cur.kid and s.epoch = cur.epoch
   where $3::int2 = 4 or cardinality($13::text[]) > 0
   order by s.step for no key update of s
),
decided as materialized (
  select u.* from unnest($13::text[], $14::int2[], $15::bytea[]) as u (step, decision, result)
    join steps on steps.step = u.step and not steps.ended
),
moved as (
  update {schema}.idem_key k set
    state       = $3::int2,
    reason      = $11::int2,
    fence       = nextval('{schema}.idem_fence'),
    attempt     = $4::uuid,
    recover_at  = case when $3::int2 = 6 then 'epoch' else k.recover_at end,
    rerun_until = case when $3::int2 = 6 then {now} + $12::int8 * interval '1 millisecond' else k.rerun_until end,
    expires_at  = case when $3::int2 = 2 and {now} - k.created_at >= (k.expires_at - k.created_at) / 2
                       then {now} + (k.expires_at - k.created_at) else k.expires_at end,
    guard_until = case when $3::int2 <> 2 then k.guard_until
                       else greatest(k.lease_until + $5::int8 * interval '1 millisecond',
                                     case when {now} - k.created_at >= (k.expires_at - k.created_at) / 2
                                          then {now} + (k.guard_until - k.created_at) else k.guard_until end) end,
    status      = $6::int4,
    headers     = $7::bytea,
    body        = $8::bytea
    from cur
   where k.kid = cur.kid
     and case when $3::int2 = 4 then not exists (select from steps where ended)
              else (select count(*) from decided) = cardinality($13::text[]) end
  returning k.kid, k.epoch, cur.state as from_state
),
done as (
  update {schema}.idem_step s set result = d.result from moved, decided d
   where d.decision = {done} and s.kid = moved.kid and s.epoch = moved.epoch and s.step = d.step
),
forgotten as (
  delete from {schema}.idem_step s using moved, decided d
   where d.decision = {not_done} and s.kid = moved.kid and s.epoch = moved.epoch and s.step = d.step
),
audited as (
  insert into {schema}.idem_audit (at, kid, fence, from_state, to_state, who, why)
  select {now}, moved.kid, $2::int8, moved.from_state, $3::int2, $9::text, $10::text from moved
)
select exists (select 1 from moved) as resolved";

/// Before a release: the run that is silent for long enough writes no step any more, should it come back. In a statement of its
/// own, since RESOLVE would not see a step that was inserted and committed while it waited for the record: a lock shows the
/// latest row of what it locks, and all else is as the statement began. The end of a step that is committed by then is seen there.
/// What has acted as far as can be seen is left alone; so are others, as no step is written where nothing is in flight.
const SHUT_OUT: &str = "
update {schema}.idem_key k set attempt = $3::uuid
 where k.kid = $1::uuid and k.fence = $2::int8 and k.state = 1
   and k.lease_until + $4::int8 * interval '1 millisecond' <= {now}
   and not exists (select from {schema}.idem_step s where s.kid = k.kid and s.epoch = k.epoch and s.result is not null)";

/// The statements of this module, of one schema.
#[derive(Debug)]
pub(super) struct Statements {
    shut_out: Statement,
    resolve: Statement,
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        Self { shut_out: Statement::new(schema, SHUT_OUT), resolve: Statement::new(schema, &whole()) }
    }
}

/// Decisions about steps, as the statement tells them apart.
const DONE: i16 = 1;
const NOT_DONE: i16 = 2;
const ASK_AGAIN: i16 = 3;

/// The template with what `state` says of reasons.
fn whole() -> String {
    let codes = [("{done}", DONE), ("{not_done}", NOT_DONE)];
    let sql = RESOLVE.replace("{ended}", &ended());
    codes.into_iter().fold(sql, |sql, (name, code)| sql.replace(name, &code.to_string()))
}

/// The codes of `Reason::body_has_ended`. Codes are small; one that is left out waits for its quarantine.
fn ended() -> String {
    let ended = (1..100).filter_map(Reason::from_code).filter(|reason| reason.body_has_ended());
    let codes: Vec<String> = ended.map(|reason| reason.code().to_string()).collect();
    codes.join(", ")
}

/// The steps that are decided about, as what, and with which results: parallel lists.
fn decided(to: &Resolution) -> [Arg<'_>; 3] {
    let coded = || to.decisions().map(|(_, decision)| coded(decision));
    [
        Arg::Texts(to.decisions().map(|(name, _)| text(name)).collect()),
        Arg::Shorts(coded().map(|(code, _)| code).collect()),
        Arg::ByteStrings(coded().map(|(_, result)| result).collect()),
    ]
}

fn coded(decision: &StepDecision) -> (i16, Option<&[u8]>) {
    match decision {
        StepDecision::Done(result) => (DONE, Some(result)),
        StepDecision::NotDone => (NOT_DONE, None),
        StepDecision::AskAgain => (ASK_AGAIN, None),
    }
}

impl Verbs {
    pub(super) async fn resolve(&self, resolve: &Resolve) -> Result<bool, StoreError> {
        let (state, answer) = match &resolve.to {
            Resolution::Complete(response) => (State::Done, Some(response)),
            Resolution::Void => (State::Done, None),
            Resolution::Release => (State::Released, None),
            Resolution::Resume | Resolution::ResumeWith(_) => (State::Resumable, None),
        };
        let (record, nobody) = (uuid(resolve.record), attempt(Attempt::random()));
        let (seen, quarantine) = (resolve.seen.0, millis(resolve.quarantine));
        let statements = &self.statements.resolving;
        if state == State::Released {
            let args = [Arg::Uuid(record), Arg::Long(seen), Arg::Uuid(nobody), Arg::Long(quarantine)];
            self.connections.rows(&statements.shut_out, &args).await?;
        }
        let [steps, decisions, results] = decided(&resolve.to);
        let args = [
            Arg::Uuid(record),
            Arg::Long(seen),
            Arg::Short(state.code()),
            Arg::Uuid(nobody),
            Arg::Long(quarantine),
            Arg::Int(status(answer)),
            Arg::Bytes(headers(answer)),
            Arg::Bytes(body(answer)),
            Arg::Text(text(&resolve.by.who)),
            Arg::Text(text(&resolve.by.why)),
            Arg::Short(resolve.reason.code()),
            Arg::Long(millis(resolve.rerun)),
            steps,
            decisions,
            results,
            Arg::Flag(resolve.to.does_anew()),
        ];
        let rows = self.connections.rows(&statements.resolve, &args).await?;
        column(rows.first().ok_or_else(contradiction)?, "resolved")
    }
}
