//! Every statement, in the order of the verbs. They only read and write: what a record may become is decided by
//! `row` between a read and a write, and `BEGIN` is what keeps the two together.

use super::repeated::Repeated;

/// Milliseconds since 1970 by SQLite's clock, which stands still within a statement.
macro_rules! now {
    () => {
        "cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer)"
    };
}

macro_rules! columns {
    () => {
        "k.op, k.scope, k.state, k.reason, k.fence, k.attempt, k.attempts, k.epoch, k.fp_alg, k.fp,
         k.lease_until, k.created_at, k.expires_at, k.guard_until, k.tries, k.recover_at,
         k.rerun_until"
    };
}

pub(super) use {columns, now};

/// Opens every transaction that writes. Takes the write lock before the first read, so what is read stays true until
/// the commit, also against other processes. A plain `begin` that reads first cannot wait for the lock afterwards:
/// SQLite answers "database is locked" at once, whatever the time-out.
pub(super) const BEGIN: &str = "begin immediate";

/// The instant of a verb that writes; read under the write lock, so none acts at an instant before that of the one it waited for, unless
/// the clock is set back. LOOK reads it, too.
pub(super) const NOW: &str = concat!("select ", now!());

/// Draws a fence. Under the write lock, so no two that are committed are the same.
pub(super) const FENCE: &str = "update idem_meta set fence = fence + 1 where id = 1 returning fence";

/// A record under the write lock, without its answer.
pub(super) const ROW: &str = concat!("select ", columns!(), ", ", now!(), " as now from idem_key k where k.kid = ?1");

/// What every claim, completion and peek begins with: one statement, so rows, answers, time and the last fence are of one
/// snapshot. Without the write lock it may be outdated by the time it is read; that is harmless for all that is final or
/// refused, and whatever looks free is read again under the lock. Only answers that may be due are joined: their bodies can
/// be long. It has a row also where there is no record.
pub(super) static LOOK: Repeated = Repeated::new(concat!(
    "select m.fence as last, ",
    now!(),
    " as now, k.kid, ",
    columns!(),
    ", p.id is not null as answered, p.status, p.headers, p.body
       from idem_meta m left join idem_key k on k.kid in (values (?), ..)
                        left join idem_response p on p.id = k.id and k.state in (2, 3)
      where m.id = 1"
));

/// Takes records, and notes the last of the fences that were drawn for them. Only after LOOK in the same transaction said that
/// they are absent or free, which the write lock keeps true. A rollback takes the fences back, and the next claim draws them again.
///
/// `or fail`, here and in FINISH: else SQLite puts aside the pages that such a statement changes, to be able to undo it alone, and
/// that costs as much as the statement. Whatever fails in it ends the transaction.
///
/// Where `must_finish` is set, a commit before FINISH is refused: the reference is to a table that is always empty, and it is
/// looked at when the transaction ends.
pub(super) static CLAIM: Repeated = Repeated::new(
    "update idem_meta set fence = ? where id = 1;
    with taken (kid, scope, op, state, reason, fence, attempt, attempts, epoch, fp_alg, fp,
                lease_until, created_at, expires_at, guard_until, rerun_until, must_finish)
      as (values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?), ..)
    insert or fail
      into idem_key (kid, scope, op, state, reason, fence, attempt, attempts, epoch, fp_alg, fp,
                     lease_until, created_at, expires_at, guard_until, rerun_until, must_finish)
    select * from taken where kid is not null
    on conflict (kid) do update set
        scope = excluded.scope, op = excluded.op, state = excluded.state, reason = excluded.reason,
        fence = excluded.fence, attempt = excluded.attempt, attempts = excluded.attempts, epoch = excluded.epoch,
        fp_alg = excluded.fp_alg, fp = excluded.fp, lease_until = excluded.lease_until,
        created_at = excluded.created_at, expires_at = excluded.expires_at, guard_until = excluded.guard_until,
        rerun_until = excluded.rerun_until, must_finish = excluded.must_finish, tries = 0, recover_at = 0",
);

/// Keeps an argument, in the transaction of the claim that takes the record.
pub(super) const INPUT: &str = "
    insert into idem_input (kid, epoch, body) values (?1, ?2, ?3)
    on conflict (kid) do update set epoch = excluded.epoch, body = excluded.body";

