//! What waits for the connection that writes shares its transaction: one commit for all of it, whatever verbs they are.
//!
//! Each piece of work brings a task that waits its turn, and whichever has it does what waits; a task whose piece was done by another
//! leaves. So no piece depends on another one's task, and there is no timer.

use std::{
    collections::VecDeque,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{FutureExt, future::BoxFuture};
use sqlx::{Connection, Sqlite, SqliteConnection, SqlitePool, pool::PoolConnection};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::{
    connect::PATIENCE,
    error::{corrupt, failed},
    sql,
};
use crate::store::{Alike, StoreError};

/// So many pieces of work at most are one transaction: the first is told when the last is done, and other processes only look from
/// time to time whether the write lock is free.
const MOST: usize = 8;

#[derive(Default)]
pub(super) struct Queue {
    /// Whoever has it may ask for the connection: so one of the queue at most stands before a `Tx` there.
    turn: tokio::sync::Mutex<()>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    pieces: VecDeque<Piece>,
    next: u64,
}

struct Piece {
    nr: u64,
    work: Box<dyn Work>,
}

/// A piece's place in the queue. Whoever drops it, as a runtime does with its tasks when it ends, takes the piece out, if nobody has
/// begun it: it is not done at some later time.
pub(super) struct Place {
    queue: Arc<Queue>,
    nr: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.queue.remove(self.nr));
    }
}

impl Place {
    /// Takes turns until the piece is done, by whomever.
    pub(super) async fn take(self, writer: SqlitePool) {
        let until = Instant::now() + PATIENCE;
        loop {
            let error = match timeout_at(until, self.queue.turn(self.nr, &writer)).await {
                Ok(Ok(Some((_turn, connection)))) => {
                    self.queue.go(connection).await;
                    continue;
                }
                Ok(Ok(None)) => return,
                Ok(Err(error)) => failed(error),
                Err(_) => StoreError::unavailable(format!("its turn to write did not come within {PATIENCE:?}")),
            };
            // If somebody has begun it meanwhile, it is told by that.
            if let Some(work) = self.queue.remove(self.nr) {
                work.tell(Err(error));
            }
            return;
        }
    }
}

impl Queue {
    /// Puts a piece of work in the queue: its place, and where its result comes. Nothing is done before the place takes its turn.
    pub(super) fn ask<A, T, F>(self: &Arc<Self>, about: A, work: F) -> (Place, oneshot::Receiver<Result<T, StoreError>>)
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'c> Fn(&'c A, &'c mut SqliteConnection) -> BoxFuture<'c, Result<T, StoreError>> + Send + Sync + 'static,
    {
        let (tell, told) = oneshot::channel();
        let work = Box::new(Asked { about, work, done: None, tell });
        let mut waiting = self.waiting();
        waiting.next += 1;
        let nr = waiting.next;
        waiting.pieces.push_back(Piece { nr, work });
        (Place { queue: Arc::clone(self), nr }, told)
    }

    /// The turn and the connection; `None` where the piece is done.
    async fn turn(
        &self,
        nr: u64,
        writer: &SqlitePool,
    ) -> Result<Option<(tokio::sync::MutexGuard<'_, ()>, PoolConnection<Sqlite>)>, sqlx::Error> {
        let turn = self.turn.lock().await;
        if !self.waiting().pieces.iter().any(|piece| piece.nr == nr) {
            return Ok(None);
        }
        Ok(Some((turn, writer.acquire().await?)))
    }

    /// Does in one transaction what waits. Where a piece fails all is undone, and the others are done again without it; nothing more
    /// joins them, so that this comes to an end.
    async fn go(&self, mut connection: PoolConnection<Sqlite>) {
        let mut works: Vec<_> = self.next().into_iter().collect();
        let mut open = true;
        while !works.is_empty() {
            match self.commit(&mut connection, &mut works, open).await {
                Ok(()) => return works.into_iter().for_each(|work| work.tell(Ok(()))),
                Err(Failure::One(at, error)) => works.remove(at).tell(Err(error)),
                Err(Failure::All(error)) => {
                    let _ = connection.close().await;
                    return fail_all(works, error);
                }
            }
            open = false;
        }
    }

    /// Does these and, while it is open to others, what else waits.
    async fn commit(
        &self,
        connection: &mut SqliteConnection,
        works: &mut Vec<Box<dyn Work>>,
        open: bool,
    ) -> Result<(), Failure> {
        let all = |error| Failure::All(failed(error));
        let mut transaction = connection.begin_with(sql::BEGIN).await.map_err(all)?;
        let mut done = 0;
        while let Some(work) = works.get_mut(done) {
            if let Err(error) = work.run(&mut transaction).await {
                // A full disk or an I/O error makes SQLite end a transaction by itself, of which the driver does not learn. Then this
                // fails, and the connection is not used again.
                return Err(match transaction.rollback().await {
                    Ok(()) => Failure::One(done, error),
                    Err(_) => Failure::All(error),
                });
            }
            done += 1;
            if open && done == works.len() && done < MOST {
                works.extend(self.next());
            }
        }
        transaction.commit().await.map_err(all)
    }

    fn next(&self) -> Option<Box<dyn Work>> {
        self.waiting().pieces.pop_front().map(|piece| piece.work)
    }

    fn remove(&self, nr: u64) -> Option<Box<dyn Work>> {
        let mut waiting = self.waiting();
        let place = waiting.pieces.iter().position(|piece| piece.nr == nr)?;
        waiting.pieces.remove(place).map(|piece| piece.work)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why nothing was committed.
enum Failure {
    /// By this piece.
    One(usize, StoreError),
    /// By something else: it did not begin, or was undone, or whether it was committed is not known.
    All(StoreError),
}

fn fail_all(works: Vec<Box<dyn Work>>, error: StoreError) {
    let alike = Alike::new(error);
    works.into_iter().for_each(|work| work.tell(Err(alike.error())));
}

/// Can be done again, until it is told.
trait Work: Send {
    fn run<'c>(&'c mut self, transaction: &'c mut SqliteConnection) -> BoxFuture<'c, Result<(), StoreError>>;

    /// Nobody is told a success before the commit.
    fn tell(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Asked<A, T, F> {
    about: A,
    work: F,
    done: Option<T>,
    tell: oneshot::Sender<Result<T, StoreError>>,
}

impl<A, T, F> Work for Asked<A, T, F>
where
    A: Send + Sync,
    T: Send,
    F: for<'c> Fn(&'c A, &'c mut SqliteConnection) -> BoxFuture<'c, Result<T, StoreError>> + Send + Sync,
{
    fn run<'c>(&'c mut self, transaction: &'c mut SqliteConnection) -> BoxFuture<'c, Result<(), StoreError>> {
        Box::pin(async move {
            let done = AssertUnwindSafe(async { (self.work)(&self.about, transaction).await }).catch_unwind().await;
            self.done = Some(done.map_err(|_| StoreError::unavailable("the store panicked"))??); // it was reported where it did
            Ok(())
        })
    }

    fn tell(self: Box<Self>, committed: Result<(), StoreError>) {
        let Self { done, tell, .. } = *self;
        let done = committed.and_then(|()| done.ok_or_else(|| corrupt("it was committed before it was done")));
        let _ = tell.send(done); // whoever asked may be gone
    }
}
