//! The states of a record and the legal moves between them. Pure: no clock, no store, no HTTP.
//!
//! Every store decides by [`claim`] and [`next`], or by SQL that says the same. A store gathers the [`Facts`] by its
//! own clock at one instant, under whatever makes that instant atomic.

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// An attempt owns the record under a lease.
    InFlight,
    /// Final: its answer is replayed.
    Done,
    /// A client error that is replayed for a short while.
    Rejected,
    /// Nothing happened; whoever comes next runs.
    Released,
    /// The run may have taken effect. Never re-run by itself.
    InDoubt,
    /// A run failed or was lost, and the same payload may run again as the same operation. Past the window for that, it
    /// counts as in doubt.
    Resumable,
    /// Written by a newer version. Never treated as absent.
    Unknown(i16),
}

impl State {
    /// The number that stores keep.
    #[must_use]
    pub const fn code(self) -> i16 {
        match self {
            Self::InFlight => 1,
            Self::Done => 2,
            Self::Rejected => 3,
            Self::Released => 4,
            Self::InDoubt => 5,
            Self::Resumable => 6,
            Self::Unknown(code) => code,
        }
    }

    /// The state that [`code`](Self::code) gave.
    #[must_use]
    pub const fn from_code(code: i16) -> Self {
        match code {
            1 => Self::InFlight,
            2 => Self::Done,
            3 => Self::Rejected,
            4 => Self::Released,
            5 => Self::InDoubt,
            6 => Self::Resumable,
            code => Self::Unknown(code),
        }
    }

    /// A claim of a record in this state starts a new epoch: links, steps and provider keys of the old run are not
    /// those of the new one.
    #[must_use]
    pub const fn starts_afresh(self) -> bool {
        matches!(self, Self::Done | Self::Rejected | Self::Released)
    }
}

/// Why a record is released or in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The owner stopped renewing: crashed, frozen or cut off.
    LeaseExpired,
    /// The body ended with a status or an error that says so.
    Status,
    /// The body panicked.
    Panic,
    /// The caller dropped the future.
    Cancelled,
    /// The body ran into its `timeout`.
    Timeout,
    /// The process shut down while the body ran.
    Shutdown,
    /// The outcome could not be stored.
    Store,
    /// It could have been run again, and was not in time; or its last run took longer than that was allowed. How that one
    /// ended is not told any more.
    Abandoned,
    /// The program that ran last does not fit what an earlier run has recorded: a step is gone or is another one, or its result
    /// cannot be read.
    CodeChanged,
    /// A step was started, and whether it took effect is not known: it must not be run again, or it is too late for that.
    StepUnknown,
    /// An operator decided.
    Operator,
    /// A recovery hook found out.
    Recovery,
    /// Written by a newer version.
    Unknown(i16),
}

impl Reason {
    /// The number that stores keep; 0 is "no reason".
    #[must_use]
    pub const fn code(self) -> i16 {
        match self {
            Self::LeaseExpired => 1,
            Self::Status => 2,
            Self::Panic => 3,
            Self::Cancelled => 4,
            Self::Timeout => 5,
            Self::Shutdown => 6,
            Self::Store => 7,
            Self::CodeChanged => 8,
            Self::Abandoned => 9,
            Self::StepUnknown => 10,
            Self::Operator => 11,
            Self::Recovery => 12,
            Self::Unknown(code) => code,
        }
    }

    /// The reason that [`code`](Self::code) gave; `None` for 0.
    #[must_use]
    pub const fn from_code(code: i16) -> Option<Self> {
        Some(match code {
            0 => return None,
            1 => Self::LeaseExpired,
            2 => Self::Status,
            3 => Self::Panic,
            4 => Self::Cancelled,
            5 => Self::Timeout,
            6 => Self::Shutdown,
            7 => Self::Store,
            8 => Self::CodeChanged,
            9 => Self::Abandoned,
            10 => Self::StepUnknown,
            11 => Self::Operator,
            12 => Self::Recovery,
            code => Self::Unknown(code),
        })
    }

