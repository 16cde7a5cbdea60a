//! What is over.

use tokio::task::yield_now;

use super::*;
use crate::state::State;

const MINUTE: Duration = Duration::from_secs(60);

impl Faulty {
    pub(super) fn due_now(&self) -> Due {
        let due = self.locked(|held, now| held.due(now));
        match self.fault {
            Fault::CountsTheDoubtfulAsDue => {
                Due { records: due.records + self.over(State::InDoubt).len() as u64, ..due }
            }
            _ => due,
        }
    }

    fn those(&self, which: impl Fn(&Row, Millis) -> bool) -> Vec<RecordId> {
        let chosen = |held: &mut Held, now| {
            held.records.iter().filter(|(_, kept)| which(&kept.row, now)).map(|(record, _)| *record).collect()
        };
        self.locked(chosen)
    }

    /// Records in this state whose windows are over.
    fn over(&self, state: State) -> Vec<RecordId> {
        self.those(|row, now| row.state == state && row.guard_until < now)
    }

    /// What a sound store would not remove.
    async fn by_mistake(&self) -> Vec<RecordId> {
        match self.fault {
            Fault::PurgesByTheReplayWindow => {
                self.those(|row, now| row.state == State::Done && row.expires_at.plus(MINUTE) < now)
            }
            Fault::PurgesWithoutGrace => self.over(State::Done),
            Fault::PurgesRuns => self.over(State::InFlight),
            Fault::PurgesWhatWaits => self.over(State::Resumable),
            Fault::PurgesDoubts => self.over(State::InDoubt),
            Fault::ChecksThenPurges => {
                let over = self.those(Row::is_over);
                yield_now().await;
                over
            }
            _ => Vec::new(),
        }
    }

    pub(super) async fn purge_some(&self, purge: &Purge) -> Purged {
        let is_late = |held: &mut Held, now: Millis| now.since(held.purged_at) > purge.within;
        if self.fault != Fault::TrustsTheClock && self.locked(is_late) {
            if self.fault == Fault::PurgesNotesAtAnyTime {
                self.purge_notes(purge.limit, self.locked(|_, now| now));
            }
            return Purged { refused: true, ..Purged::default() };
        }
        if self.fault == Fault::PurgesNothing {
            return Purged::default();
        }
        let more_notes = self.purge_notes(purge.limit, self.locked(|_, now| now));
        let mut mistakes = self.by_mistake().await;
        mistakes.truncate(purge.limit as usize);
        let ignores = self.fault == Fault::IgnoresTheLimit;
        self.locked(|held, now| {
            for record in &mistakes {
                held.records.remove(record);
                held.links.remove(record);
            }
            let (noted, links, steps) = (held.purged_at, held.links.clone(), held.steps.clone());
            let removed = mistakes.len() as u32;
            let mut purged =
                held.purge(&Purge::at_any_time(if ignores { u32::MAX } else { purge.limit - removed }), now);
            match self.fault {
                Fault::NotesNoPurge => held.purged_at = noted,
                Fault::LeavesOldLinksLying => held.links = links,
                Fault::LeavesOldStepsLying => held.steps = steps,
                Fault::ForgetsAllStepsWithAPurge => held.steps.clear(),
                Fault::StopsAtTheLimit => purged.more = false,
                _ => {}
            }
            Purged { records: purged.records + removed, more: purged.more || more_notes, ..purged }
        })
    }

    pub(super) fn strip_some(&self, strip: &Strip) -> Stripped {
        let mut strip = *strip;
        match self.fault {
            Fault::StripsNothing => return Stripped::default(),
            Fault::ForgetsTheMark => strip.after = None,
            Fault::StripsFromTheBeginning => strip.back = strip.late + Duration::from_secs(365 * 24 * 3600),
            _ => {}
        }
        if self.fault == Fault::StripsWhatIsDue {
            self.those(|row, _| row.state == State::Done)
                .into_iter()
                .for_each(|record| drop(self.exchange(record, None)));
        }
        let stripped = self.locked(|held, now| held.strip(&strip, now));
        if self.fault == Fault::StripsTheRecord && stripped.answers > 0 {
            self.locked(|held, now| held.records.retain(|_, kept| !kept.row.is_bare(now)));
        }
        stripped
    }
}
