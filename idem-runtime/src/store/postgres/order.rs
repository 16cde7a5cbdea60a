//! Where events stand among those of their object: the statement of a transaction that applies one.

use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::{
    argument::Arg,
    record::column,
    transaction,
    verbs::{contradiction, millis},
};
use crate::store::{Order, StoreError};

/// Notes a sequence, if it is higher than the one that is noted; the conflict arm decides by the latest version of the row, also
/// one that was committed after this statement's snapshot.
///
/// Nobody sees the note before the commit, so a second event of the object would wait for it, on a connection of the user's pool
/// and for as long as a body may take. Instead each takes the order's lock first, and whoever does not get it is refused, gives
/// its claim back and comes again. So no transaction waits for another one here, and none can do so in a circle, whatever locks
/// bodies take later. Only the purge of this very row is waited for, which is one short statement of its own. The lock is taken
/// after the snapshot, as that of a claim, and is the whole database's, hence the schema in it; the second word keeps it apart
/// from the locks of records.
pub(super) const NOTE: &str = "
with l as materialized (select pg_try_advisory_xact_lock(hashtextextended('{schema} order', $4::int8)) as got),
noted as (
  insert into {schema}.idem_order as o (id, sequence, guard_until)
  select $1::uuid, $2::int8, {now} + $3::int8 * interval '1 millisecond' from l where l.got
  on conflict (id) do update set sequence = excluded.sequence, guard_until = excluded.guard_until
   where o.sequence < excluded.sequence
  returning o.id
)
select l.got, exists (select from noted) as noted from l";

/// What a note came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noted {
    /// It is the highest.
    Yes,
    /// One as high, or higher, is noted.
    Stale,
    /// Another transaction has the order's lock.
    Busy,
}

pub(super) fn args(order: &Order) -> [Arg<'static>; 4] {
    let id = order.id.as_bytes();
    let (sequence, keep) = (Arg::Long(order.sequence), Arg::Long(millis(order.keep)));
    [Arg::Uuid(Uuid::from_bytes(*id)), sequence, keep, Arg::Long(transaction::lock(id))]
}

pub(super) fn noted(row: Option<&PgRow>) -> Result<Noted, StoreError> {
    let row = row.ok_or_else(contradiction)?;
    Ok(match (column(row, "got")?, column(row, "noted")?) {
        (true, true) => Noted::Yes,
        (true, false) => Noted::Stale,
        (false, _) => Noted::Busy,
    })
}
