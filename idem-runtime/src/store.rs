//! What the engine and the stores say to each other: the [`Store`] trait and its vocabulary.
//!
//! To bring another database, read `idem_runtime::conformance` (feature `conformance`): how to write a store, with a small
//! one as an example, and the suite that proves it.

mod decision;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod driver;
mod error;
mod list;
mod memory;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) mod open;
mod operator;
#[cfg(feature = "postgres")]
mod postgres;
mod purge;
mod recover;
mod resume;
mod row;
mod shared;
#[cfg(feature = "sqlite")]
mod sqlite;
mod step;
mod transaction;
mod words;

use std::time::Duration;

pub(crate) use self::error::{Alike, Chain};
pub use self::memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use self::postgres::PostgresStore;
#[cfg(feature = "sqlite")]
pub use self::sqlite::SqliteStore;
pub use self::{
    decision::{StepDecision, StepDecisions},
    error::{StoreError, StoreErrorKind},
    list::{Filter, Page},
    operator::{Audit, Doubts, Record, Resolution, Resolve, Survey},
    purge::{Due, Mark, Purge, Purged, Strip, Stripped},
    recover::{PutOff, Recover, Recovering},
    resume::{Resume, Resuming},
    step::{EndStep, StartStep, Started, Step, StepBegun, StepEnded, StepKind},
    transaction::{Begin, Begun, Commit, Committed, OpenTransaction, Order, Transactions},
    words::{
        Attempt, Claim, Claimed, Fence, Finish, Finished, Found, Link, Outcome, Owned, Peek, Renewal, Renewed, Replay,
        StoredResponse,
    },
};
use crate::key::RecordId;

