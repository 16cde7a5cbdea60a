//! Every statement but those of `claim`, `finish`, `order`, `purge`, `resolve`, `step` and `survey`, in the order of the verbs.
//! Each is one round trip and one transaction, whatever the number of records; rows are locked in the order of `kid`, so two
//! slices never wait for each other in a circle.
//!
//! `{schema}` stands for the schema, `{now}` for the one instant of a statement: the moment at which the server received
//! it, in whole milliseconds, so that SQL and Rust read the same deadlines alike. Waiting for a lock does not move it:
//! a lease counts from before the wait, as its owner counts it.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::{claim, finish, list, order, purge, recover, resolve, resume, step, survey};

/// The statements of one schema.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) claiming: claim::Statements,
    pub(super) order: Statement,
    pub(super) peek: Statement,
    pub(super) finishing: finish::Statements,
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
            .replace("{durable}", DURABLE)
            .replace("{stands}", list::STANDS)
            .replace("{only_run}", ONLY_RUN)
            .replace("{columns}", COLUMNS)
            .replace("{answer}", ANSWER)
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
            claiming: claim::Statements::new(schema),
            order: statement(order::NOTE),
            peek: statement(PEEK),
            finishing: finish::Statements::new(schema),
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

/// The answer of `r`, as long as it is due. Without headers there is none.
const ANSWER: &str = "
    case when r.state in (2, 3) and r.expires_at > {now} then r.status end as status,
    case when r.state in (2, 3) and r.expires_at > {now} then r.headers end as headers,
    case when r.state in (2, 3) and r.expires_at > {now} then r.body end as body";

/// Not `Facts::continued`: `k` is the first run of its operation, or may not have had another.
const ONLY_RUN: &str = "(k.fence = k.epoch or k.rerun_until <= 'epoch')";

/// Reads records and the answers that are due.
const PEEK: &str = "
select {columns}, {answer} from unnest($1::uuid[]) as u (kid) join {schema}.idem_key r on r.kid = u.kid";

/// The last word about how durable this commit is, whatever the session is set to.
const DURABLE: &str = ",
       case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', true) end as durable";

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
  returning k.kid, k.attempt
)
select u.kid, u.attempt, held.kid is not null as held, k.kid is not null as mine
  from u
  left join held on held.kid = u.kid and held.attempt = u.attempt
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
