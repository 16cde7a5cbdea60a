//! The claim's statements. Nearly every claim meets no record, or one that decides by itself; for those there is a short one.
//! What is there and may be taken over is asked again with a long one, which can.

use super::{resume, sql::Statement};

/// The statements of one schema.
#[derive(Debug)]
pub(super) struct Statements {
    /// Inserts what is not there, and reads the rest.
    pub(super) fresh: Statement,
    /// The same for one record and without an argument to keep, which nearly every quiet call is: without lists it costs the server
    /// three quarters.
    pub(super) one: Statement,
    /// Takes what may be taken, and reads the rest.
    pub(super) take: Statement,
    pub(super) begin: Begin,
}

/// Those of a run in a transaction, one record each.
#[derive(Debug)]
pub(super) struct Begin {
    /// Inserts the record: one row, with its fence, or none where it is there, or somebody else has its lock. It names no table but to
    /// insert, so there is nothing that the server could plan otherwise, whatever the program has set and however the table grows.
    pub(super) fresh: Statement,
    /// As [`Statements::take`].
    pub(super) take: Statement,
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        let surely = format!("where not {}", claimable("u"));
        let update = |more: &str| UPDATE.replace("{taken}", more).replace("{claimable}", &claimable("excluded"));
        let lock = format!("l as materialized (select {LOCK} as got),");
        let statement = |tail: &str, claims: [(&str, &str); 4], these: [(&str, &str); 3]| {
            let parts = claims.into_iter().chain(these);
            Statement::new(schema, &parts.fold([CLAIMS, tail].concat(), |text, (part, by)| text.replace(part, by)))
        };
        let committed = [("{lock}", ""), ("{got}", ""), ("{must_finish}", "null"), ("{inputs}", resume::INPUTS)];
        let [lock, got] = [("{lock}", lock.as_str()), ("{got}", "and (select got from l)")];
        let fresh =
            [("{surely}", ""), ("{conflict}", "nothing"), ("{returning}", "k.kid, k.fence, k.epoch, k.attempt")];
        let (take, take_own) = (update(""), update(TAKEN));
        let taking = |update| [("{surely}", &*surely), ("{conflict}", update), ("{returning}", "k.*")];
        let one = |must_finish: &str, may: &str| INSERT_ONE.replace("{must_finish}", must_finish).replace("{may}", may);
        let in_transaction = [lock, got, ("{must_finish}", "u.kid"), ("{inputs}", "")];
        Self {
            fresh: statement(INSERTED, committed, fresh),
            one: Statement::new(
                schema,
                &[ONE, &INSERTED.replace("{inputs}", "")]
                    .concat()
                    .replace("{insert}", &one("null", "not exists (select from cur)")),
            ),
            take: statement(&TAKEN_OR_FOUND.replace("{planned}", ""), committed, taking(&take)),
            begin: Begin {
                fresh: Statement::new(schema, &one("$1::uuid", LOCK)),
                take: statement(&TAKEN_OR_FOUND.replace("{planned}", PLANNED), in_transaction, taking(&take_own)),
            },
        }
    }
}

/// `state::next` for a claim, in SQL too, since what is there is looked at and taken in one statement, as in every verb that writes.
/// `k` is the record, `{by}` the claim, whose `created_at` is the statement's instant, and whose
/// `rerun_until` is the epoch where its operation is never run again.
const CLAIMABLE: &str = "(k.attempt <> {by}.attempt and (
         k.state = 4
      or k.state = 2 and k.guard_until <= {by}.created_at
      or k.state = 3 and (k.expires_at <= {by}.created_at or not {same})
      or {by}.rerun_until > 'epoch' and k.rerun_until > {by}.created_at and {same}
         and (k.state = 6 or k.state = 1 and k.lease_until <= {by}.created_at)))";

/// `Fingerprint::matches`, for `CLAIMABLE`: 16384 is the bit of a digest whose first half is the scope's.
const SAME: &str = "(case when k.fp_alg = {by}.fp_alg then k.fp = {by}.fp
         else (k.fp_alg & 16384) = ({by}.fp_alg & 16384)
          and ((k.fp_alg & 16384) = 0 or substring(k.fp from 1 for 16) = substring({by}.fp from 1 for 16)) end)";

fn claimable(by: &str) -> String {
    CLAIMABLE.replace("{same}", SAME).replace("{by}", by)
}

