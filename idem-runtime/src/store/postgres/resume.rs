//! Keeping arguments, and going on with what was interrupted. That is found by `idem_open`, which the look for doubts keeps.

use std::collections::HashMap;

use bytes::Bytes;
use uuid::Uuid;

use super::{
    argument::Arg,
    list,
    record::{self, column},
    verbs::{Verbs, contradiction, millis, uuid},
};
use crate::store::{Resume, Resuming, StoreError};

/// Part of a claim: keeps the arguments of those that took their record, where the attempt is theirs; whoever had it already
/// stands in `cur`. Written under the lock of the record, so in the order of its claims. What runs in a transaction has none.
pub(super) const INPUTS: &str = "
inputs as (
  insert into {schema}.idem_input as i (kid, epoch, body)
  select ins.kid, ins.epoch, n.body
    from unnest($1::uuid[], $2::uuid[], $11::bytea[]) as n (kid, attempt, body)
    join ins on ins.kid = n.kid and ins.attempt = n.attempt
   where n.body is not null
  on conflict (kid) do update set epoch = excluded.epoch, body = excluded.body
   where i.epoch <> excluded.epoch or i.body <> excluded.body
),";

/// As `Row::resuming` and `Resume::back_off`. What another process takes at this instant is locked and gone by.
pub(super) const INTERRUPTED: &str = "
with due as materialized (
  select k.kid, i.body from {schema}.idem_open o join {schema}.idem_key k on k.kid = o.kid
    join {schema}.idem_input i on i.kid = k.kid and i.epoch = k.epoch
   where k.op = any ($1::text[]) and k.recover_at <= {now} and k.rerun_until > {now}
     and k.lease_until + least(2 ^ least(k.attempts - 1, 9), 300) * interval '1 second' <= {now}
     and (k.state = 6 or k.state = 1 and k.lease_until + $2::int8 * interval '1 millisecond' <= {now})
   order by k.recover_at, k.kid limit $3::int8 for update of k skip locked
),
r as (
  update {schema}.idem_key k set recover_at = {now} + $4::int8 * interval '1 millisecond'
    from due where k.kid = due.kid
  returning k.*
)
select {columns}, l.provider, l.id, due.body as input
  from r join due on due.kid = r.kid
  left join {schema}.idem_link l on l.kid = r.kid and l.epoch = r.epoch
 order by r.kid, l.at, l.nr";

impl Verbs {
    pub(super) async fn interrupted(&self, resume: &Resume) -> Result<Vec<Resuming>, StoreError> {
        let args = [
            Arg::Texts(resume.ops.iter().map(|op| (*op).into()).collect()),
            Arg::Long(millis(resume.grace)),
            Arg::Long(resume.limit.into()),
            Arg::Long(millis(resume.lease)),
        ];
        let rows = self.connections.rows(&self.statements.interrupted, &args).await?;
        let mut inputs: HashMap<Uuid, Bytes> = HashMap::new();
        for row in &rows {
            inputs.insert(record::kid(row)?, Bytes::from(column::<Vec<u8>>(row, "input")?));
        }
        let resuming = |record: crate::store::Record| {
            let input = inputs.remove(&uuid(record.id)).ok_or_else(contradiction)?;
            Ok(Resuming { record, input })
        };
        list::records(&rows)?.into_iter().map(resuming).collect()
    }
}
