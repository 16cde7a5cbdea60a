//! Settling by hand what its run did not.

use super::Runtime;
use crate::{
    error::{Error, ErrorKind},
    key::RecordId,
    operation::{self, Kind},
    state::{Event, Reason, State},
    steps::undecided,
    store::{Audit, Fence, Record, Resolution, Resolve, Step, StepDecision},
};

const NEVER_AGAIN: &str = "it began as an operation that is never run again (neither `in_doubt = rerun_deduped` nor `Steps`), or is one by now";

impl Runtime {
    /// Settles a record whose outcome is in doubt, or that would be run again, and writes down who did it and why (in the
    /// table `idem_audit`).
    ///
    /// `seen` is the fence of the [`Record`] on which the decision rests: if anything has happened since, nothing
    /// is changed. Every retry gets what is settled here, and the first run, should it still be alive, cannot
    /// overwrite it. [`Resolution::Release`] lets the next retry run; it is refused while the first run could
    /// still act, and the next run has a new [provider key](Record::provider_key), by which the provider does not know the first:
    /// it waits until its body has come to its own end (a status, an error, a panic), or its lease ended longer ago than
    /// `quarantine` (and than the operation's `timeout`). A request that it has sent may be at the provider for longer:
    /// release nothing before your client's limit and the provider's own have passed. Until then a record that is settled
    /// otherwise is not run again either, also where its windows are shorter: a retry gets the answer, then 410
    /// `idempotency-result-expired`.
    ///
    /// [`Resolution::Resume`] lets the next retry go on with the same provider key, whether or not the first run took effect;
    /// its window (`provider_window`) begins anew. It is refused for an operation that is never run again, and where a step was
    /// begun that must not run again: [`Resolution::ResumeWith`] says what became of it. What was not done is called again, which is
    /// refused for as long as a release would be.
    ///
    /// In a program that does not contain the operation (an operator's tool), its `timeout` and its kind are not known:
    /// give that program a `quarantine` at least as long, and complete a handler's record with
    /// `StoredResponse::http` only.
    ///
    /// ```no_run
    /// # async fn settle(idem: idem_runtime::Runtime) -> Result<(), idem_runtime::Error> {
    /// use idem_runtime::{Audit, Resolution};
    ///
    /// let by = Audit { who: "ops@example.com".into(), why: "closed; the customer was told".into() };
    /// if let Some(record) = idem.find("charge", "acme", "order-1").await? {
    ///     println!("ask the provider for {}", record.provider_key());
    ///     idem.resolve(record.id, record.fence, Resolution::Void, by).await?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`], with the reason in its text, if the record is neither in doubt nor resumable, has another fence, does not exist, or may not be
    /// released yet, if the operation is never run again and is to be resumed, if a step (which the text names) is open and nothing is decided about it, or the other way round, if the answer is of the wrong kind for it, or if `by` is empty; [`ErrorKind::Unavailable`] if the store cannot tell: look again with [`find`](Self::find).
    ///
    /// # Cancel safety
    /// Dropped before it is done, the record may or may not be settled.
    pub async fn resolve(&self, id: RecordId, seen: Fence, how: Resolution, by: Audit) -> Result<Record, Error> {
        let about = |error: Error| error.with(|about| about.record = Some(id));
        let unavailable = |error| about(Error::from_store(error));
        let conflict = |detail| about(Error::new(ErrorKind::Conflict)).with(|about| about.detail = Some(detail));
        let Some(record) = self.ask(self.store().find(id)).await.map_err(unavailable)? else {
            return Err(conflict("there is no such record"));
        };
        if by.who.is_empty() || by.why.is_empty() {
            return Err(conflict("`Audit` needs to say who and why"));
        }
        let operation = operation::named(&record.op);
        if let (Some(operation), Resolution::Complete(response)) = (operation, &how) {
            let is_http = response.status.is_some();
            if is_http != (operation.kind == Kind::Handler) {
                let detail =
                    "a handler is completed with `StoredResponse::http`, a function with `StoredResponse::value`";
                return Err(conflict(detail));
            }
        }
        let rerun = operation.map_or(self.config().provider_window, |operation| self.config().rerun_window(operation));
        if how.event() == Event::ResolveResumed && rerun.is_zero() {
            return Err(conflict(NEVER_AGAIN));
        }
        // Read for what it is told: what may be done, the store decides when it does it.
        let steps = match self.store().keeps_steps() {
            true => self.ask(self.store().steps(id)).await.map_err(unavailable)?,
            false => Vec::new(),
        };
        if let Some(told) = self.cannot_go_on(&steps, &how) {
            return Err(about(Error::new(ErrorKind::Conflict)).with(|about| about.told = Some(told)));
        }
        let timeout = operation.and_then(|operation| operation.timeout);
        let quarantine = self.config().quarantine.max(timeout.unwrap_or_default());
        let resolve = Resolve { record: id, seen, to: how, quarantine, rerun, reason: Reason::Operator, by };
        if !self.ask(self.store().resolve(&resolve)).await.map_err(unavailable)? {
            return Err(conflict(refused(&record, &steps, &resolve)));
        }
        self.waiters().wake(id);
        let settled = self.ask(self.store().find(id)).await.map_err(unavailable)?;
        settled.ok_or_else(|| conflict("the record is gone"))
    }

    /// Why no run could go on by this decision; the steps by their names.
    fn cannot_go_on(&self, steps: &[Step], how: &Resolution) -> Option<String> {
        if how.event() != Event::ResolveResumed {
            return None;
        }
        if let Some(name) = how.not_open(steps) {
            return Some(format!("step `{name}` was not begun, or it has a result: see `Runtime::steps`"));
        }
        if let Some(name) = how.not_asked(steps) {
            let what = "is no `once_or_find`, so its next run has nobody to ask; decide `Done` or `NotDone`, or nothing while it may run again";
            return Some(format!("step `{name}` {what}"));
        }
        let max = self.config().max_response;
        let too_long =
            |decision: &StepDecision| matches!(decision, StepDecision::Done(result) if result.len() as u64 > max);
        if let Some((name, _)) = how.decisions().find(|(_, decision)| too_long(decision)) {
            return Some(format!("the result of step `{name}` is longer than `max_response`, which is {max}"));
        }
        let undecided = undecided(steps, how, self.config().provider_window)?;
        let what = "were begun and must not run again, and nobody knows what they came to; say it with `Resolution::ResumeWith`";
        Some(format!("these steps {what}: {undecided}"))
    }
}

/// Why a store did not settle a record, from how it stood a moment before.
fn refused(record: &Record, steps: &[Step], resolve: &Resolve) -> &'static str {
    match record.state {
        _ if record.fence != resolve.seen => "something has happened since: the fence is another one",
        State::InFlight => "its body still runs",
        State::Done | State::Rejected | State::Released => "it is settled already",
        State::InDoubt | State::Resumable if !resolve.to.fits(steps) => {
            "a step of it has a result, so something has happened: go on with it (`Resume`, `ResumeWith`), complete or void it"
        }
        State::InDoubt | State::Resumable if resolve.to.does_anew() => {
            "nothing of it may be done anew yet: its body, or what it has sent, could still act until the quarantine after the end of its lease is over"
        }
        State::InDoubt | State::Resumable => NEVER_AGAIN,
        State::Unknown(_) => "a newer version of this program wrote it",
    }
}
