//! The task that sends what waits, for as long as something does.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tokio::time::timeout;

use super::{
    lane::Turn,
    slice::{Panicked, Slice, Told, unanswered},
    verb::Verb,
};
use crate::store::{Alike, StoreError, StoreErrorKind};

pub(super) async fn drive<V: Verb>(mut turn: Turn<V>) {
    while let Some(Slice { items, seats }) = turn.next() {
        match send(&mut turn, &items).await {
            Ok(Ok(answers)) => items.iter().zip(seats).zip(answers).for_each(|((item, seat), answer)| {
                seat.answer(item, answer);
            }),
            Ok(Err(error)) if is_refused(&error) && items.len() > 1 => {
                one_by_one(&mut turn, Slice { items, seats }).await
            }
            Ok(Err(error)) => match <[_; 1]>::try_from(seats) {
                Ok([seat]) => seat.fail(error),
                Err(seats) => {
                    let alike = Alike::new(error);
                    seats.into_iter().for_each(|seat| seat.fail_alike(&alike));
                }
            },
            Err(Panicked) => seats.into_iter().for_each(|seat| seat.panicked()),
        }
    }
}

/// The store has answered, and something in the slice is not as it can be: one of its rows, which must not be the others'
/// fault. A reply that was lost, or did not come in time, says nothing of any row: all are told, and ask again.
fn is_refused(error: &StoreError) -> bool {
    error.kind == StoreErrorKind::Corrupt
}

/// Each with its own attempt, so that it does no harm if the statement had counted after all.
async fn one_by_one<V: Verb>(turn: &mut Turn<V>, Slice { items, seats }: Slice<V>) {
    for (item, seat) in items.into_iter().zip(seats) {
        if seat.is_gone() {
            continue;
        }
        match send(turn, std::slice::from_ref(&item)).await {
            Ok(Ok(mut answers)) => match answers.pop() {
                Some(answer) => seat.answer(&item, answer),
                None => seat.fail(unanswered()),
            },
            Ok(Err(error)) => seat.fail(error),
            Err(Panicked) => seat.panicked(),
        }
    }
}

async fn send<V: Verb>(turn: &mut Turn<V>, items: &[V::Item]) -> Told<Vec<V::Answer>> {
    let limit = turn.lane.ground.limits.store_timeout;
    match AssertUnwindSafe(timeout(limit, turn.send(items))).catch_unwind().await {
        Ok(Ok(Ok(answers))) if answers.len() != items.len() => Ok(Err(unanswered())),
        Ok(Ok(told)) => Ok(told),
        Ok(Err(elapsed)) => Ok(Err(StoreError::unavailable(elapsed))),
        Err(_) => Err(Panicked), // a hook of the program has been told
    }
}