/// Notes where an event stands, if that is higher than what is noted: then it changes a row. The write lock keeps it so.
pub(super) const ORDER: &str = "
    insert into idem_order (id, sequence, guard_until) values (?1, ?2, ?3)
    on conflict (id) do update set sequence = excluded.sequence, guard_until = excluded.guard_until
     where excluded.sequence > idem_order.sequence";

/// Ends runs, and keeps their answers. After LOOK in the same transaction said that the records are the attempts', which are
/// compared once more.
pub(super) static FINISH: Repeated = Repeated::new(
    "with ended (kid, attempt, state, reason, lease_until, expires_at, guard_until)
      as (values (?, ?, ?, ?, ?, ?, ?), ..)
    update or fail idem_key
       set state = ended.state, reason = ended.reason, lease_until = ended.lease_until,
           expires_at = ended.expires_at, guard_until = ended.guard_until, must_finish = null
      from ended where idem_key.kid = ended.kid and idem_key.attempt = ended.attempt;
    with answered (kid, status, headers, body) as (values (?, ?, ?, ?), ..)
    insert or fail into idem_response (id, status, headers, body)
    select k.id, a.status, a.headers, a.body from answered a cross join idem_key k on k.kid = a.kid where true
    on conflict (id) do update set status = excluded.status, headers = excluded.headers, body = excluded.body",
);

/// Keeps an answer, in the transaction that makes it due. Replaces one that an earlier epoch left behind.
pub(super) const ANSWER: &str = "
    insert into idem_response (id, status, headers, body) select id, ?2, ?3, ?4 from idem_key where kid = ?1
    on conflict (id) do update set status = excluded.status, headers = excluded.headers, body = excluded.body";

/// Prolongs leases: compare-and-set in one statement, which names those that it prolonged. 1 is in flight.
pub(super) static RENEW: Repeated = Repeated::new(
    "with held (kid, attempt) as (values (?, ?), ..)
    update or fail idem_key set lease_until = ?
      from held where idem_key.kid = held.kid and idem_key.attempt = held.attempt and idem_key.state = 1
    returning kid, attempt",
);

/// Records a provider's id. The same link again writes nothing; a late one of an earlier epoch does not hide a newer.
pub(super) const LINK: &str = "
    insert into idem_link (provider, id, kid, epoch, attempt, at) values (?1, ?2, ?3, ?4, ?5, ?6)
    on conflict (provider, id, kid) do update set epoch = excluded.epoch, attempt = excluded.attempt
     where excluded.epoch > idem_link.epoch";

/// The links of one epoch, oldest first. Links go with their record only, which is over for a minute
/// then, so a second snapshot after ROW does no harm.
pub(super) const LINKS: &str = "select provider, id from idem_link where kid = ?1 and epoch = ?2 order by at, rowid";

/// Settles a record. After ROW in the same transaction said that the fence is the one seen, which is compared once
/// more; the new attempt and fence shut out the old run.
pub(super) const RESOLVE: &str = "
    update idem_key set state = ?3, reason = ?4, fence = ?5, attempt = ?6, expires_at = ?7, guard_until = ?8,
                        recover_at = ?9, rerun_until = ?10
     where kid = ?1 and fence = ?2";

/// A voided record has no answer, not even one of an earlier epoch.
pub(super) const VOID: &str = "delete from idem_response where id = (select id from idem_key where kid = ?1)";

/// Who settled it and why, in the same transaction.
pub(super) const AUDIT: &str = "
    insert into idem_audit (at, kid, fence, from_state, to_state, who, why) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// Whether the first migration ever ran.
pub(super) const MIGRATED: &str = "
    select exists (select 1 from sqlite_schema where type = 'table' and name = 'idem_meta')";

/// The last migration that ran.
pub(super) const SCHEMA: &str = "select schema from idem_meta where id = 1";

/// Marks a migration as run. In the transaction of the migration, so another process sees both or neither.
pub(super) const MARK: &str = "update idem_meta set schema = ?1 where id = 1";

/// What is in doubt, by operation. Reads the index of open records only. With `min`, the other columns are of the row that
/// has it.
pub(super) const DOUBTS: &str = concat!(
    "select k.op, k.kid, count(*) as count,
            min(case when k.state = 5 then k.lease_until else max(k.lease_until, k.rerun_until) end) as since, ",
    now!(),
    " as now
       from idem_key k
      where k.state in (1, 5, 6) and (k.state = 5 or max(k.lease_until, k.rerun_until) <= ",
    now!(),
    ")
      group by k.op order by k.op"
);
