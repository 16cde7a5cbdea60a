//! What engine and stores say to each other about a run that is one transaction of the store's own database.

use std::{any::Any, time::Duration};

use super::{Claim, Finish, Found, Link, Owned, StoreError};
use crate::key::OrderId;

/// A transaction as the store that opened it knows it. Dropped, it is undone and its connection closed: never given back
/// to a pool.
pub type OpenTransaction = Box<dyn Any + Send>;

/// What a store's transactions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transactions {
    /// The database, as the last word of `Tx<Sqlite>` and `Tx<Postgres>` in lower case.
    pub database: &'static str,
    /// While one is open, nobody else can write: a claim from inside of it would wait for itself.
    pub exclusive: bool,
}

/// A wish to run in a transaction.
#[derive(Debug, Clone)]
pub struct Begin {
    /// `None`: there is no key, and only the body's rows are kept or undone.
    pub claim: Option<Claim>,
    /// How long the body may take. The database ends the session of an owner that is silent for 5 s more.
    pub limit: Duration,
    /// The body's rows may have to be undone while its answer is kept.
    pub savepoint: bool,
    /// Where the event that the body applies stands among those of its object. Only with a claim.
    pub order: Option<Order>,
}

/// Where an event stands among those of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Which object's events, of whose they are and as what they are compared.
    pub id: OrderId,
    /// Greater than that of each event before it.
    pub sequence: i64,
    /// How long, from now on, the store must know of it: as a claim's [`guard`](Claim::guard).
    pub keep: Duration,
}

/// What a [`Begin`] gets.
pub enum Begun {
    /// The claim is granted, in a transaction that nobody else sees: run, then `commit`.
    Open(Owned, OpenTransaction),
    /// The claim is granted, but an event that stands as high as this one's, or higher, has been applied: commit its record with
    /// an answer, and run nothing.
    Stale(Owned, OpenTransaction),
    /// It is not, and nothing is open. Also where an event of the same object is being applied, as
    /// [`Found::InFlight`].
    Found(Found),
}

impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Open(owned, _) => f.debug_tuple("Open").field(owned).finish_non_exhaustive(),
            Self::Stale(owned, _) => f.debug_tuple("Stale").field(owned).finish_non_exhaustive(),
            Self::Found(found) => f.debug_tuple("Found").field(found).finish(),
        }
    }
}

/// How a transaction is to end.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The outcome; `None` where there was no claim. One without an answer to keep undoes all.
    pub finish: Option<Finish>,
    /// What the body wrote is kept. If not, an outcome that has an answer is committed all the same, without the rows.
    pub keeps_rows: bool,
    /// Committed with the outcome.
    pub links: Vec<Link>,
}

impl Commit {
    /// All is undone.
    #[must_use]
    pub fn undoes_all(&self) -> bool {
        match &self.finish {
            Some(finish) => finish.outcome.response().is_none(),
            None => !self.keeps_rows,
        }
    }
}

/// How a transaction ended. That it is not known is an error.
#[derive(Debug)]
pub enum Committed {
    /// As it was to.
    Stored {
        /// How much longer the answer is due; zero if there is none.
        ttl_left: Duration,
    },
    /// The claim is no longer in the transaction: the body has ended it by itself. What has not been committed is undone.
    Lost,
    /// Surely nothing was kept.
    Undone(StoreError),
}
