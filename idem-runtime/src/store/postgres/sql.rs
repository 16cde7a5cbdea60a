//! Every statement but those of `order`, `purge`, `resolve`, `step` and `survey`, in the order of the verbs. Each is one round trip and one
//! transaction, whatever the number of records; rows are locked in the order of `kid`, so two slices never wait for each
//! other in a circle.
//!
//! `{schema}` stands for the schema, `{now}` for the one instant of a statement: the moment at which the server received
//! it, in whole milliseconds, so that SQL and Rust read the same deadlines alike. Waiting for a lock does not move it:
//! a lease counts from before the wait, as its owner counts it.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::{list, order, purge, recover, resolve, resume, step, survey};

/// The statements of one schema.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) claim: Statement,
    pub(super) begin: Statement,
    pub(super) order: Statement,
    pub(super) peek: Statement,
    pub(super) finish: Statement,
    pub(super) renew: Statement,
    pub(super) link: Statement,
    pub(super) find: Statement,
    pub(super) list: Statement,
    pub(super) list_open: Statement,
    pub(super) by_link: Statement,
    pub(super) resolving: resolve::Statements,
    pub(super) recover: Statement,
    pub(super) put_off: Statement,
    pub(super) interrupted: Statement,
    pub(super) note_open: Statement,
    pub(super) doubts: Statement,
    pub(super) settings: Statement,
    pub(super) schema: Statement,
    pub(super) purging: purge::Statements,
    pub(super) steps: step::Statements,
}

/// A statement's text, with `$1`, `$2`, … for its arguments.
#[derive(Debug, Clone)]
pub(super) struct Statement(SqlStr);

impl Statement {
    pub(super) fn new(schema: &str, template: &str) -> Self {
        let text = template
            .replace("{claimable:u}", &claimable("u"))
            .replace("{claimable:excluded}", &claimable("excluded"))
            .replace("{stands}", list::STANDS)
            .replace("{only_run}", ONLY_RUN)
            .replace("{columns}", COLUMNS)
            .replace("{now}", NOW)
            .replace("{schema}", &format!("\"{schema}\""));
        // Made of the texts below and of a schema's name, which was checked to be an identifier.
        Self(AssertSqlSafe(Arc::<str>::from(text)).into_sql_str())
    }

    pub(super) fn sql(&self) -> SqlStr {
        self.0.clone() // shared
    }

    pub(super) fn text(&self) -> &str {
        self.0.as_str()
    }
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        let statement = |template: &str| Statement::new(schema, template);
        Self {
            claim: statement(&claim(["", "", "null", "", resume::INPUTS, ""])),
            begin: statement(&claim([LOCK, "and (select got from l)", "u.kid", TAKEN, "", PLANNED])),
            order: statement(order::NOTE),
            peek: statement(PEEK),
            finish: statement(FINISH),
            renew: statement(RENEW),
            link: statement(LINK),
            find: statement(FIND),
            list: statement(&list::whole(list::LIST)),
            list_open: statement(&list::whole(list::OPEN)),
            by_link: statement(&list::whole(list::BY_LINK)),
            resolving: resolve::Statements::new(schema),
            recover: statement(&list::whole(recover::RECOVER)),
            put_off: statement(recover::PUT_OFF),
            interrupted: statement(resume::INTERRUPTED),
            note_open: statement(survey::NOTE_OPEN),
            doubts: statement(survey::DOUBTS),
            settings: statement(SETTINGS),
            schema: statement(SCHEMA),
            purging: purge::Statements::new(schema),
            steps: step::Statements::new(schema),
        }
    }
}

const NOW: &str = "date_trunc('milliseconds', statement_timestamp())";

/// A record as `record::found` reads it. Deadlines are rounded up, which changes nothing in what the library wrote.
const COLUMNS: &str = "
    r.kid, r.op, r.scope, r.state, r.reason, r.fence, r.attempt, r.attempts, r.epoch, r.fp_alg, r.fp,
    ceil(extract(epoch from r.lease_until) * 1000)::int8 as lease_until,
    floor(extract(epoch from r.created_at) * 1000)::int8 as created_at,
    ceil(extract(epoch from r.expires_at) * 1000)::int8 as expires_at,
    ceil(extract(epoch from r.guard_until) * 1000)::int8 as guard_until,
    r.tries, ceil(extract(epoch from r.recover_at) * 1000)::int8 as recover_at,
    ceil(extract(epoch from r.rerun_until) * 1000)::int8 as rerun_until,
    floor(extract(epoch from {now}) * 1000)::int8 as now";

/// Not `Facts::continued`: `k` is the first run of its operation, or may not have had another.
const ONLY_RUN: &str = "(k.fence = k.epoch or k.rerun_until <= 'epoch')";