    /// The owner itself reported this reason after its body had come to its own end, so nothing of it runs any more. Not
    /// [`Timeout`](Self::Timeout) and [`Cancelled`](Self::Cancelled): such a body was dropped in the middle of a wait, and
    /// the request that it waited for may be on its way.
    #[must_use]
    pub const fn body_has_ended(self) -> bool {
        matches!(self, Self::Status | Self::Panic | Self::Store)
    }
}

/// What a store knows of a record at the instant it decides, by its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts, each named where it is read")]
pub struct Facts {
    /// Where the record stands.
    pub state: State,
    /// Why, if there is a reason.
    pub reason: Option<Reason>,
    /// The attempt that asks is the record's attempt.
    pub mine: bool,
    /// The fingerprint that asks matches the record's.
    pub same_payload: bool,
    /// The lease has ended.
    pub lease_over: bool,
    /// The replay window (or the short life of a rejection) has ended.
    pub result_over: bool,
    /// The window in which a late retry is refused has ended.
    pub guard_over: bool,
    /// The lease ended longer ago than a frozen body could still act.
    pub quarantine_over: bool,
    /// The window in which the operation may be run again has ended, or there never was one.
    pub rerun_over: bool,
    /// It began as an operation that may be run again, whether or not its window for that has ended.
    pub reruns: bool,
    /// An earlier run of the same operation came before the current one: it may have taken effect, and may still act.
    pub continued: bool,
}

/// What somebody wants to do to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A request wants to run. `rerun`: its operation may be run again after a run that failed or was lost.
    Claim {
        /// See above.
        rerun: bool,
    },
    /// The owner has a final answer.
    Complete,
    /// The owner has a client error to keep for a while.
    Reject,
    /// The owner proves that nothing happened.
    Release,
    /// The owner cannot tell.
    Hold,
    /// The owner cannot tell, and its operation may be run again.
    Suspend,
    /// Somebody wants to find out what happened. The old attempt is fenced off: whatever its owner still says comes too
    /// late.
    Recover,
    /// An operator, or a recovery, gives the final answer.
    ResolveDone,
    /// An operator, or a recovery, says that nothing happened.
    ResolveReleased,
    /// An operator, or a recovery, says that it may be run again, in a window that begins now.
    ResolveResumed,
}

/// The state after `event`, or `None` if the move is not legal. T-numbers are those of ARCHITECTURE.md; a record
/// that does not exist becomes `InFlight` by any claim (T1).
#[must_use]
pub fn next(facts: &Facts, event: Event) -> Option<State> {
    use State::{Done, InDoubt, InFlight, Rejected, Released, Resumable};
    if let (Event::Claim { .. }, true) = (event, facts.mine) {
        return None; // a late copy of a claim whose attempt is over
    }
    match (event, facts.state) {
        (Event::Claim { .. }, Released) => Some(InFlight), // T2
        (Event::Claim { .. }, Rejected) if facts.result_over || !facts.same_payload => Some(InFlight), // T3
        (Event::Claim { rerun: true }, Resumable) if may_run_again(facts) => Some(InFlight), // T4
        (Event::Claim { rerun: true }, InFlight) if may_run_again(facts) && facts.lease_over => Some(InFlight), // T9
        (Event::Claim { .. }, Done) if facts.guard_over => Some(InFlight), // T16
        (Event::Complete, InFlight | InDoubt | Resumable) if facts.mine => Some(Done), // T5, T11
        (Event::Reject, InFlight | InDoubt | Resumable) if is_all_of_it(facts) => Some(Rejected), // T5, T11
        (Event::Release, InFlight | InDoubt | Resumable) if is_all_of_it(facts) => Some(Released), // T6, T11
        (Event::Hold, InFlight) if facts.mine => Some(InDoubt), // T7
        (Event::Suspend, InFlight | InDoubt) if facts.mine => Some(Resumable), // T8
        (Event::Recover, InDoubt) => Some(InDoubt),        // T12
        (Event::Recover, InFlight) if facts.lease_over && facts.rerun_over => Some(InDoubt), // T12
        (Event::Recover, Resumable) if facts.rerun_over => Some(InDoubt), // T8b, T12
        (Event::ResolveDone, InDoubt | Resumable) => Some(Done), // T13, T14
        (Event::ResolveDone, InFlight) if facts.lease_over => Some(Done), // T14
        (Event::ResolveReleased, InDoubt | Resumable | InFlight) if may_be_released(facts) => Some(Released), // T13, T14
        (Event::ResolveResumed, InDoubt | Resumable) if facts.reruns => Some(Resumable), // T13, T14
        (Event::ResolveResumed, InFlight) if facts.reruns && facts.lease_over => Some(Resumable), // T14
        _ => None,
    }
}