/// `cur` is what is not to be inserted: to `fresh` all that is there, to `take` what is surely not to be taken; so replays and
/// refusals write nothing. Of what `fresh` reads, the library decides whether it may be taken, by `state::next`.
///
/// All else is inserted. Where a row is in the way, also one that was committed after this statement's snapshot, the conflict arm
/// of `take` locks its latest version and decides again; of `fresh` there is then no row.
///
/// In a transaction (`begin`), the row is seen by nobody before the commit, so a second attempt would wait for it at the
/// primary key. Instead each takes the record's lock first, and the second, whose `got` is false, inserts nothing. The lock is
/// taken after the snapshot; that does no harm, since the index, and the conflict arm, decide by what is latest. `must_finish`
/// makes the server refuse a commit before the outcome.
const CLAIMS: &str = "
with {lock} u as materialized (
  select u.kid, u.attempt, u.fp_alg, u.fp, u.scope, u.op, {now} as created_at,
         {now} + u.lease * interval '1 millisecond' as lease_until,
         {now} + u.ttl * interval '1 millisecond' as expires_at,
         {now} + u.guard * interval '1 millisecond' as guard_until,
         case when u.rerun = 0 then 'epoch' else {now} + u.rerun * interval '1 millisecond' end as rerun_until
    from unnest($1::uuid[], $2::uuid[], $3::int2[], $4::bytea[], $5::text[], $6::text[], $7::int8[], $8::int8[], $9::int8[],
                $10::int8[])
         as u (kid, attempt, fp_alg, fp, scope, op, lease, ttl, guard, rerun)
),
cur as materialized (
  select k.* from u join {schema}.idem_key k on k.kid = u.kid {surely}
),
ins as (
  insert into {schema}.idem_key as k
         (kid, scope, op, state, fence, epoch, attempt, fp_alg, fp, lease_until, created_at, expires_at, guard_until,
          rerun_until, must_finish)
  select u.kid, u.scope, u.op, 1, u.fence, u.fence, u.attempt, u.fp_alg, u.fp, u.lease_until, u.created_at, u.expires_at,
         u.guard_until, u.rerun_until, {must_finish}
    from (select u.*, nextval('{schema}.idem_fence') as fence from u
           where u.kid not in (select cur.kid from cur) {got} offset 0) as u
   order by u.kid
  on conflict (kid) do {conflict}
  returning {returning}
)";

/// Of what was inserted the fence is all that is not known; its `state` is null.
const INSERTED: &str = ",{inputs}
r as (select * from cur)
select {columns}, {answer} from r
union all
select ins.kid, null, null, null, null, ins.fence, null, null, null, null, null, null, null, null, null, null, null, null, null,
       null, null, null
  from ins";

/// One row per record.
const TAKEN_OR_FOUND: &str = ",{inputs}
r as (select * from ins union all select * from cur)
select {columns}, {answer}{planned} from r";

/// The conflict arm. It writes unconditionally, since an arm with a `where` would return no row to a loser. `nextval`
/// stands in the SET list, too, so that it is drawn under the lock and a record's fences grow. What starts afresh has its
/// fence as its epoch: one number for both, hence the inner selects.
const UPDATE: &str = "update set
    scope       = case when {claimable} then excluded.scope else k.scope end,
    state       = case when {claimable} then 1 else k.state end,
    reason      = case when {claimable} then 0 else k.reason end,
    (fence, epoch) = (
      select d.fence, case when {claimable} and k.state in (2, 3, 4) then d.fence else k.epoch end
        from (select case when {claimable} then nextval('{schema}.idem_fence') else k.fence end as fence offset 0) as d
    ),
    attempt     = case when {claimable} then excluded.attempt else k.attempt end,
    attempts    = case when {claimable} then k.attempts + 1 else k.attempts end,
    fp_alg      = case when {claimable} then excluded.fp_alg else k.fp_alg end,
    fp          = case when {claimable} then excluded.fp else k.fp end,
    lease_until = case when {claimable} then excluded.lease_until else k.lease_until end,
    created_at  = case when {claimable} then excluded.created_at else k.created_at end,
    expires_at  = case when {claimable} then excluded.expires_at else k.expires_at end,
    guard_until = case when {claimable} then excluded.guard_until else k.guard_until end,
    rerun_until = case when {claimable} and k.state in (2, 3, 4) then excluded.rerun_until else k.rerun_until end,
    tries       = case when {claimable} then 0 else k.tries end,
    recover_at  = case when {claimable} then 'epoch' else k.recover_at end,
    status      = case when not {claimable} then k.status end,
    headers     = case when not {claimable} then k.headers end,
    body        = case when not {claimable} then k.body end{taken}";

const TAKEN: &str = ",
    must_finish = case when {claimable} then excluded.must_finish else k.must_finish end";

/// `$11` is the number of the record, its lock that of this schema's: locks are the whole database's. Only `xact` locks: those of a
/// session would stay with a pooler's connection.
const LOCK: &str = "pg_try_advisory_xact_lock(hashtextextended('{schema}', $11::int8))";

/// Puts back how the body's statements are planned; see `transaction::PLANS`. Without a row there is no body.
const PLANNED: &str = ",
       (select count(set_config(s.name, split_part(current_setting('idem.planner'), ' ', s.nr), true)) from (values
         (1, 'plan_cache_mode'), (2, 'enable_seqscan'), (3, 'enable_hashjoin'), (4, 'enable_mergejoin')) as s (nr, name))";

/// One record, if it may be. (The windows are those of `CLAIMS`, without lists.)
const INSERT_ONE: &str = "insert into {schema}.idem_key as k
       (kid, scope, op, state, fence, epoch, attempt, fp_alg, fp, lease_until, created_at, expires_at, guard_until,
        rerun_until, must_finish)
select $1::uuid, $5::text, $6::text, 1, u.fence, u.fence, $2::uuid, $3::int2, $4::bytea,
       u.now + $7::int8 * interval '1 millisecond', u.now, u.now + $8::int8 * interval '1 millisecond',
       u.now + $9::int8 * interval '1 millisecond',
       case when $10::int8 = 0 then 'epoch' else u.now + $10::int8 * interval '1 millisecond' end, {must_finish}
  from (select nextval('{schema}.idem_fence') as fence, {now} as now where {may} offset 0) as u
on conflict (kid) do nothing
returning k.kid, k.fence";

const ONE: &str = "
with cur as materialized (select k.* from {schema}.idem_key k where k.kid = $1::uuid),
ins as (
  {insert}
)";
