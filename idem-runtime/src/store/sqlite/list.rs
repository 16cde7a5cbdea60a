//! Looking at more than one record, on a connection that reads.

use std::time::{Duration, SystemTime};

use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    error::{corrupt, failed},
    record,
    sql::{columns, now},
    verbs,
};
use crate::{
    key::RecordId,
    store::{Filter, Page, Record, StoreError, list::LINKED, row::Millis},
};

macro_rules! asked {
    () => {
        concat!(
            "(?2 is null or k.op = ?2) and (?3 is null or k.scope = ?3)
             and (?4 is null or ?4 = case when k.state in (1, 6) and k.lease_until <= ",
            now!(),
            " then case when k.rerun_until <= ",
            now!(),
            " then 5 else 6 end else k.state end)
             and (?5 is null or k.created_at <= ",
            now!(),
            " - ?5)"
        )
    };
}

/// In the order of the index of `kid`, so a page stops where it is full.
const LIST: &str = concat!(
    "select k.kid, ",
    columns!(),
    ", ",
    now!(),
    " as now from idem_key k where (?1 is null or k.kid > ?1) and ",
    asked!(),
    " order by k.kid limit ?6"
);

/// Reads the index of open records only; those are sorted.
const OPEN: &str = concat!(
    "select k.kid, ",
    columns!(),
    ", ",
    now!(),
    " as now from idem_key k indexed by idem_key_open where k.state in (1, 5, 6) and (?1 is null or k.kid > ?1) and ",
    asked!(),
    " order by k.kid limit ?6"
);

/// By the primary key of links.
const BY_LINK: &str = concat!(
    "select k.kid, ",
    columns!(),
    ", ",
    now!(),
    " as now from idem_link l join idem_key k on k.kid = l.kid
      where l.provider = ?1 and l.id = ?2 order by k.kid limit ?3"
);

pub(super) async fn list(
    reader: &mut SqliteConnection,
    filter: &Filter,
    page: Page,
) -> Result<Vec<Record>, StoreError> {
    let rows = sqlx::query(if filter.is_open() { OPEN } else { LIST })
        .bind(page.after.map(|after| after.as_bytes().to_vec()))
        .bind(filter.op.as_deref())
        .bind(filter.scope.as_deref())
        .bind(filter.state.map(crate::state::State::code))
        .bind(filter.older_than.map(|age| Millis(0).plus(age).0))
        .bind(page.size())
        .fetch_all(&mut *reader)
        .await
        .map_err(failed)?;
    with_links(reader, &rows).await
}

pub(super) async fn linked(reader: &mut SqliteConnection, provider: &str, id: &str) -> Result<Vec<Record>, StoreError> {
    let rows = sqlx::query(BY_LINK).bind(provider).bind(id).bind(LINKED).fetch_all(&mut *reader).await;
    with_links(reader, &rows.map_err(failed)?).await
}

async fn with_links(reader: &mut SqliteConnection, rows: &[SqliteRow]) -> Result<Vec<Record>, StoreError> {
    let mut records = Vec::with_capacity(rows.len());
    for row in rows {
        let kid: &[u8] = row.try_get("kid").map_err(failed)?;
        let id = <[u8; 16]>::try_from(kid).map_err(|_| corrupt("`kid` has not 16 bytes"))?;
        records.push(shown(reader, RecordId::from(id), record::found(row)?).await?);
    }
    Ok(records)
}

/// A record as operators see it.
pub(super) async fn shown(
    reader: &mut SqliteConnection,
    id: RecordId,
    found: record::Stored,
) -> Result<Record, StoreError> {
    let links = verbs::links(reader, id, found.row.epoch).await?;
    let since_1970 = Duration::from_millis(u64::try_from(found.now.0).unwrap_or(0));
    Ok(found.row.record(id, (found.op, found.scope), links, found.now, SystemTime::UNIX_EPOCH + since_1970))
}

/// What a test looks at the plans of.
#[cfg(test)]
pub(super) fn statements() -> [&'static str; 2] {
    [OPEN, BY_LINK]
}
