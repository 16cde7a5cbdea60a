//! Removing what is over.

use super::{Held, Kept};
use crate::store::{Due, Mark, Purge, Purged, Strip, Stripped, row::Millis};

impl Held {
    pub(in crate::store) fn due(&self, now: Millis) -> Due {
        let records = self.records.values().filter(|kept| kept.row.is_over(now)).count() as u64;
        Due { since_purge: now.since(self.purged_at), records, of: self.records.len() as u64 }
    }

    pub(in crate::store) fn purge(&mut self, purge: &Purge, now: Millis) -> Purged {
        if now.since(self.purged_at) > purge.within {
            return Purged { refused: true, ..Purged::default() };
        }
        self.purged_at = now;
        let limit = usize::try_from(purge.limit).unwrap_or(usize::MAX);
        let over: Vec<_> = self
            .records
            .iter()
            .filter(|(_, kept)| kept.row.is_over(now))
            .map(|(record, _)| *record)
            .take(limit)
            .collect();
        for record in &over {
            self.records.remove(record);
            self.links.remove(record);
            self.steps.remove(record);
            self.inputs.remove(record);
        }
        let records = u32::try_from(over.len()).unwrap_or(u32::MAX);
        Purged { records, more: over.len() == limit, refused: false }
    }

    pub(in crate::store) fn strip(&mut self, strip: &Strip, now: Millis) -> Stripped {
        let mark = |kept: &Kept, record| Mark { guard_until: kept.row.guard_until.0, record };
        let place = |mark: &Mark| (mark.guard_until, *mark.record.as_bytes());
        let until = now.plus(strip.late);
        let from = Millis(until.0.saturating_sub(Millis(0).plus(strip.back).0));
        let mut marks: Vec<Mark> = self
            .records
            .iter()
            .filter(|(_, kept)| from <= kept.row.guard_until && kept.row.guard_until <= until)
            .map(|(record, kept)| mark(kept, *record))
            .filter(|mark| strip.after.is_none_or(|after| place(mark) > place(&after)))
            .collect();
        marks.sort_by_key(place);
        marks.truncate(usize::try_from(strip.limit).unwrap_or(usize::MAX));
        let mut answers = 0;
        for mark in &marks {
            let Some(kept) = self.records.get_mut(&mark.record) else { continue };
            if kept.row.is_bare(now) && kept.response.take().is_some() {
                answers += 1;
            }
        }
        let full = u32::try_from(marks.len()).is_ok_and(|looked| looked >= strip.limit);
        Stripped { answers, next: if full { marks.last().copied() } else { None } }
    }
}
