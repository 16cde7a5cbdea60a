//! What time does. Each end is a step of its own, so that it may come at any moment.

use idem_runtime::state::{Reason, State};

use crate::{
    config::{Config, Mode},
    world::World,
};

impl World {
    /// A lease ends; of a transaction: the server ends its session, and with it the transaction.
    pub(crate) fn lease_ends(&mut self, config: &Config) {
        if config.mode == Mode::OneTransaction {
            self.expiries += u8::from(self.open.take().is_some());
        } else if let Some(row) = &mut self.row
            && row.state == State::InFlight
            && !row.lease_over
        {
            row.lease_over = true;
            self.expiries += 1;
        }
    }

    /// From now on no body acts that was in doubt: this is what the quarantine's length is to guarantee.
    pub(crate) fn quarantine_ends(&mut self) {
        if self.in_doubt().is_some_and(|row| row.lease_over)
            && let Some(row) = &mut self.row
        {
            row.quarantine_over = true;
            self.runs_mut().for_each(|run| run.may_act = false);
        }
    }

    /// From now on nobody runs it again.
    pub(crate) fn rerun_window_ends(&mut self) {
        if let Some(row) = &mut self.row {
            row.rerun_over = true;
        }
    }

    pub(crate) fn replay_window_ends(&mut self) {
        if let Some(row) = &mut self.row
            && !row.result_over
        {
            row.result_over = true;
            self.windows += 1;
        }
    }

    pub(crate) fn guard_ends(&mut self, config: &Config) {
        let Some(row) = self.row.as_mut().filter(|row| row.result_over && !row.guard_over) else { return };
        row.guard_over = true;
        let open = matches!(row.state, State::InFlight | State::InDoubt | State::Resumable);
        let current = open.then_some(row.attempt);
        let settled = row.state == State::Done && row.reason == Some(Reason::Operator);
        if config.windows_outlast_bodies || config.settled_guards && settled {
            self.runs_mut().filter(|run| Some(run.attempt) != current).for_each(|run| run.may_act = false);
        }
    }
}
