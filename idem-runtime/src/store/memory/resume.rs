//! Going on with what was interrupted.

use super::Held;
use crate::{
    key::RecordId,
    store::{Resume, Resuming, row::Millis, row::Row},
};

impl Held {
    pub(in crate::store) fn interrupted(&mut self, resume: &Resume, now: Millis) -> Vec<Resuming> {
        let has_input = |id: &RecordId, row: &Row| self.inputs.get(id).is_some_and(|(epoch, _)| *epoch == row.epoch);
        let mut due: Vec<(Millis, RecordId, Row)> = self
            .records
            .iter()
            .filter(|(id, kept)| resume.ops.contains(&kept.op) && has_input(id, &kept.row))
            .filter_map(|(id, kept)| Some((kept.row.recover_at, *id, kept.row.resuming(resume, now)?)))
            .collect();
        due.sort_by_key(|(at, id, _)| (*at, *id.as_bytes()));
        due.truncate(usize::try_from(resume.limit).unwrap_or(usize::MAX));
        let mut taken = Vec::with_capacity(due.len());
        for (_, id, row) in due {
            if let Some(kept) = self.records.get_mut(&id) {
                kept.row = row;
            }
            let input = self.inputs.get(&id).map(|(_, input)| input.clone());
            taken.extend(self.find(id, now).zip(input).map(|(record, input)| Resuming { record, input }));
        }
        taken
    }
}
