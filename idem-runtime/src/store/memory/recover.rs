//! Trying to settle doubts.

use super::Held;
use crate::{
    key::RecordId,
    store::{PutOff, Recover, Recovering, row::Millis, row::Row},
};

impl Held {
    pub(in crate::store) fn recover(&mut self, recover: &Recover, now: Millis) -> Vec<Recovering> {
        let mut due: Vec<(Millis, RecordId, Row)> = self
            .records
            .iter()
            .filter(|(_, kept)| recover.ops.contains(&kept.op))
            .filter_map(|(id, kept)| Some((kept.row.recover_at, *id, kept.row.recovering(recover, now)?)))
            .collect();
        due.sort_by_key(|(at, id, _)| (*at, *id.as_bytes()));
        due.truncate(usize::try_from(recover.limit).unwrap_or(usize::MAX));
        let mut taken = Vec::with_capacity(due.len());
        for (_, id, row) in due {
            let (tries, fence) = (row.tries, self.next_fence());
            if let Some(kept) = self.records.get_mut(&id) {
                kept.row = Row { fence, ..row };
            }
            taken.extend(self.find(id, now).map(|record| Recovering { record, tries }));
        }
        taken
    }

    pub(in crate::store) fn put_off(&mut self, put_off: &PutOff, now: Millis) -> bool {
        let Some(kept) = self.records.get_mut(&put_off.record) else { return false };
        let Some(row) = kept.row.put_off(put_off, now) else { return false };
        kept.row = row;
        true
    }
}
