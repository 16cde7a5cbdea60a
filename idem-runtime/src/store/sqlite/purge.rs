//! Removing what is over. `row` decides nothing here: its two rules are short, and told in SQL so that one statement can
//! serve many records.

use sqlx::{Row as _, SqliteConnection};

use super::{
    error::{corrupt, failed},
    sql::now,
    verbs,
};
use crate::{
    key::RecordId,
    store::{Due, Mark, Purge, Purged, StoreError, Strip, Stripped, purge::GRACE, row::Millis},
};

/// One transaction removes no more than this: claims wait for its end.
pub(super) const AT_ONCE: u32 = 250;

/// From so much that is due on all records are counted too, and where counting stops: each record is looked up.
const COUNTED: (i64, i64) = (1_000, 50_000);

const SINCE: &str = concat!("select ", now!(), " - purged_at from idem_meta where id = 1");

const LAST: &str = "select purged_at from idem_meta where id = 1";

const COUNT: &str = concat!(
    "select count(*) from (select 1 from idem_key indexed by idem_key_guard
                            where guard_until < ",
    now!(),
    " - ?1 and state in (2, 3, 4) limit ?2)"
);

/// Reads a whole index.
const COUNT_ALL: &str = "select count(*) from idem_key";

/// The same records for each statement of one transaction: the write lock keeps them.
macro_rules! over {
    ($column:literal) => {
        concat!(
            "(select ",
            $column,
            " from idem_key indexed by idem_key_guard where guard_until < ?1 and state in (2, 3, 4)
           order by guard_until, kid limit ?2)"
        )
    };
}

const PURGE: [&str; 5] = [
    concat!("delete from idem_response where id in ", over!("id")),
    concat!("delete from idem_link where kid in ", over!("kid")),
    concat!("delete from idem_step where kid in ", over!("kid")),
    concat!("delete from idem_input where kid in ", over!("kid")),
    concat!("delete from idem_key where id in ", over!("id")),
];

/// As many, beside the records.
const PURGE_ORDERS: &str = "
    delete from idem_order where id in (select id from idem_order indexed by idem_order_guard where guard_until < ?1
                                         order by guard_until, id limit ?2)";

const NOTE: &str = "update idem_meta set purged_at = ?1 where id = 1";

const LOOK: &str = "
    select id, kid, guard_until, state = 2 and expires_at <= ?1 as bare from idem_key indexed by idem_key_guard
     where guard_until >= ?2 and guard_until <= ?3 and (guard_until, kid) > (?4, ?5)
     order by guard_until, kid limit ?6";

const DROP: &str = "delete from idem_response where id = ?1";

pub(super) async fn due(reader: &mut SqliteConnection) -> Result<Due, StoreError> {
    let since: i64 = sqlx::query_scalar(SINCE).fetch_one(&mut *reader).await.map_err(failed)?;
    let count = sqlx::query_scalar::<_, i64>(COUNT).bind(Millis(0).plus(GRACE).0).bind(COUNTED.1);
    let due = count.fetch_one(&mut *reader).await.map_err(failed)?;
    // Where little is due nobody asks of how many.
    let of = match due <= COUNTED.0 {
        true => due,
        false => sqlx::query_scalar(COUNT_ALL).fetch_one(reader).await.map_err(failed)?,
    };
    let records = if due < COUNTED.1 { due } else { of };
    let since_purge = Millis(since).since(Millis(0));
    Ok(Due { since_purge, records: records.unsigned_abs(), of: of.max(due).unsigned_abs() })
}

/// Removes what is over and notes the time.
pub(super) async fn purge(transaction: &mut SqliteConnection, purge: &Purge) -> Result<Purged, StoreError> {
    let now = verbs::now(transaction).await?;
    let last = sqlx::query_scalar(LAST).fetch_one(&mut *transaction).await.map_err(failed)?;
    if now.since(Millis(last)) > purge.within {
        return Ok(Purged { refused: true, ..Purged::default() });
    }
    let limit = purge.limit.min(AT_ONCE);
    let before = now.0.saturating_sub(Millis(0).plus(GRACE).0);
    let orders = remove(transaction, PURGE_ORDERS, before, limit).await?;
    let mut records = 0;
    for statement in PURGE {
        records = remove(transaction, statement, before, limit).await?; // the last is the records
    }
    sqlx::query(NOTE).bind(now.0).execute(transaction).await.map_err(failed)?;
    Ok(Purged { records, more: records.max(orders) >= limit, refused: false })
}

/// How many it removed.
async fn remove(
    transaction: &mut SqliteConnection,
    statement: &'static str,
    before: i64,
    limit: u32,
) -> Result<u32, StoreError> {
    let done = sqlx::query(statement).bind(before).bind(limit).execute(transaction).await.map_err(failed)?;
    Ok(u32::try_from(done.rows_affected()).unwrap_or(u32::MAX))
}

/// Drops answers that are not due any more.
pub(super) async fn strip(transaction: &mut SqliteConnection, strip: &Strip) -> Result<Stripped, StoreError> {
    let now = verbs::now(transaction).await?;
    let limit = strip.limit.min(AT_ONCE);
    let until = now.plus(strip.late);
    let from = until.0.saturating_sub(Millis(0).plus(strip.back).0);
    let (at, kid) =
        strip.after.map_or((i64::MIN, Vec::new()), |mark| (mark.guard_until, mark.record.as_bytes().to_vec()));
    let looked = sqlx::query(LOOK)
        .bind(now.0)
        .bind(from.max(at))
        .bind(until.0)
        .bind(at)
        .bind(kid)
        .bind(limit)
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed)?;
    let mut stripped = Stripped::default();
    for row in &looked {
        let kid: &[u8] = row.try_get("kid").map_err(failed)?;
        if row.try_get::<bool, _>("bare").map_err(failed)? {
            let id: i64 = row.try_get("id").map_err(failed)?;
            let done = sqlx::query(DROP).bind(id).execute(&mut *transaction).await.map_err(failed)?;
            stripped.answers += u32::try_from(done.rows_affected()).unwrap_or(0);
        }
        let kid = <[u8; 16]>::try_from(kid).map_err(|_| corrupt("`kid` has not 16 bytes"))?;
        let mark = Mark { guard_until: row.try_get("guard_until").map_err(failed)?, record: RecordId::from(kid) };
        stripped.next = Some(mark);
    }
    if looked.len() < usize::try_from(limit).unwrap_or(usize::MAX) {
        stripped.next = None;
    }
    Ok(stripped)
}

/// What a test looks at the plans of.
#[cfg(test)]
pub(super) fn statements() -> [&'static str; 7] {
    [PURGE[0], PURGE[1], PURGE[2], PURGE[3], PURGE_ORDERS, LOOK, COUNT]
}
