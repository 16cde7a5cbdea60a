//! Where an open transaction is between its body and the runtime.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::store::OpenTransaction;

/// Where the transaction is while its body does not hold it.
#[derive(Default)]
pub(crate) struct Slot(Mutex<Place>);

#[derive(Default)]
enum Place {
    Here(OpenTransaction),
    #[default]
    Away,
    /// Whoever still has it may only drop it.
    Closed,
}

impl Slot {
    pub(crate) fn new(transaction: OpenTransaction) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Place::Here(transaction))))
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands it out, if `fits`.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(super) fn take<T: 'static>(&self) -> Option<Box<T>> {
        let mut place = self.place();
        match std::mem::take(&mut *place) {
            Place::Here(transaction) => match transaction.downcast() {
                Ok(transaction) => Some(transaction),
                Err(other) => {
                    *place = Place::Here(other);
                    None
                }
            },
            elsewhere => {
                *place = elsewhere;
                None
            }
        }
    }

    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(super) fn put_back(&self, transaction: OpenTransaction) {
        let mut place = self.place();
        if matches!(*place, Place::Away) {
            *place = Place::Here(transaction);
        }
    }

    /// Takes it for good; `None` if the body has kept it.
    pub(crate) fn close(&self) -> Option<OpenTransaction> {
        match std::mem::replace(&mut *self.place(), Place::Closed) {
            Place::Here(transaction) => Some(transaction),
            Place::Away | Place::Closed => None,
        }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}
