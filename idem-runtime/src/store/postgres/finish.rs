//! The statements that end runs, as `Row::finish` does.

use super::sql::Statement;

/// The statements of one schema.
#[derive(Debug)]
pub(super) struct Statements {
    /// Of runs whose claim was committed.
    pub(super) ended: Statement,
    /// Of one such run: a row if it was ended by this, and none where [`ended`](Self::ended) must say why.
    pub(super) one: Statement,
    /// Of the run whose claim is in this transaction.
    pub(super) own: Statement,
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        let moved = |by: [&str; 4]| {
            let [state, reason, keep, now] = by;
            let moves = |text: &str| text.replace("{state}", state).replace("{keep}", keep).replace("{at}", now);
            (moves(SET).replace("{reason}", reason), moves(WHERE))
        };
        let (set, may) = moved(["u.state", "u.reason", "u.keep", "u.now"]);
        let ended = ENDED.replace("{set}", &set).replace("{may}", &may);
        let (set, may) = moved(["$3::int2", "$4::int2", "$5::int8", "{now}"]);
        let [one, own] = [ONE, OWN].map(|moved| {
            let moved = moved.replace("{set}", &set).replace("{may}", &may);
            Statement::new(schema, &[&moved, ANSWERED].concat())
        });
        Self { ended: Statement::new(schema, &ended), one, own }
    }
}

/// The windows of an answer in time stay, so that no index is touched.
const SET: &str = "
    state       = {state},
    reason      = {reason},
    must_finish = null,
    lease_until = case when {state} in (5, 6) then least(k.lease_until, {at}) else k.lease_until end,
    expires_at  = case when {state} = 3 then least(k.expires_at, {at} + {keep} * interval '1 millisecond')
                       when {state} = 2 and {at} - k.created_at >= (k.expires_at - k.created_at) / 2
                       then {at} + (k.expires_at - k.created_at) else k.expires_at end,
    guard_until = case when {state} = 2 and {at} - k.created_at >= (k.expires_at - k.created_at) / 2
                       then {at} + (k.guard_until - k.created_at) else k.guard_until end";

const WHERE: &str = "k.state in (1, 5, 6)
     and case {state} when 2 then true
                      when 5 then k.state = 1
                      when 6 then k.state <> 6
                      else {only_run} end";

/// The answer goes with the outcome, and so does its durability: a program, or a body, may have set its session so that a commit
/// does not wait for the disk; the last word about this one is ours, and costs no statement.
///
/// `cur` locks what belongs to the attempt and reads its latest version; one that stands already where the finish leads had been
/// finished by an earlier try, and is not written again.
const ENDED: &str = "
with u as materialized (
  select u.*, {now} as now
    from unnest($1::uuid[], $2::uuid[], $3::int2[], $4::int2[], $5::int8[], $6::int4[], $7::bytea[], $8::bytea[])
         as u (kid, attempt, state, reason, keep, status, headers, body)
),
cur as materialized (
  select k.kid, k.state, k.expires_at
    from u join {schema}.idem_key k on k.kid = u.kid and k.attempt = u.attempt
   order by k.kid for update of k
),
moved as (
  update {schema}.idem_key k set {set}
    from cur join u on u.kid = cur.kid
   where k.kid = cur.kid and k.attempt = u.attempt and {may}
  returning k.kid, k.state, k.expires_at
),
answered as (
  insert into {schema}.idem_response (kid, status, headers, body)
  select u.kid, u.status, u.headers, u.body from u join moved on moved.kid = u.kid
   where u.state in (2, 3) order by u.kid
  on conflict (kid) do update set status = excluded.status, headers = excluded.headers, body = excluded.body
)
select cur.kid, coalesce(moved.state, cur.state) as state,
       (date_part('epoch', coalesce(moved.expires_at, cur.expires_at) - {now}) * 1000)::int8 as ttl_left{durable}
  from cur left join moved on moved.kid = cur.kid";

/// Without lists.
const ONE: &str = "
with moved as (
  update {schema}.idem_key k set {set} where k.kid = $1::uuid and k.attempt = $2::uuid and {may}
  returning k.kid, k.state, k.expires_at
)";

/// For one record, whose row this transaction has locked, and which ends with an answer; on a connection of the program's pool. An
/// insert, since it finds its row by the unique index and nothing else: an update is planned by the server, which may choose to read all
/// of a table that was small when it was planned. It never inserts, because the row is there. Where the body has ended the transaction
/// by itself, the row may be another attempt's, and nothing is written; or there is none, and the server refuses this one for its
/// `must_finish` as soon as it would be committed, which is now.
const OWN: &str = "
with moved as (
  insert into {schema}.idem_key as k
         (kid, scope, op, state, fence, epoch, attempt, fp_alg, fp, lease_until, created_at, expires_at, guard_until,
          must_finish)
  values ($1::uuid, '', '', 0, 0, 0, $2::uuid, 0, '', 'epoch', 'epoch', 'epoch', 'epoch', $1::uuid)
  on conflict (kid) do update set {set}
   where k.attempt = $2::uuid and {may}
  returning k.kid, k.state, k.expires_at
)";

/// The answer goes with what was moved, and with nothing else.
const ANSWERED: &str = ",
answered as (
  insert into {schema}.idem_response (kid, status, headers, body)
  select moved.kid, $6::int4, $7::bytea, $8::bytea from moved where moved.state in (2, 3)
  on conflict (kid) do update set status = excluded.status, headers = excluded.headers, body = excluded.body
)
select moved.state, (date_part('epoch', moved.expires_at - {now}) * 1000)::int8 as ttl_left{durable} from moved";
