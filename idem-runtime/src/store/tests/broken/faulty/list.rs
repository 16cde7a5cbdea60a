//! Looks at more than one record.

use super::*;

impl Faulty {
    pub(super) async fn list_some(&self, filter: &Filter, page: Page) -> Vec<Record> {
        let (mut filter, mut page) = (filter.clone(), page);
        match self.fault {
            Fault::ListsAnyScope => filter.scope = None,
            Fault::ListsTheYoung => filter.older_than = None,
            Fault::BeginsEachPageAnew => page.after = None,
            Fault::PagesByCount => {
                let all = Page { after: None, limit: Page::MAX };
                let records = self.locked(|held, now| held.list(&filter, all, now));
                let seen = page.after.map_or(0, |_| page.limit as usize); // of the first page
                return records.into_iter().skip(seen).take(page.limit as usize).collect();
            }
            _ => {}
        }
        let mut records = self.locked(|held, now| held.list(&filter, page, now));
        if self.fault == Fault::ListsTheSilentAsInFlight && filter.state.is_some() {
            let stored = |record: &Record| self.row(record.id).map(|row| row.state);
            let all = self.locked(|held, now| held.list(&Filter { state: None, ..filter.clone() }, page, now));
            records = all.into_iter().filter(|record| stored(record) == filter.state).collect();
        }
        records
    }

    pub(super) fn linked_to(&self, provider: &str, id: &str) -> Vec<Record> {
        let mut found = self.locked(|held, now| held.linked(provider, id, now));
        match self.fault {
            Fault::FindsByIdAlone => {
                found.extend(self.locked(|held, now| held.linked("adyen", id, now)));
            }
            Fault::FindsByLinksOfTheEpoch => found.retain(|record| !record.links.is_empty()),
            _ => {}
        }
        found
    }
}
