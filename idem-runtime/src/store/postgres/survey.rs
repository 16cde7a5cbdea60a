//! The look for doubts. Nothing on `idem_key` can say cheaply what is open: an index on the state would cost each
//! completion more than all the rest. So each record is looked at once, a second after its claim, when nearly all are
//! settled; what is still open is noted in `idem_open`, and that little is looked at again and again.

use std::time::Duration;

use sqlx::postgres::PgRow;

use super::{
    error::corrupt,
    record::{self, column},
    verbs::Verbs,
};
use crate::{
    key::RecordId,
    store::{Doubts, StoreError, Survey},
};

/// Notes what is open among the records that were claimed since the last time, and strikes what is settled.
///
/// One process at a time, and not more often than needed: `m` is empty if another one is at it, and its row is written
/// only if there is news or five seconds have passed. The look goes up to a second before now, a minute at a time, so
/// that it takes no longer after a weekend. A claim that was slow to commit, or a clock that was set back, may put a
/// record behind the mark; so twice a minute, and whenever the clock stands before the mark, the two minutes before are
/// looked through again.
pub(super) const NOTE_OPEN: &str = "
with m as materialized (
  select noted_until, looked_back from {schema}.idem_meta where id = 1 for update skip locked
),
w as materialized (
  select m.noted_until, least(m.noted_until + interval '1 minute', {now} - interval '1 second') as until,
         {now} - m.looked_back not between interval '0' and interval '30 seconds' or m.noted_until > {now} as back
    from m
),
found as materialized (
  select k.kid
    from w join {schema}.idem_key k
      on k.created_at > least(w.noted_until, w.until) - case when w.back then interval '2 minutes' else interval '0' end
     and k.created_at <= w.until
   where k.state in (1, 5, 6)
),
noted as (
  insert into {schema}.idem_open (kid) select found.kid from found on conflict (kid) do nothing
),
struck as (
  delete from {schema}.idem_open o using m
   where not exists (select from {schema}.idem_key k where k.kid = o.kid and k.state in (1, 5, 6))
),
moved as (
  update {schema}.idem_meta t
     set noted_until = w.until, looked_back = case when w.back then {now} else t.looked_back end
    from w
   where t.id = 1
     and (w.back or w.until - w.noted_until >= interval '5 seconds' or exists (select from found))
)
select exists (select from w where w.until < {now} - interval '1 second') as behind";

/// What is in doubt, by operation.
pub(super) const DOUBTS: &str = "
select k.op, count(*)::int8 as count, (array_agg(k.kid order by s.since))[1] as kid,
       floor(extract(epoch from {now} - min(s.since)) * 1000)::int8 as oldest
  from {schema}.idem_open o join {schema}.idem_key k on k.kid = o.kid,
       lateral (select case when k.state = 5 then k.lease_until else greatest(k.lease_until, k.rerun_until) end as since) s
 where {stands} = 5
 group by k.op order by k.op";

pub(super) async fn survey(verbs: &Verbs) -> Result<Survey, StoreError> {
    let noted = verbs.connections.rows(&verbs.statements.note_open, &[]).await?;
    let behind = column(noted.first().ok_or_else(|| corrupt("a look at the records said nothing"))?, "behind")?;
    let rows = verbs.connections.rows(&verbs.statements.doubts, &[]).await?;
    Ok(Survey { doubts: rows.iter().map(doubts).collect::<Result<_, _>>()?, behind })
}

fn doubts(row: &PgRow) -> Result<Doubts, StoreError> {
    let count = u64::try_from(column::<i64>(row, "count")?).unwrap_or(0);
    let oldest = Duration::from_millis(u64::try_from(column::<i64>(row, "oldest")?).unwrap_or(0));
    let record = RecordId::from(record::kid(row)?.into_bytes());
    Ok(Doubts { op: column(row, "op")?, count, oldest, record })
}
