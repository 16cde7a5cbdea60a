//! Which event of an object was applied last.

use std::collections::{HashMap, HashSet};

use super::{transaction::pending, *};
use crate::{
    key::OrderId,
    store::{OpenTransaction, Order, purge::GRACE},
};

/// What is noted of an order: the sequence, and until when it must be known.
pub(super) type Note = (OrderId, i64, Millis);

#[derive(Default)]
pub(super) struct Orders {
    notes: HashMap<OrderId, (i64, Millis)>,
    /// Of transactions that are open.
    pub(super) running: HashSet<OrderId>,
}

impl Orders {
    pub(super) fn keep(&mut self, note: Option<Note>) {
        note.map(|(order, sequence, until)| self.notes.insert(order, (sequence, until)));
    }
}

impl Faulty {
    fn named(&self, order: &Order) -> OrderId {
        if self.fault == Fault::HasOneOrderForAll { OrderId::from([0; 16]) } else { order.id }
    }

    pub(super) fn is_stale(&self, order: &Order) -> bool {
        let now = self.locked(|_, now| now);
        let bodies = self.bodies.lock().unwrap();
        let Some((noted, until)) = bodies.orders.notes.get(&self.named(order)) else { return false };
        match self.fault {
            Fault::LooksAtNoOrder => false,
            Fault::ForgetsNotesWhenTheyAreOver if until.plus(GRACE) < now => false,
            Fault::AppliesEqualEvents => order.sequence < *noted,
            _ => order.sequence <= *noted,
        }
    }

    /// What a transaction that has its claim is told.
    pub(super) fn in_order(&self, order: Option<&Order>, owned: Owned, mut transaction: OpenTransaction) -> Begun {
        let Some(order) = order else { return Begun::Open(owned, transaction) };
        let (id, stale, now) = (self.named(order), self.is_stale(order), self.locked(|_, now| now));
        let mut bodies = self.bodies.lock().unwrap();
        if self.fault != Fault::NotesUnseen && !bodies.orders.running.insert(id) {
            drop(bodies);
            if self.fault == Fault::KeepsTheClaimOfTheRefused {
                pending(&mut transaction).keep_claim();
            }
            return Begun::Found(Found::InFlight { age: Duration::ZERO });
        }
        let first = bodies.orders.notes.get(&id).filter(|_| self.fault == Fault::KeepsTheFirstTimeOfANote);
        let until = first.map_or(now.plus(order.keep), |first| first.1);
        let pending = pending(&mut transaction);
        pending.order = Some(id);
        pending.note = (!stale || self.fault == Fault::NotesWhatCameLast).then_some((id, order.sequence, until));
        if stale { Begun::Stale(owned, transaction) } else { Begun::Open(owned, transaction) }
    }

    /// Whether there may be more.
    pub(super) fn purge_notes(&self, limit: u32, now: Millis) -> bool {
        let grace = if self.fault == Fault::PurgesNotesWithoutGrace { Duration::ZERO } else { GRACE };
        let limit = match self.fault {
            Fault::PurgesNoNotes => 0,
            Fault::PurgesAllNotesAtOnce => usize::MAX,
            _ => limit as usize,
        };
        let notes = &mut self.bodies.lock().unwrap().orders.notes;
        let over = notes.iter().filter(|(_, (_, until))| until.plus(grace) < now).map(|(order, _)| *order);
        let over: Vec<OrderId> = over.take(limit).collect();
        for order in &over {
            notes.remove(order);
        }
        self.fault != Fault::StopsWhenTheRecordsAreGone && limit > 0 && over.len() == limit
    }
}