/// `state::next` for a claim, in SQL too, since looking and taking are one statement here, as in every verb that writes.
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

/// Takes what may be taken and reads the rest; one row per record, always.
///
/// `cur` is what is surely not to be taken, so replays and refusals write nothing. All else is inserted. Where a row is
/// in the way, also one that was committed after this statement's snapshot, the conflict arm locks its latest version
/// and decides again; it writes unconditionally, since an arm with a `where` would return no row to a loser. `nextval`
/// stands in the SET list, too, so that it is drawn under the lock and a record's fences grow. What starts afresh has its
/// fence as its epoch: one number for both, hence the inner selects.
///
/// `locked` rows may be newer than the snapshot that their answer was looked up in; `cur` rows are of the same.
///
/// In a transaction (`begin`), the row is seen by nobody before the commit, so a second attempt would wait for it at the
/// primary key. Instead each takes the record's lock first, and the second, whose `got` is false, gets no row. The lock is
/// taken after the snapshot; that does no harm, since the conflict arm decides by what is latest. `must_finish` makes the
/// server refuse a commit before the outcome.
const CLAIM: &str = "
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
  select k.* from u join {schema}.idem_key k on k.kid = u.kid where not {claimable:u}
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
  on conflict (kid) do update set
    scope       = case when {claimable:excluded} then excluded.scope else k.scope end,
    state       = case when {claimable:excluded} then 1 else k.state end,
    reason      = case when {claimable:excluded} then 0 else k.reason end,
    (fence, epoch) = (
      select d.fence, case when {claimable:excluded} and k.state in (2, 3, 4) then d.fence else k.epoch end
        from (select case when {claimable:excluded} then nextval('{schema}.idem_fence') else k.fence end as fence offset 0) as d
    ),
    attempt     = case when {claimable:excluded} then excluded.attempt else k.attempt end,
    attempts    = case when {claimable:excluded} then k.attempts + 1 else k.attempts end,
    fp_alg      = case when {claimable:excluded} then excluded.fp_alg else k.fp_alg end,
    fp          = case when {claimable:excluded} then excluded.fp else k.fp end,
    lease_until = case when {claimable:excluded} then excluded.lease_until else k.lease_until end,
    created_at  = case when {claimable:excluded} then excluded.created_at else k.created_at end,
    expires_at  = case when {claimable:excluded} then excluded.expires_at else k.expires_at end,
    guard_until = case when {claimable:excluded} then excluded.guard_until else k.guard_until end,
    rerun_until = case when {claimable:excluded} and k.state in (2, 3, 4) then excluded.rerun_until else k.rerun_until end,
    tries       = case when {claimable:excluded} then 0 else k.tries end,
    recover_at  = case when {claimable:excluded} then 'epoch' else k.recover_at end{taken}
  returning k.*
),{inputs}
r as (select ins.*, true as locked from ins union all select cur.*, false from cur)
select {columns}, r.locked, p.kid is not null as answered, p.status, p.headers, p.body{planned}
  from r left join {schema}.idem_response p on p.kid = r.kid and r.state in (2, 3) and r.expires_at > {now}";

/// `$11` is the number of the record, its lock that of this schema's: locks are the whole database's. Only `xact` locks: those of a session would stay with a pooler's connection.
const LOCK: &str =
    "l as materialized (select pg_try_advisory_xact_lock(hashtextextended('{schema}', $11::int8)) as got),";

const TAKEN: &str = ",
    must_finish = case when {claimable:excluded} then excluded.must_finish else k.must_finish end";

/// Puts back how the body's statements are planned; see `transaction::PLANS`. Without a row there is no body.
pub(super) const PLANNED: &str = ",
       (select count(set_config(s.name, split_part(current_setting('idem.planner'), ' ', s.nr), true)) from (values
         (1, 'plan_cache_mode'), (2, 'enable_seqscan'), (3, 'enable_hashjoin'), (4, 'enable_mergejoin')) as s (nr, name))";

fn claim([lock, got, must_finish, taken, inputs, planned]: [&str; 6]) -> String {
    let claim = CLAIM.replace("{lock}", lock).replace("{got}", got).replace("{must_finish}", must_finish);
    claim.replace("{taken}", taken).replace("{inputs}", inputs).replace("{planned}", planned)
}

/// Reads records and the answers that are due, all of one snapshot.
const PEEK: &str = "
select {columns}, false as locked, p.kid is not null as answered, p.status, p.headers, p.body
  from unnest($1::uuid[]) as u (kid)
  join {schema}.idem_key r on r.kid = u.kid
  left join {schema}.idem_response p on p.kid = r.kid and r.state in (2, 3) and r.expires_at > {now}";