/// Keeps the records. Implement it to bring another database; `idem_runtime::conformance` shows how, and proves it.
///
/// Every verb that takes a slice answers with one entry per item, in order; a batch of one is the normal, quiet
/// case. Within one slice no record occurs twice; of `finish` and `renew` no attempt does, while a record may, with an attempt that has
/// lost it.
///
/// **Clock.** All deadlines are set and compared by the store's own clock, at one instant per verb.
///
/// **Durability.** When `claim` or `finish` returns, a crash of process or machine does not undo it.
///
/// **Cancel safety.** Dropping a verb's future leaves the store usable. What the verb would have done may or may
/// not have happened.
#[async_trait::async_trait]
pub trait Store: Send + Sync + 'static {
    /// Takes each record for its attempt, or says why not.
    ///
    /// *Atomicity:* looking and taking are one step, also against other processes: of many claims of one record
    /// at most one becomes its owner. A claim that does not take writes nothing.
    ///
    /// *Returns* what [`state::claim`](crate::state::claim) says. Sent again with the same attempt, a claim that had
    /// succeeded returns [`Claimed::Owner`] again.
    ///
    /// *Errors:* whether it happened is unknown; send it again with the same attempt.
    async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>, StoreError>;

    /// What a claim would find, without claiming. `None` where a claim would be granted.
    ///
    /// *Atomicity:* one snapshot per record; writes nothing.
    async fn peek(&self, peeks: &[Peek]) -> Result<Vec<Option<Found>>, StoreError>;

    /// Ends each attempt's run.
    ///
    /// *Atomicity:* compare-and-set on the attempt; state and answer appear together.
    ///
    /// *Returns* [`Finished::Lost`] and changes nothing where the record is no longer the attempt's. Sent again, a
    /// finish that had succeeded succeeds again.
    ///
    /// *Errors:* whether it happened is unknown; send it again.
    async fn finish(&self, finishes: &[Finish]) -> Result<Vec<Finished>, StoreError>;

    /// Ends each lease `lease` from now.
    ///
    /// *Atomicity:* compare-and-set on the attempt, per record.
    async fn renew(&self, renewals: &[Renewal], lease: Duration) -> Result<Vec<Renewed>, StoreError>;

    /// Records provider ids. Not fenced: a late link is evidence. The same link again changes nothing.
    async fn link(&self, links: &[Link]) -> Result<(), StoreError>;

    /// Reads one record, with its links.
    async fn find(&self, record: RecordId) -> Result<Option<Record>, StoreError>;

    /// One page of the records that the filter asks for, each with its links, in the order of their ids.
    ///
    /// *Atomicity:* one snapshot per page; writes nothing.
    ///
    /// *Returns* fewer than the page's limit only where there are no more. Where it asks for a state that is open (in
    /// flight, in doubt, resumable) the cost may grow with what is open, not with the number of records, and what came
    /// into that state in the last seconds may be missing.
    async fn list(&self, filter: &Filter, page: Page) -> Result<Vec<Record>, StoreError>;

    /// The records that a provider's id was ever recorded with, whatever their epoch is by now; a hundred at most.
    ///
    /// *Atomicity:* one snapshot; writes nothing.
    async fn linked(&self, provider: &str, id: &str) -> Result<Vec<Record>, StoreError>;

    /// Settles a record that its owner did not, and writes down who did it and why.
    ///
    /// *Atomicity:* compare-and-set on the fence; the old attempt is fenced off; state, answer and audit entry
    /// appear together.
    ///
    /// What becomes `Done` guards its key at least until the [`quarantine`](Resolve::quarantine) is over.
    ///
    /// What is [decided](Resolution::decisions) about single steps is written with it: `Done` is the step's result from then on,
    /// and a step that was `NotDone` is no longer noted.
    ///
    /// *Returns* `false` and changes nothing where the fence is stale,
    /// [`state::next`](crate::state::next) does not allow the move (or, where something is [done
    /// anew](Resolution::does_anew), that of a release), or the decision does not [fit](Resolution::fits) the steps of the
    /// record's epoch.
    async fn resolve(&self, resolve: &Resolve) -> Result<bool, StoreError>;

    /// Takes records in doubt so that whoever asks may try to settle them: those whose owner has reported or has been silent
    /// for longer than `grace`, that nobody tries now or has put off, and that have not been tried too often. Each gets a
    /// new fence and an attempt that is nobody's, so its old owner can write no more, and is `InDoubt` from here on, for
    /// the reason that it had; nobody else gets it within `lease`. The end of its owner's lease stays as it was, since a
    /// quarantine counts from there.
    ///
    /// *Atomicity:* looking and taking are one step, also against other processes, per record.
    ///
    /// *Returns* at most `limit` records, of all that are due those that were to be tried first, whatever their operation. It may leave out what is locked, and
    /// what came into doubt in the last seconds.
    ///
    /// *Errors:* whether it happened is unknown; what it took is free again after `lease`.
    async fn recover(&self, recover: &Recover) -> Result<Vec<Recovering>, StoreError>;

    /// Lets the next try of a recovery that did not settle its record come this much later.
    ///
    /// *Atomicity:* compare-and-set on the fence.
    ///
    /// *Returns* `false` and changes nothing where the fence is stale or the record is not in doubt any more.
    async fn put_off(&self, put_off: &PutOff) -> Result<bool, StoreError>;

    /// Finds operations that were interrupted and that nobody goes on with: those that are resumable, or in flight without a
    /// lease for longer than `grace`, whose window for being run again is not over, whose claim has kept an
    /// [`input`](Claim::input) in the record's current epoch, and whose last run ended longer ago than
    /// [`back_off`](Resume::back_off). Nobody else gets them, by this verb, within `lease` or until the next claim takes them;
    /// for all others they stay as they are.
    ///
    /// *Atomicity:* looking and noting that are one step, also against other processes, per record.
    ///
    /// *Returns* at most `limit` records, those first that were to be tried first. It may leave out what is locked, and what was
    /// interrupted in the last seconds.
    ///
    /// *Errors:* whether it happened is unknown; what it gave out is given out again after `lease`. By itself, a store keeps no
    /// inputs, and this fails as [`StoreErrorKind::Setup`].
    async fn interrupted(&self, resume: &Resume) -> Result<Vec<Resuming>, StoreError> {
        let _ = resume;
        Err(StoreError::new(
            StoreErrorKind::Setup,
            "this store keeps no inputs, so it cannot go on with interrupted operations",
        ))
    }

    /// Counts what is in doubt, by operation; a record in flight whose lease has ended is.
    ///
    /// Every process asks every second, so the cost may grow with what runs and what is in doubt, not with the number of
    /// records. What came into doubt in the last seconds may be missing. A store that keeps notes for this may write them.
    async fn survey(&self) -> Result<Survey, StoreError>;

    /// How far a purge would go, and when there was one. For the caller, who decides whether the store's clock can be
    /// trusted with it.
    ///
    /// *Atomicity:* none needed; writes nothing.
    async fn due(&self) -> Result<Due, StoreError>;

    /// Removes at most [`limit`](Purge::limit) records that are `Done`, `Rejected` or `Released` and whose `guard_until` has passed more
    /// than a minute ago, each with its answer, its links and its steps of every epoch, and notes the time for [`due`](Self::due). What an operator
    /// decided stays written down. No other state is ever touched, however old; also not one of a newer version.
    ///
    /// Removes and notes nothing where the last purge is longer ago than [`within`](Purge::within): the note must be
    /// compared at the instant by which the records are.
    ///
    /// Beside the records, and as many at most, it removes the notes of [`order`](Begin::order)s whose time has passed more than a
    /// minute ago. (A note that is there counts, however old.)
    ///
    /// *Atomicity:* state and `guard_until` are compared again under whatever makes a claim one step, so a record that is
    /// claimed meanwhile stays; a record and its answer go together. It may leave out what is locked, and need not be one
    /// step for all of its records. Many processes may purge at once.
    ///
    /// *Errors:* whether it happened is unknown; send it again.
    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError>;

    /// Drops the answers of records that are `Done`, whose replay window is over and that still refuse late retries; the
    /// records stay. Looks at `limit` records at most, in the order of `guard_until`, and stops early where there is
    /// nothing more to look at.
    ///
    /// *Atomicity:* as for [`purge`](Self::purge): an answer that is due again stays.
    ///
    /// *Errors:* whether it happened is unknown; send it again.
    async fn strip(&self, strip: &Strip) -> Result<Stripped, StoreError>;

    /// What its transactions are; `None`, as here, if a body cannot write in one. Then `begin` and `commit` are never called.
    fn transactions(&self) -> Option<Transactions> {
        None
    }

    /// Opens a transaction, and claims in it: claim, the body's rows and the outcome become one commit.
    ///
    /// *Atomicity:* as `claim`, but the claim is seen by nobody until `commit`. Another attempt at the record meanwhile is
    /// told [`Found::InFlight`], or where the transaction is [`exclusive`](Transactions::exclusive) waits. Whatever ends the transaction otherwise, also a COMMIT of the body's own, leaves
    /// nothing of the claim.
    ///
    /// With an [`order`](Begin::order), and after the claim is granted, it notes the sequence in the same transaction, if none as
    /// high is noted there; else it answers [`Begun::Stale`]. The note appears, or is undone, with what the body writes: also where
    /// an answer is kept without its rows. While a transaction is open, another one with its order is told
    /// [`Found::InFlight`], or waits as above.
    ///
    /// *Errors:* nothing happened, or is undone. By itself, a store has no transactions, and this fails as
    /// [`StoreErrorKind::Setup`].
    ///
    /// *Cancel safety:* whatever was opened is undone and closed.
    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        let _ = begin;
        Err(StoreError::new(StoreErrorKind::Setup, "this store has no transactions"))
    }

    /// Ends a transaction that `begin` has opened.
    ///
    /// *Atomicity:* the body's rows, the outcome, the answer and the links appear together or not at all.
    ///
    /// *Errors:* whether it was committed is unknown. Look at the record: it is the attempt's, or it was not.
    ///
    /// *Cancel safety:* dropped half way, it may or may not be committed; the connection is closed.
    async fn commit(&self, transaction: OpenTransaction, commit: &Commit) -> Result<Committed, StoreError> {
        let _ = (transaction, commit);
        Err(StoreError::new(StoreErrorKind::Setup, "this store has no transactions"))
    }

    /// Whether it keeps the steps of operations; if not, as here, an operation with [`Steps`](crate::Steps) is a fault at start, and
    /// the five verbs below are never called.
    fn keeps_steps(&self) -> bool {
        false
    }

    /// Notes that each step is about to be run, unless it is noted already.
    ///
    /// *Atomicity:* only while the record is in flight for the attempt, and looking and noting are one step: after the record
    /// is another attempt's, nothing is noted.
    ///
    /// *Returns* the steps as they are kept now. Sent again, it returns the same.
    ///
    /// *Errors:* whether it happened is unknown; send it again.
    async fn start_steps(&self, starts: &[StartStep]) -> Result<Vec<Started>, StoreError> {
        let _ = starts;
        Err(no_steps())
    }

    /// Notes what each step came to.
    ///
    /// *Atomicity:* only while the record is in flight for the attempt, as for [`start_steps`](Self::start_steps); a result
    /// that is there stays, and counts as stored.
    ///
    /// *Errors:* whether it happened is unknown; send it again.
    async fn end_steps(&self, ends: &[EndStep]) -> Result<Vec<StepEnded>, StoreError> {
        let _ = ends;
        Err(no_steps())
    }

    /// The steps of the record's current epoch, in the order in which they were first started.
    ///
    /// *Atomicity:* one snapshot; writes nothing.
    async fn steps(&self, record: RecordId) -> Result<Vec<Step>, StoreError> {
        let _ = record;
        Err(no_steps())
    }

    /// Opens a transaction for a step, and notes the step in it; the body's rows and the result of the step become one
    /// commit. `limit` is how long the body may take: the database ends the session of an owner that is silent for 5 s more.
    ///
    /// *Returns* [`StepBegun::Found`] and opens nothing where the step has a result, or the record is no longer in flight for
    /// the attempt.
    ///
    /// *Errors:* nothing happened, or is undone. *Cancel safety:* whatever was opened is undone and closed.
    async fn begin_step(&self, start: &StartStep, limit: Duration) -> Result<StepBegun, StoreError> {
        let _ = (start, limit);
        Err(no_steps())
    }

    /// Commits what [`begin_step`](Self::begin_step) has opened. (To undo all, the transaction is dropped.)
    ///
    /// *Atomicity:* rows and result appear together, and only if the record is in flight for the attempt when they do: a claim
    /// by another attempt either sees the result, or comes first and undoes all.
    ///
    /// *Returns* [`Committed::Lost`] where the record is another attempt's, or the body has ended the transaction by itself.
    /// What was not committed by then is undone.
    ///
    /// *Errors:* whether it was committed is unknown. Look at the record's [`steps`](Self::steps).
    ///
    /// *Cancel safety:* dropped half way, it may or may not be committed; the connection is closed.
    async fn commit_step(&self, transaction: OpenTransaction, end: &EndStep) -> Result<Committed, StoreError> {
        let _ = (transaction, end);
        Err(no_steps())
    }

    /// Looks for what would break a promise: not migrated, not durable, read-only, a schema of a newer version.
    ///
    /// *Returns* one sentence per fault, each saying what to do; empty if all is well. Called once, at start.
    async fn check(&self) -> Result<Vec<String>, StoreError>;

    /// As [`check`](Self::check), for the connections that bodies write on, where those are others. Called once, at start,
    /// if an operation takes a transaction.
    async fn check_transactions(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}

fn no_steps() -> StoreError {
    StoreError::new(StoreErrorKind::Setup, "this store keeps no steps")
}

#[cfg(test)]
mod tests;
