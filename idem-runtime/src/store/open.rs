//! An open transaction on a connection of a pool, which does not get it back in doubt.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use sqlx::{Connection, Database, SqlStr, pool::PoolConnection};
use sqlx_core::transaction::TransactionManager;

/// What the body of a transaction wrote begins here, and can be undone while its answer is kept.
pub(super) const SAVEPOINT: &str = "savepoint idem_body";
pub(super) const BACK_TO_SAVEPOINT: &str = "rollback to savepoint idem_body";

/// Why [`Open::commit`] does nothing.
pub(super) const LEFT_OPEN: &str = "the body has left a transaction of its own open inside of this one";

/// Dropped, its connection is closed: the database undoes what is not committed. Only after [`commit`](Self::commit) or
/// [`rollback`](Self::rollback) has succeeded does the pool get it back.
pub(crate) struct Open<Db: Database> {
    connection: PoolConnection<Db>,
    over: bool,
}

impl<Db: Database> Open<Db> {
    /// Cancel safety: dropped half way, the connection is closed.
    pub(super) async fn begin(connection: PoolConnection<Db>, statement: SqlStr) -> Result<Self, sqlx::Error> {
        let mut open = Self { connection, over: false };
        let borrowed = open.connection.begin_with(statement).await?;
        std::mem::forget(borrowed); // it only borrows, and its drop would be a ROLLBACK
        Ok(open)
    }

    /// The driver's own COMMIT, so that it knows that the transaction is over. `false`, and nothing is sent, where the body
    /// has left a transaction of its own open inside of this one: the driver would end that one.
    pub(super) async fn commit(mut self) -> Result<bool, sqlx::Error> {
        if depth::<Db>(&self) != 1 {
            return Ok(false);
        }
        Db::TransactionManager::commit(&mut self).await?;
        self.over = true;
        Ok(true)
    }

    /// As [`commit`](Self::commit). Whatever goes wrong, what is in the transaction is undone; the error may say that there was
    /// none.
    pub(super) async fn rollback(mut self) -> Result<(), sqlx::Error> {
        if depth::<Db>(&self) == 1 {
            Db::TransactionManager::rollback(&mut self).await?;
            self.over = true;
        }
        Ok(())
    }
}

fn depth<Db: Database>(connection: &Db::Connection) -> usize {
    Db::TransactionManager::get_transaction_depth(connection)
}

impl<Db: Database> Deref for Open<Db> {
    type Target = Db::Connection;

    fn deref(&self) -> &Db::Connection {
        &self.connection
    }
}

impl<Db: Database> DerefMut for Open<Db> {
    fn deref_mut(&mut self) -> &mut Db::Connection {
        &mut self.connection
    }
}

impl<Db: Database> Drop for Open<Db> {
    fn drop(&mut self) {
        if !self.over {
            self.connection.close_on_drop();
        }
    }
}

impl<Db: Database> fmt::Debug for Open<Db> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open").field("over", &self.over).finish_non_exhaustive()
    }
}
