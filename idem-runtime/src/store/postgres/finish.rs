//! The statements that end runs, as `Row::finish` does.

use super::sql::Statement;

/// The statements of one schema.
#[derive(Debug)]
pub(super) struct Statements {
    /// Of runs whose claim was committed: a row for each that is ended by this.
    pub(super) many: Statement,
    /// The same for one, without lists.
    pub(super) one: Statement,
    /// Of those that were not, which are few: what they are. It ends what it may, too, since a record may have changed meanwhile.
    pub(super) rest: Statement,
    /// Of the run whose claim is in this transaction.
    pub(super) own: Statement,
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        let listed = ["u.state", "u.reason", "u.keep", "u.now", "u.status", "u.headers", "u.body"];
        let plain = ["$3::int2", "$4::int2", "$5::int8", "{now}", "$6::int4", "$7::bytea", "$8::bytea"];
        let statement = |text: &str, by| {
            let text = [("{set}", SET), ("{may}", MAY), ("{ends}", ENDS), ("{moved}", MOVED)]
                .into_iter()
                .fold(text.to_owned(), |text, (part, by)| text.replace(part, by));
            let parts =
                ["{state}", "{reason}", "{keep}", "{at}", "{status}", "{headers}", "{body}"].into_iter().zip(by);
            Statement::new(schema, &parts.fold(text, |text, (part, by)| text.replace(part, by)))
        };
        Self {
            many: statement(MANY, listed),
            one: statement(ONE, plain),
            rest: statement(REST, listed),
            own: statement(OWN, plain),
        }
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
                       then {at} + (k.guard_until - k.created_at) else k.guard_until end,
    status      = {status},
    headers     = {headers},
    body        = {body}";

const MAY: &str = "k.state in (1, 5, 6)
     and case {state} when 2 then true
                      when 5 then k.state = 1
                      when 6 then k.state <> 6
                      else {only_run} end";

/// What was ended. Its durability goes with it: a program, or a body, may have set its session so that a commit does not wait for the
/// disk; the last word about this one is ours, and costs no statement.
const MOVED: &str =
    "returning k.kid, k.attempt, k.state, (date_part('epoch', k.expires_at - {now}) * 1000)::int8 as ttl_left{durable}";

/// Each is found by the index, in the order of `u`.
const MANY: &str = "
update {schema}.idem_key k set {set} from ({ends} order by u.kid) u
 where k.kid = u.kid and k.attempt = u.attempt and {may}
{moved}";

const ENDS: &str = "select u.*, {now} as now
  from unnest($1::uuid[], $2::uuid[], $3::int2[], $4::int2[], $5::int8[], $6::int4[], $7::bytea[], $8::bytea[])
       as u (kid, attempt, state, reason, keep, status, headers, body)";

/// `cur` locks what belongs to the attempt and reads its latest version; one that stands already where the finish leads had been
/// finished by an earlier try, and is not written again.
const REST: &str = "
with u as materialized ({ends}),
cur as materialized (
  select k.kid, k.attempt, k.state, k.expires_at
    from u join {schema}.idem_key k on k.kid = u.kid and k.attempt = u.attempt
   order by k.kid for update of k
),
moved as (
  update {schema}.idem_key k set {set}
    from cur join u on u.kid = cur.kid and u.attempt = cur.attempt
   where k.kid = cur.kid and k.attempt = u.attempt and {may}
  returning k.kid, k.state, k.expires_at
)
select cur.kid, cur.attempt, coalesce(moved.state, cur.state) as state,
       (date_part('epoch', coalesce(moved.expires_at, cur.expires_at) - {now}) * 1000)::int8 as ttl_left{durable}
  from cur left join moved on moved.kid = cur.kid";

/// Without lists.
const ONE: &str = "
update {schema}.idem_key k set {set} where k.kid = $1::uuid and k.attempt = $2::uuid and {may}
{moved}";

/// For one record, whose row this transaction has locked, and which ends with an answer; on a connection of the program's pool. An
/// insert, since it finds its row by the unique index and nothing else: an update is planned by the server, which may choose to read all
/// of a table that was small when it was planned. It never inserts, because the row is there. Where the body has ended the transaction
/// by itself, the row may be another attempt's, and nothing is written; or there is none, and the server refuses this one for its
/// `must_finish` as soon as it would be committed, which is now.
const OWN: &str = "
insert into {schema}.idem_key as k
       (kid, scope, op, state, fence, epoch, attempt, fp_alg, fp, lease_until, created_at, expires_at, guard_until,
        must_finish)
values ($1::uuid, '', '', 0, 0, 0, $2::uuid, 0, '', 'epoch', 'epoch', 'epoch', 'epoch', $1::uuid)
on conflict (kid) do update set {set}
 where k.attempt = $2::uuid and {may}
{moved}";