/// Its operation goes on, by the same payload and in time.
fn may_run_again(facts: &Facts) -> bool {
    facts.same_payload && !facts.rerun_over
}

/// What this run says is true of the whole operation. That a second run did nothing says nothing of the first: a release
/// would give the next run another provider key, and so a second effect.
fn is_all_of_it(facts: &Facts) -> bool {
    facts.mine && !facts.continued
}

/// Nothing of any run can still act: the body of the only one came to its own end, or all have been silent longer than they
/// could live.
fn may_be_released(facts: &Facts) -> bool {
    let ended = facts.state != State::InFlight && facts.reason.is_some_and(Reason::body_has_ended) && !facts.continued;
    ended || (facts.lease_over && facts.quarantine_over)
}

/// What a claim finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The record becomes the claimer's.
    Take,
    /// It already is: the reply to an earlier try was lost.
    Mine,
    /// Another attempt runs.
    InFlight,
    /// The outcome is unknown; for an expired lease the reason is [`Reason::LeaseExpired`], whether or not a store
    /// has written that down yet (T10), and for what was not run again in time [`Reason::Abandoned`].
    InDoubt(Reason),
    /// Another payload holds the key.
    Mismatch,
    /// There is an answer, or the note that there was one.
    Answered,
    /// There was an answer; its window has ended, and the retry is too late to run.
    Expired,
    /// A newer version wrote a state that this one cannot read.
    Unknown,
}

/// What a claim finds, in the order in which a caller must be told: a mismatch before all that another payload's
/// run would explain.
#[must_use]
pub fn claim(facts: &Facts, rerun: bool) -> Verdict {
    if let State::Unknown(_) = facts.state {
        return Verdict::Unknown;
    }
    if facts.mine && facts.state == State::InFlight {
        return Verdict::Mine;
    }
    if next(facts, Event::Claim { rerun }).is_some() {
        return Verdict::Take;
    }
    if !facts.same_payload {
        return Verdict::Mismatch;
    }
    match facts.state {
        State::InFlight if facts.lease_over => Verdict::InDoubt(Reason::LeaseExpired),
        State::InFlight => Verdict::InFlight,
        State::InDoubt => Verdict::InDoubt(facts.reason.unwrap_or(Reason::LeaseExpired)),
        State::Resumable => Verdict::InDoubt(Reason::Abandoned), // its time is over, or this claim may not run it again
        State::Done if facts.result_over => Verdict::Expired,
        State::Done | State::Rejected => Verdict::Answered,
        State::Released | State::Unknown(_) => Verdict::Unknown, // taken or answered above
    }
}

/// A purge may remove the record (T16). What runs, may run again, is in doubt or was written by a newer version never is.
/// `guard_over` is to say that the guard ended long enough ago for a purge.
#[must_use]
pub fn may_remove(facts: &Facts) -> bool {
    matches!(facts.state, State::Done | State::Rejected | State::Released) && facts.guard_over
}

/// A purge may drop the answer and keep the record (T15).
#[must_use]
pub fn may_strip(facts: &Facts) -> bool {
    facts.state == State::Done && facts.result_over
}

#[cfg(test)]
mod tests;
