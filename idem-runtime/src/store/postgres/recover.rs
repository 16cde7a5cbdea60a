//! Trying to settle doubts. They are found by `idem_open`, which the look for doubts keeps.

use super::{
    argument::Arg,
    list,
    record::column,
    verbs::{Verbs, contradiction, millis, uuid},
};
use crate::store::{PutOff, Recover, Recovering, StoreError};

/// As `Row::recovering`. What another process tries at this instant is locked and gone by; what it has just taken is seen
/// when the lock is ours, since the row is then looked at again.
pub(super) const RECOVER: &str = "
with due as materialized (
  select k.kid from {schema}.idem_open o join {schema}.idem_key k on k.kid = o.kid
   where k.op = any ($1::text[]) and k.tries < $2::int8 and k.recover_at <= {now}
     and (k.state = 5 or k.rerun_until <= {now}
          and (k.state = 6 or k.state = 1 and k.lease_until + $3::int8 * interval '1 millisecond' <= {now}))
   order by k.recover_at, k.kid limit $4::int8 for update of k skip locked
),
r as (
  update {schema}.idem_key k set
    state      = 5,
    reason     = case when k.state = 6 then 9 when k.reason = 0 then 1 else k.reason end,
    fence      = nextval('{schema}.idem_fence'),
    attempt    = gen_random_uuid(),
    tries      = k.tries + 1,
    recover_at = {now} + $5::int8 * interval '1 millisecond'
    from due where k.kid = due.kid
  returning k.*
)
{shown}";

/// As `Row::put_off`.
pub(super) const PUT_OFF: &str = "
with moved as (
  update {schema}.idem_key k set recover_at = {now} + $3::int8 * interval '1 millisecond'
   where k.kid = $1::uuid and k.fence = $2::int8 and k.state = 5
  returning k.kid
)
select exists (select from moved) as moved";

impl Verbs {
    pub(super) async fn recover(&self, recover: &Recover) -> Result<Vec<Recovering>, StoreError> {
        let args = [
            Arg::Texts(recover.ops.iter().map(|op| (*op).into()).collect()),
            Arg::Long(recover.tries.into()),
            Arg::Long(millis(recover.grace)),
            Arg::Long(recover.limit.into()),
            Arg::Long(millis(recover.lease)),
        ];
        let rows = self.connections.rows(&self.statements.recover, &args).await?;
        let taken = |(record, tries)| Recovering { record, tries };
        Ok(list::rows(&rows)?.into_iter().map(taken).collect())
    }

    pub(super) async fn put_off(&self, put_off: &PutOff) -> Result<bool, StoreError> {
        let args = [Arg::Uuid(uuid(put_off.record)), Arg::Long(put_off.seen.0), Arg::Long(millis(put_off.by))];
        let rows = self.connections.rows(&self.statements.put_off, &args).await?;
        column(rows.first().ok_or_else(contradiction)?, "moved")
    }
}