/// Ends runs, as `Row::finish` does. `cur` locks what belongs to the attempt and reads its latest version; one that
/// stands already where the finish leads had been finished by an earlier try, and is not written again. The windows of
/// an answer in time stay, so that no index is touched. A program, or a body, may have set its session so that a commit does not
/// wait for the disk; the last word about this one is ours, and costs no statement.
const FINISH: &str = "
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
  update {schema}.idem_key k set
    state       = u.state,
    reason      = u.reason,
    must_finish = null,
    lease_until = case when u.state in (5, 6) then least(k.lease_until, u.now) else k.lease_until end,
    expires_at  = case when u.state = 3 then least(k.expires_at, u.now + u.keep * interval '1 millisecond')
                       when u.state = 2 and u.now - k.created_at >= (k.expires_at - k.created_at) / 2
                       then u.now + (k.expires_at - k.created_at) else k.expires_at end,
    guard_until = case when u.state = 2 and u.now - k.created_at >= (k.expires_at - k.created_at) / 2
                       then u.now + (k.guard_until - k.created_at) else k.guard_until end
    from cur join u on u.kid = cur.kid
   where k.kid = cur.kid and k.attempt = u.attempt and k.state in (1, 5, 6)
     and case u.state when 2 then true
                      when 5 then k.state = 1
                      when 6 then k.state <> 6
                      else {only_run} end
  returning k.kid, k.state, k.expires_at
),
answered as (
  insert into {schema}.idem_response (kid, status, headers, body)
  select u.kid, u.status, u.headers, u.body from u join moved on moved.kid = u.kid
   where u.state in (2, 3) order by u.kid
  on conflict (kid) do update set status = excluded.status, headers = excluded.headers, body = excluded.body
)
select cur.kid, coalesce(moved.state, cur.state) as state,
       ceil(extract(epoch from coalesce(moved.expires_at, cur.expires_at)) * 1000)::int8 as expires_at,
       floor(extract(epoch from {now}) * 1000)::int8 as now,
       case when current_setting('synchronous_commit') = 'off'
            then set_config('synchronous_commit', 'on', true) end as durable
  from cur left join moved on moved.kid = cur.kid";

/// Prolongs leases without waiting for a lock. `mine` is what the snapshot shows of a record that was not prolonged.
const RENEW: &str = "
with u as materialized (select * from unnest($1::uuid[], $2::uuid[]) as u (kid, attempt)),
free as materialized (
  select k.kid from u join {schema}.idem_key k on k.kid = u.kid and k.attempt = u.attempt
   where k.state = 1 order by k.kid for update of k skip locked
),
held as (
  update {schema}.idem_key k set lease_until = {now} + $3::int8 * interval '1 millisecond'
    from free where k.kid = free.kid
  returning k.kid
)
select u.kid, held.kid is not null as held, k.kid is not null as mine
  from u
  left join held on held.kid = u.kid
  left join {schema}.idem_key k on k.kid = u.kid and k.attempt = u.attempt and k.state = 1";

/// Records providers' ids. The same link again writes nothing; a late one of an earlier epoch does not hide a newer.
const LINK: &str = "
insert into {schema}.idem_link as l (provider, id, kid, epoch, attempt, at, nr)
select distinct on (u.provider, u.id, u.kid) u.provider, u.id, u.kid, u.epoch, u.attempt, {now}, u.nr
  from unnest($1::text[], $2::text[], $3::uuid[], $4::int8[], $5::uuid[]) with ordinality
       as u (provider, id, kid, epoch, attempt, nr)
 order by u.provider, u.id, u.kid, u.epoch desc, u.nr
on conflict (provider, id, kid) do update set epoch = excluded.epoch, attempt = excluded.attempt
 where excluded.epoch > l.epoch";

/// A record and its epoch's links, oldest first: one row per link, or one without.
const FIND: &str = "
select {columns}, l.provider, l.id
  from {schema}.idem_key r
  left join {schema}.idem_link l on l.kid = r.kid and l.epoch = r.epoch
 where r.kid = $1::uuid
 order by l.at, l.nr";

/// What `check` looks at, as our own connections see it, and those of the user's pool.
const SETTINGS: &str = "
select current_setting('server_version_num')::int4 as server, current_setting('synchronous_commit') as synchronous_commit,
       current_setting('fsync')::bool as fsync, pg_is_in_recovery() as standby,
       current_setting('transaction_read_only')::bool as read_only,
       current_setting('session_replication_role') = 'replica' as unchecked, to_regclass('{schema}.idem_meta') is not null as migrated";

/// The last migration that ran.
const SCHEMA: &str = "select schema from {schema}.idem_meta where id = 1";
