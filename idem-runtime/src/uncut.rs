//! Work of our own that does not stop when its caller leaves.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

/// Runs where it is awaited, which costs no task and wakes no thread. Dropped before its end, it goes on as a task of its own.
///
/// For claims and commits, and not for bodies: what a program keeps for the task that it runs on (`tokio::task_local`) would be
/// gone half way. Nor for what holds a lock that has no end by itself (SQLite's): a caller who keeps the future and does not poll it keeps
/// it from going on.
///
/// `None`: it panicked.
#[must_use = "it runs when it is awaited"]
pub(crate) struct Uncut<T: Send + 'static> {
    /// `None` while it is polled, and when it is over.
    work: Option<BoxFuture<'static, T>>,
    handle: Handle,
}

impl<T: Send + 'static> Uncut<T> {
    /// # Panics
    /// Outside of a tokio runtime.
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { work: Some(Box::pin(work)), handle: Handle::current() }
    }
}

impl<T: Send + 'static> Future for Uncut<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(mut work) = self.work.take() else { return Poll::Ready(None) };
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(Poll::Ready(done)) => Poll::Ready(Some(done)),
            Ok(Poll::Pending) => {
                self.work = Some(work);
                Poll::Pending
            }
            Err(_) => Poll::Ready(None), // a hook of the program has been told
        }
    }
}

impl<T: Send + 'static> Drop for Uncut<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.handle.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, time::Duration};

    use tokio::{sync::oneshot, time::timeout};

    use super::*;

    #[tokio::test]
    async fn it_runs_where_it_is_awaited() {
        tokio::task_local!(static HERE: u8);
        let done = HERE.scope(7, async { Uncut::new(async { HERE.try_with(|here| *here).ok() }).await });
        assert_eq!(done.await, Some(Some(7)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_who_leaves_does_not_stop_it() {
        let (go, gate) = oneshot::channel();
        let (done, mut reply) = oneshot::channel();
        let work = async move {
            gate.await.unwrap();
            done.send(()).unwrap();
            pending::<()>().await;
        };
        assert!(timeout(Duration::from_secs(1), Uncut::new(work)).await.is_err());
        reply.try_recv().unwrap_err();
        go.send(()).unwrap();
        reply.await.unwrap();
    }

    #[tokio::test]
    async fn a_panic_is_told_and_does_not_go_on() {
        assert_eq!(Uncut::new(async { panic!("by the test") }).await, None::<()>);
    }
}
