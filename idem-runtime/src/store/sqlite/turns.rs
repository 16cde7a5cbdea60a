//! What waits for the connection that writes shares its transaction: one commit for all of it, whatever verbs they are.
//!
//! Each piece of work brings a task that waits its turn for the connection, and whichever gets it does all that waits; the
//! others find nothing left to do. So no piece depends on another one's task, and there is no timer.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures_util::future::BoxFuture;
use sqlx::{Connection, SqliteConnection, SqlitePool};
use tokio::sync::oneshot;

use super::{
    error::{corrupt, failed},
    sql,
};
use crate::store::{Alike, StoreError};

/// So many pieces of work at most are one transaction: the first is told when the last is done, and other processes only look from
/// time to time whether the write lock is free.
const MOST: usize = 8;

#[derive(Default)]
pub(super) struct Turns {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    queue: VecDeque<Piece>,
    next: u64,
}

struct Piece {
    nr: u64,
    work: Box<dyn Work>,
}

impl Turns {
    /// Puts a piece of work in the queue: its number, and where its result comes.
    pub(super) fn ask<A, T, F>(&self, about: A, work: F) -> (u64, oneshot::Receiver<Result<T, StoreError>>)
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
        waiting.queue.push_back(Piece { nr, work });
        (nr, told)
    }

    /// Takes turns until the piece of this number is done, by whomever: others may stand before it whose tasks are gone, with
    /// their runtime.
    pub(super) async fn take(&self, nr: u64, writer: &SqlitePool) {
        while self.waits(nr) {
            self.turn(nr, writer).await;
        }
    }

    /// Waits for the connection, and does what waits for it in one transaction. A piece that fails fails only itself: what is
    /// undone with it is done again without it.
    async fn turn(&self, nr: u64, writer: &SqlitePool) {
        let mut connection = match writer.acquire().await {
            Ok(connection) => connection,
            Err(error) => return self.fail(nr, failed(error)),
        };
        let mut works: Vec<_> = self.next().into_iter().collect();
        while !works.is_empty() {
            let Err(failure) = self.commit(&mut connection, &mut works).await else {
                return works.into_iter().for_each(|work| work.tell(Ok(())));
            };
            // A full disk or an I/O error makes SQLite end a transaction by itself, of which the driver does not
            // learn: to be sure, whoever is next gets a new connection.
            let _ = connection.close().await;
            match failure {
                Failure::One(place, error) => works.remove(place).tell(Err(error)),
                Failure::All(error) => return fail_all(works, error),
            }
            connection = match writer.acquire().await {
                Ok(connection) => connection,
                Err(error) => return fail_all(works, failed(error)),
            };
        }
    }

    /// Does these and what else waits, until nothing does.
    async fn commit(&self, connection: &mut SqliteConnection, works: &mut Vec<Box<dyn Work>>) -> Result<(), Failure> {
        let all = |error| Failure::All(failed(error));
        let mut transaction = connection.begin_with(sql::BEGIN).await.map_err(all)?;
        let mut done = 0;
        while let Some(work) = works.get_mut(done) {
            work.run(&mut transaction).await.map_err(|error| Failure::One(done, error))?;
            done += 1;
            if done == works.len() && done < MOST {
                works.extend(self.next());
            }
        }
        transaction.commit().await.map_err(all)
    }

    /// The connection was waited for in vain. (If somebody does the piece already, it is told by that.)
    fn fail(&self, nr: u64, error: StoreError) {
        let mut waiting = self.waiting();
        let place = waiting.queue.iter().position(|piece| piece.nr == nr);
        let piece = place.and_then(|place| waiting.queue.remove(place));
        drop(waiting);
        if let Some(piece) = piece {
            piece.work.tell(Err(error));
        }
    }

    fn waits(&self, nr: u64) -> bool {
        self.waiting().queue.iter().any(|piece| piece.nr == nr)
    }

    fn next(&self) -> Option<Box<dyn Work>> {
        self.waiting().queue.pop_front().map(|piece| piece.work)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose fault it is that nothing was committed.
enum Failure {
    One(usize, StoreError),
    /// Whether it was committed is not known, or it did not begin.
    All(StoreError),
}

fn fail_all(works: Vec<Box<dyn Work>>, error: StoreError) {
    let alike = Alike::new(error);
    works.into_iter().for_each(|work| work.tell(Err(alike.error())));
}

/// Can be done again, until it is told.
trait Work: Send {
    fn run<'c>(&'c mut self, transaction: &'c mut SqliteConnection) -> BoxFuture<'c, Result<(), StoreError>>;

    /// Nobody is told anything before the commit.
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
            self.done = Some((self.work)(&self.about, transaction).await?);
            Ok(())
        })
    }

    fn tell(self: Box<Self>, committed: Result<(), StoreError>) {
        let Self { done, tell, .. } = *self;
        let done = committed.and_then(|()| done.ok_or_else(|| corrupt("it was committed before it was done")));
        let _ = tell.send(done); // whoever asked may be gone
    }
}
