//! Looking at more than one record.

use super::Held;
use crate::{
    key::RecordId,
    store::{Filter, Page, Record, list::LINKED, row::Millis},
};

impl Held {
    pub(in crate::store) fn list(&self, filter: &Filter, page: Page, now: Millis) -> Vec<Record> {
        let behind = |id: &RecordId| page.after.is_none_or(|after| id.as_bytes() > after.as_bytes());
        let asked = |record: &Record| {
            filter.op.as_ref().is_none_or(|op| *op == record.op)
                && filter.scope.as_ref().is_none_or(|scope| *scope == record.scope)
                && filter.state.is_none_or(|state| state == record.state)
                && filter.older_than.is_none_or(|age| record.age >= age)
        };
        let mut records: Vec<Record> =
            self.records.keys().filter(|id| behind(id)).filter_map(|id| self.find(*id, now)).filter(asked).collect();
        records.sort_by_key(|record| *record.id.as_bytes());
        records.truncate(usize::try_from(page.size()).unwrap_or(usize::MAX));
        records
    }

    pub(in crate::store) fn linked(&self, provider: &str, id: &str, now: Millis) -> Vec<Record> {
        let linked = |record: &RecordId| {
            let mut links = self.links.get(record).into_iter().flatten();
            links.any(|link| link.provider == provider && link.id == id)
        };
        let mut records: Vec<RecordId> = self.links.keys().copied().filter(linked).collect();
        records.sort_by_key(|record| *record.as_bytes());
        records.truncate(LINKED as usize);
        records.into_iter().filter_map(|record| self.find(record, now)).collect()
    }
}
