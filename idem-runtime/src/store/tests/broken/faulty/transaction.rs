//! Transactions over the memory store's rows: what is written in one is kept apart until its commit.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use tokio::task::yield_now;

use super::{
    super::super::super::memory::Kept,
    order::{Note, Orders},
    *,
};
use crate::{conformance::transactions::Body, key::OrderId, store::OpenTransaction};

/// What bodies have written, and who writes.
#[derive(Default)]
pub(in super::super) struct Bodies {
    written: u64,
    running: HashSet<RecordId>,
    /// By a step that is open.
    pub(super) held: HashSet<RecordId>,
    /// On a connection that was given back as it was.
    left: u64,
    pub(super) orders: Orders,
}

pub(in super::super) type Shared = Arc<Mutex<Bodies>>;

#[derive(PartialEq)]
enum Session {
    Open,
    /// By a COMMIT that was refused, or a ROLLBACK.
    Over,
    Gone,
}

pub(super) struct Pending {
    store: MemoryStore,
    fault: Fault,
    bodies: Shared,
    taken: Option<(RecordId, Kept)>,
    pub(super) step: Option<StartStep>,
    wrote: u64,
    pub(super) order: Option<OrderId>,
    pub(super) note: Option<Note>,
    session: Session,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut bodies = self.bodies.lock().unwrap();
        self.order.take().map(|order| bodies.orders.running.remove(&order));
        if self.fault == Fault::KeepsUndoneNotes {
            bodies.orders.keep(self.note.take());
        }
        if let Some(step) = self.step.take() {
            bodies.held.remove(&step.record);
            if self.fault == Fault::KeepsDroppedSteps {
                let (mut held, now) = self.store.lock();
                held.start_step(&step, now);
            }
        }
        let Some((record, kept)) = self.taken.take() else { return };
        bodies.running.remove(&record);
        match self.fault {
            Fault::KeepsTheDroppedClaim => drop(self.store.lock().0.records.insert(record, kept)),
            Fault::GivesTheDroppedBack => bodies.left += self.wrote,
            _ => {}
        }
    }
}

impl Pending {
    pub(super) fn is_gone(&self) -> bool {
        self.session == Session::Gone
    }

    pub(super) fn is_over(&self) -> bool {
        self.session == Session::Over
    }

    /// Makes what was written durable.
    pub(super) fn keep_rows(&mut self) {
        self.bodies.lock().unwrap().written += std::mem::take(&mut self.wrote);
        self.keep_note();
    }

    /// Although it was not to be run.
    pub(super) fn keep_claim(&mut self) {
        if let Some((record, kept)) = &self.taken {
            self.store.lock().0.records.insert(*record, kept.clone());
        }
    }

    fn keep_note(&mut self) {
        self.bodies.lock().unwrap().orders.keep(self.note.take());
    }
}

impl Faulty {
    pub(in super::super) fn body(&self) -> Shared {
        Arc::clone(&self.bodies)
    }

    fn pending(&self, taken: Option<(RecordId, Kept)>) -> OpenTransaction {
        let wrote = std::mem::take(&mut self.bodies.lock().unwrap().left);
        let (store, bodies) = (self.store.clone(), self.body());
        Box::new(Pending {
            store,
            fault: self.fault,
            bodies,
            taken,
            step: None,
            wrote,
            order: None,
            note: None,
            session: Session::Open,
        })
    }

    pub(super) fn pending_step(&self, start: StartStep) -> StepBegun {
        let mut transaction = self.pending(None);
        pending(&mut transaction).step = Some(start);
        StepBegun::Open(transaction)
    }

