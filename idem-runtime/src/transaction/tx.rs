//! [`Tx`]: the transaction in a body's hands.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use sqlx::Database;

use super::{Slot, failed::fault};
use crate::{
    error::Error,
    execution::{Supplied, Supply, sealed},
    store::open::Open,
};

/// The transaction that a body runs in: `#[idem] tx: Tx<Sqlite>` or `Tx<Postgres>`. Claim, the rows that the body writes and
/// its answer are committed together, or nothing of them is.
///
/// It dereferences to the connection, `&mut *tx` is what queries are executed on. There is nothing to commit or to roll back
/// here: the answer decides. 2xx, 3xx and [`Final`](crate::Final) commit; any other status, an `Err` of a plain function, a
/// panic, a time-out and a caller of a plain function who goes away undo all, and the key is free again.
///
/// ```
/// # #[cfg(all(feature = "axum", feature = "sqlite"))] {
/// # use axum::{Json, http::StatusCode};
/// # use idem_runtime::{Tx, idempotent};
/// # use sqlx::Sqlite;
/// #[idempotent(scope = global, op = "place-order", ttl = "48h")]
/// async fn place_order(#[idem] mut tx: Tx<Sqlite>, Json(sku): Json<String>) -> Result<StatusCode, StatusCode> {
///     sqlx::query("insert into orders (sku) values (?1)")
///         .bind(sku)
///         .execute(&mut *tx)
///         .await
///         .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
///     Ok(StatusCode::CREATED)
/// }
/// # }
/// ```
///
/// A savepoint of one's own is `sqlx::Connection::begin(&mut *tx)`. Do not end the transaction by SQL: a COMMIT is refused by
/// the database (SQLite's words for it are `FOREIGN KEY constraint failed`); after a ROLLBACK, what is written next is
/// committed by itself and stays, while the answer, also one that would undo all, is replaced by a problem that wants an
/// operator, since a retry would write it again. SQLite rolls back by itself where it is told to (`insert or rollback`, a
/// constraint's `on conflict rollback`, a trigger's `raise(rollback, ..)`) and may where it must (a full disk, an I/O error,
/// no memory): after an error of such a statement, return instead of writing on.
///
/// Do not keep the `Tx`: where it is not given back, nothing is committed, and on SQLite nobody in this process can write
/// until it is dropped. Do not wait for other systems inside: locks are held meanwhile, on SQLite the only write lock that
/// there is.
///
/// The type must be written as `Tx<..>` in the signature, not behind an alias. A generic function (`Tx<Db>` with
/// `Db: sqlx::Database`) chooses the database where it is named: `post(place_order::<Sqlite>)`.
pub struct Tx<Db: Database> {
    /// `None` only while it is dropped.
    open: Option<Box<Open<Db>>>,
    slot: Arc<Slot>,
}

impl<Db: Database> Supplied for Tx<Db> {
    fn supply(from: &mut Supply) -> Result<Self, Error> {
        let Some(slot) = from.transaction() else {
            let error = fault("`Tx` stands behind an alias, so no transaction was opened for it");
            return Err(error.undone());
        };
        Self::of(slot)
    }
}

impl<Db: Database> Tx<Db> {
    /// Takes the transaction out of its slot, until it is dropped.
    pub(crate) fn of(slot: &Arc<Slot>) -> Result<Self, Error> {
        match slot.take::<Open<Db>>() {
            Some(open) => Ok(Self { open: Some(open), slot: Arc::clone(slot) }),
            None => Err(fault("the store's transactions are another database's").undone()),
        }
    }
}

impl<Db: Database> sealed::Sealed for Tx<Db> {}

impl<Db: Database> Deref for Tx<Db> {
    type Target = Db::Connection;

    fn deref(&self) -> &Db::Connection {
        match &self.open {
            Some(open) => open,
            None => unreachable!("it is there until the drop"),
        }
    }
}

impl<Db: Database> DerefMut for Tx<Db> {
    fn deref_mut(&mut self) -> &mut Db::Connection {
        match &mut self.open {
            Some(open) => open,
            None => unreachable!("it is there until the drop"),
        }
    }
}

/// Gives it back, for the runtime to commit or undo.
impl<Db: Database> Drop for Tx<Db> {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            self.slot.put_back(open);
        }
    }
}

impl<Db: Database> fmt::Debug for Tx<Db> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").finish_non_exhaustive()
    }
}
