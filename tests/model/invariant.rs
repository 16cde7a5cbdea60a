//! What must never happen. A step that breaks an invariant leaves a bit behind.

use idem_runtime::state::State;

use crate::{
    step::Condition,
    world::{Answer, Attempt, Effect, Payload, Row, World},
};

/// Who changes the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Claim,
    /// The run with this attempt.
    Owner(Attempt),
    /// The store itself, where a release deletes.
    Release,
    /// A hook takes a doubt over (T12).
    Recovery,
    /// A hook or an operator decides.
    Settler,
    Purge,
}

/// The invariants of the contract, and two more that it says in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Invariant {
    /// At most one effect.
    I1,
    /// All final answers that clients are told are equal.
    I2,
    /// No write is accepted from an attempt that is not the record's.
    I3,
    /// A success that a client is told had an effect.
    I4,
    /// A doubt is left by its own attempt, a hook or an operator only (T11 … T14).
    I5,
    /// A purge removes only what is settled.
    I6,
    /// The fence of a key grows.
    I7,
    /// C-03: an answer goes only to the payload that it was made for.
    Payload,
    /// Done is final until its windows are over.
    Final,
}

impl Invariant {
    /// All of them.
    pub const ALL: [Self; 9] =
        [Self::I1, Self::I2, Self::I3, Self::I4, Self::I5, Self::I6, Self::I7, Self::Payload, Self::Final];

    /// Its name, and that it holds. (The checker takes functions, which cannot know which invariant they are for.)
    pub(crate) fn property(self) -> (&'static str, Condition) {
        match self {
            Self::I1 => ("I1", |_, world| world.holds(Self::I1)),
            Self::I2 => ("I2", |_, world| world.holds(Self::I2)),
            Self::I3 => ("I3", |_, world| world.holds(Self::I3)),
            Self::I4 => ("I4", |_, world| world.holds(Self::I4)),
            Self::I5 => ("I5", |_, world| world.holds(Self::I5)),
            Self::I6 => ("I6", |_, world| world.holds(Self::I6)),
            Self::I7 => ("I7", |_, world| world.holds(Self::I7)),
            Self::Payload => ("payload", |_, world| world.holds(Self::Payload)),
            Self::Final => ("final", |_, world| world.holds(Self::Final)),
        }
    }
}

impl World {
    pub(crate) fn holds(&self, invariant: Invariant) -> bool {
        self.broken & (1 << invariant as u16) == 0
    }

    fn expect(&mut self, invariant: Invariant, holds: bool) {
        if !holds {
            self.broken |= 1 << invariant as u16;
        }
    }

    /// The one place where the record changes its state.
    pub(crate) fn replace(&mut self, after: Option<Row>, by: By) {
        if let Some(before) = self.row.take() {
            if let By::Owner(attempt) = by {
                self.expect(Invariant::I3, before.attempt == attempt);
            }
            let leaves = |state| before.state == state && after.as_ref().is_none_or(|row| row.state != state);
            let allowed = match by {
                By::Owner(attempt) => before.attempt == attempt,
                By::Recovery | By::Settler => true,
                By::Claim | By::Release | By::Purge => false,
            };
            self.expect(Invariant::I5, !leaves(State::InDoubt) || allowed);
            let settled = matches!(before.state, State::Done | State::Rejected | State::Released);
            self.expect(Invariant::I6, by != By::Purge || settled);
            if before.state == State::Done {
                let over = before.guard_over && matches!(by, By::Claim | By::Purge);
                self.expect(Invariant::Final, over);
                if over {
                    self.start_anew();
                }
            }
        }
        if let Some(row) = &after {
            let new = matches!(by, By::Claim | By::Recovery | By::Settler);
            let grows = if new { row.fence > self.fence } else { row.fence == self.fence };
            self.fence = self.fence.max(row.fence);
            self.expect(Invariant::I7, grows);
        }
        self.row = after;
    }

    /// The windows are over: another effect and another answer are what the client asks for.
    fn start_anew(&mut self) {
        self.effects.clear();
        self.told = None;
    }

    /// Something happens outside of the store, or by the commit of a transaction.
    pub(crate) fn act(&mut self, answer: Answer, key: u8) {
        self.effects.push(Effect { key, answer });
        self.expect(Invariant::I1, self.effects.len() <= 1);
    }

    /// A client is told a success.
    pub(crate) fn tell(&mut self, payload: Payload, answer: Answer) {
        let had_effect = self.effects.iter().any(|effect| effect.answer.effect == answer.effect);
        self.expect(Invariant::I4, had_effect);
        self.expect(Invariant::Payload, answer.payload == payload);
        let told = *self.told.get_or_insert(answer);
        self.expect(Invariant::I2, told == answer);
    }
}
