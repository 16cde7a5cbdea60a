//! What must happen in some interleaving, or a model proves less than it seems to.

use idem_runtime::state::{Reason, State};

use crate::{
    step::Condition,
    world::{Effect, Row, Worker, World},
};

/// A state that a configuration must come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// A client was told a success.
    Told,
    /// An effect happened and its run has yet to write, while the record is in doubt.
    ActedInDoubt,
    /// A body was cut off, and its request has its effect while the record is in doubt.
    Arrived,
    /// Somebody's write was not accepted.
    Lost,
    /// A run that had failed is run again (T4), or one that was lost (T9).
    RunAgain,
    /// It was not run again in time (T8b).
    Abandoned,
    /// A run whose lease was over wrote its answer, unless somebody had settled the doubt before (T11).
    Late,
    /// A hook or an operator gave the answer.
    Completed,
    /// A hook or an operator released the record.
    Released,
    /// A hook or an operator lets it be run again.
    Resumed,
    /// Somebody runs after a release by a hook or an operator, while the old run has not noticed.
    RunsBesideAZombie,
    /// A client error is kept.
    Rejected,
    /// An answer is gone, its record still refuses (T15).
    Stripped,
    /// The record was removed (T16).
    Purged,
}

impl Reached {
    pub(crate) fn property(self) -> (&'static str, Condition) {
        match self {
            Self::Told => ("told", |_, world| world.told.is_some()),
            Self::ActedInDoubt => ("acted in doubt", |_, world| {
                world
                    .in_doubt()
                    .is_some_and(|row| world.runs().any(|run| run.attempt == row.attempt && run.answer.is_some()))
            }),
            Self::Arrived => ("arrived", |_, world| {
                world.in_doubt().is_some_and(|row| {
                    let is_its = |effect: &Effect| effect.answer.effect == row.attempt;
                    row.reason == Some(Reason::Timeout) && world.effects.iter().any(is_its)
                })
            }),
            Self::Lost => ("lost", |_, world| world.workers.iter().any(|worker| matches!(worker, Worker::Lost(_)))),
            Self::RunAgain => {
                ("run again", |_, world| row(world, |row| row.state == State::InFlight && row.fence != row.epoch))
            }
            Self::Abandoned => {
                ("abandoned", |_, world| row(world, |row| row.state == State::Resumable && row.rerun_over))
            }
            Self::Late => ("late", |_, world| {
                row(world, |row| row.state == State::Done && row.lease_over && row.reason.is_none())
            }),
            Self::Completed => ("completed", |_, world| by_operator(world, State::Done)),
            Self::Released => ("released", |_, world| by_operator(world, State::Released)),
            Self::Resumed => ("resumed", |_, world| by_operator(world, State::Resumable)),
            Self::RunsBesideAZombie => ("runs beside a zombie", |_, world| {
                let runs = world.row.as_ref().filter(|row| row.state == State::InFlight);
                runs.is_some_and(|row| world.runs().any(|run| run.epoch < row.epoch))
            }),
            Self::Rejected => ("rejected", |_, world| row(world, |row| row.state == State::Rejected)),
            Self::Stripped => {
                ("stripped", |_, world| row(world, |row| row.state == State::Done && row.answer.is_none()))
            }
            Self::Purged => ("purged", |_, world| world.row.is_none() && world.open.is_none() && world.fence > 0),
        }
    }
}

fn row(world: &World, is: fn(&Row) -> bool) -> bool {
    world.row.as_ref().is_some_and(is)
}

fn by_operator(world: &World, state: State) -> bool {
    world.row.as_ref().is_some_and(|row| row.state == state && row.reason == Some(Reason::Operator))
}
