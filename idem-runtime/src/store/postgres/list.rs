//! Looking at more than one record. What is open is found by `idem_open`, which the look for doubts keeps.

use std::time::{Duration, SystemTime};

use sqlx::postgres::PgRow;

use super::{
    argument::{Arg, text},
    record::{self, column},
    verbs::{Verbs, millis, uuid},
};
use crate::{
    key::RecordId,
    store::{Filter, Page, Record, StoreError, list::LINKED},
};

/// In the order of the primary key, so a page stops where it is full. An empty list is no condition.
pub(super) const LIST: &str = "
with r as materialized (
  select k.* from {schema}.idem_key k where k.kid > $1::uuid and {asked} order by k.kid limit $6::int8
)
{shown}";

pub(super) const OPEN: &str = "
with r as materialized (
  select k.* from {schema}.idem_open o join {schema}.idem_key k on k.kid = o.kid
   where o.kid > $1::uuid and k.state in (1, 5, 6) and {asked} order by o.kid limit $6::int8
)
{shown}";

pub(super) const BY_LINK: &str = "
with r as materialized (
  select k.* from {schema}.idem_link f join {schema}.idem_key k on k.kid = f.kid
   where f.provider = $1::text and f.id = $2::text order by k.kid limit $3::int8
)
{shown}";

/// `Row::shown`: the state in which `k` stands for whoever looks.
pub(super) const STANDS: &str = "(case when k.state in (1, 6) and k.lease_until <= {now}
         then case when k.rerun_until <= {now} then 5 else 6 end else k.state end)";

const ASKED: &str = "(cardinality($2::text[]) = 0 or k.op = any ($2::text[]))
     and (cardinality($3::text[]) = 0 or k.scope = any ($3::text[]))
     and (cardinality($4::int2[]) = 0
          or {stands} = any ($4::int2[]))
     and ($5::int8 = 0 or k.created_at <= {now} - $5::int8 * interval '1 millisecond')";

/// One row per link of the record's epoch, oldest first, or one without.
const SHOWN: &str = "select {columns}, l.provider, l.id
  from r left join {schema}.idem_link l on l.kid = r.kid and l.epoch = r.epoch
 order by r.kid, l.at, l.nr";

/// A template with what these have in common.
pub(super) fn whole(template: &str) -> String {
    template.replace("{asked}", ASKED).replace("{shown}", SHOWN)
}

impl Verbs {
    pub(super) async fn list(&self, filter: &Filter, page: Page) -> Result<Vec<Record>, StoreError> {
        let statement = if filter.is_open() { &self.statements.list_open } else { &self.statements.list };
        let args = arguments(filter, page);
        records(&self.connections.rows(statement, &args).await?)
    }

    pub(super) async fn linked(&self, provider: &str, id: &str) -> Result<Vec<Record>, StoreError> {
        let args = [Arg::Text(text(provider)), Arg::Text(text(id)), Arg::Long(LINKED.into())];
        records(&self.connections.rows(&self.statements.by_link, &args).await?)
    }
}

pub(super) fn arguments(filter: &Filter, page: Page) -> [Arg<'_>; 6] {
    [
        Arg::Uuid(page.after.map_or(uuid::Uuid::nil(), uuid)),
        Arg::Texts(filter.op.iter().map(|op| text(op)).collect()),
        Arg::Texts(filter.scope.iter().map(|scope| text(scope)).collect()),
        Arg::Shorts(filter.state.iter().map(|state| state.code()).collect()),
        Arg::Long(filter.older_than.map_or(0, millis)),
        Arg::Long(page.size().into()),
    ]
}

/// Records from rows that follow each other.
pub(super) fn records(shown: &[PgRow]) -> Result<Vec<Record>, StoreError> {
    Ok(rows(shown)?.into_iter().map(|(record, _)| record).collect())
}

/// The same, with how often each has been tried.
pub(super) fn rows(rows: &[PgRow]) -> Result<Vec<(Record, u32)>, StoreError> {
    let mut records: Vec<(Record, u32)> = Vec::new();
    for row in rows {
        let id = RecordId::from(record::kid(row)?.into_bytes());
        if records.last().is_none_or(|(last, _)| last.id != id) {
            let (op, scope) = (column(row, "op")?, column(row, "scope")?);
            let (row, now) = record::found(row)?;
            let since_1970 = Duration::from_millis(u64::try_from(now.0).unwrap_or(0));
            let record = row.record(id, (op, scope), Vec::new(), now, SystemTime::UNIX_EPOCH + since_1970);
            records.push((record, row.tries));
        }
        if let (Some((record, _)), Some(provider), Some(link)) =
            (records.last_mut(), column(row, "provider")?, column(row, "id")?)
        {
            record.links.push((provider, link));
        }
    }
    Ok(records)
}