    pub(super) async fn begin_one(&self, begin: &Begin) -> Begun {
        let Some(claim) = &begin.claim else { return Begun::Open(Owned::unclaimed(), self.pending(None)) };
        if self.fault != Fault::BeginsWhateverIsThere
            && let Some(Claimed::Found(found)) = self.locked(|held, now| held.look(&claim.peek(), Some(claim), now))
        {
            if self.fault == Fault::AsksTheOrderFirst && begin.order.is_some_and(|order| self.is_stale(&order)) {
                return Begun::Stale(Owned::unclaimed(), self.pending(None));
            }
            return Begun::Found(found);
        }
        if self.fault == Fault::BeginsUnseen {
            yield_now().await;
        } else if !self.bodies.lock().unwrap().running.insert(claim.record) {
            return Begun::Found(Found::InFlight { age: Duration::ZERO });
        }
        let (owned, taken) = self.locked(|held, now| {
            let before = held.records.remove(&claim.record);
            let known = before.clone().filter(|_| self.fault != Fault::CountsTransactionsFromOne);
            known.map(|known| held.records.insert(claim.record, known));
            let Claimed::Owner(owned) = held.take(claim, now) else { unreachable!() };
            let taken = held.records.remove(&claim.record).unwrap();
            let seen = if self.fault == Fault::ShowsWhatItBegins { Some(taken.clone()) } else { before };
            seen.map(|seen| held.records.insert(claim.record, seen));
            (owned, taken)
        });
        self.in_order(begin.order.as_ref(), owned, self.pending(Some((claim.record, taken))))
    }

    pub(super) async fn commit_one(
        &self,
        transaction: OpenTransaction,
        commit: &Commit,
    ) -> Result<Committed, StoreError> {
        let stored = |ttl_left| Ok(Committed::Stored { ttl_left });
        let Ok(mut pending) = transaction.downcast::<Pending>() else {
            return Err(StoreError::new(StoreErrorKind::Setup, "the transaction is another store's"));
        };
        if pending.session == Session::Gone {
            return match self.fault {
                Fault::TakesSilenceForYes => stored(Duration::ZERO),
                _ => Err(StoreError::unavailable("the session is gone")),
            };
        }
        if commit.undoes_all() {
            if pending.session == Session::Over && self.fault != Fault::AnswersAfterARollback {
                let taken = pending.taken.take();
                taken.map(|(record, _)| self.bodies.lock().unwrap().running.remove(&record));
                return Ok(Committed::Lost);
            }
            match self.fault {
                Fault::CommitsWhateverItIsGiven => pending.keep_rows(),
                Fault::LinksBeforeTheOutcome => self.store.link(&commit.links).await?,
                _ => {}
            }
            return stored(Duration::ZERO);
        }
        let Some(finish) = &commit.finish else {
            if self.fault != Fault::KeepsNothingWithoutAClaim {
                pending.keep_rows();
            }
            return stored(Duration::ZERO);
        };
        let Some((record, mut kept)) = pending.taken.take() else { return Ok(Committed::Lost) };
        self.bodies.lock().unwrap().running.remove(&record);
        if pending.session == Session::Over && self.fault != Fault::AnswersAfterARollback {
            return Ok(Committed::Lost);
        }
        if self.fault == Fault::CommitsUnfenced {
            kept.row.attempt = finish.attempt;
        }
        let finished = self.locked(|held, now| {
            let before = held.records.insert(record, kept);
            let finished = held.finish(finish, now);
            if finished == Finished::Lost {
                held.records.remove(&record);
                before.map(|before| held.records.insert(record, before));
            }
            finished
        });
        let Finished::Stored { ttl_left } = finished else { return Ok(Committed::Lost) };
        if self.fault != Fault::ForgetsLinksOfCommits {
            self.store.link(&commit.links).await?;
        }
        if commit.keeps_rows || self.fault == Fault::KeepsRowsWithAnyAnswer {
            pending.keep_rows();
        } else if self.fault == Fault::KeepsNotesWithoutRows {
            pending.keep_note();
        }
        stored(ttl_left)
    }
}

pub(super) fn pending(transaction: &mut OpenTransaction) -> &mut Pending {
    transaction.downcast_mut().unwrap()
}

#[async_trait::async_trait]
impl Body for Shared {
    async fn write(&self, transaction: &mut OpenTransaction) {
        pending(transaction).wrote += 1;
    }
    async fn written(&self) -> u64 {
        self.lock().unwrap().written
    }
    async fn commit(&self, transaction: &mut OpenTransaction) -> bool {
        let pending = pending(transaction);
        pending.session = Session::Over;
        if pending.fault == Fault::LetsBodiesCommit {
            pending.keep_rows();
        }
        pending.wrote = 0;
        pending.fault == Fault::LetsBodiesCommit
    }
    async fn roll_back(&self, transaction: &mut OpenTransaction) {
        let pending = pending(transaction);
        (pending.session, pending.wrote) = (Session::Over, 0);
    }
    async fn cut_off(&self, transaction: &mut OpenTransaction) -> bool {
        pending(transaction).session = Session::Gone;
        true
    }
}
