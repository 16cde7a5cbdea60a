//! Writes down what a hook has found out.

use std::time::Duration;

use super::{
    Recovery,
    pause::{BACK_OFF, TRIES, pause},
    run::Recoveries,
};
use crate::{
    execution::is_link,
    observe::Recovered,
    operation::{Kind, Operation},
    state::Reason,
    steps::undecided,
    store::{Audit, Link, PutOff, Recovering, Resolution, Resolve, Step, StepDecision, StoreError, StoredResponse},
};

/// Longer than anything has been silent.
const FOREVER: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

/// One question to a hook.
#[derive(Clone, Copy)]
pub(super) struct Try<'t> {
    pub(super) recovering: &'t Recovering,
    pub(super) operation: &'static Operation,
    /// How long this process has known of the doubt.
    pub(super) known_for: Duration,
    pub(super) steps: &'t [Step],
}

impl Recoveries {
    /// `None` if the hook said nothing.
    pub(super) async fn write(&self, asked: Try<'_>, recovery: Option<Recovery>) -> Result<Recovered, StoreError> {
        let (op, record) = (asked.operation.op, asked.recovering.record.id);
        match recovery {
            Some(Recovery::Completed(response, links)) if fits(asked.operation, &response, &links) => {
                self.link(asked, links).await?;
                let settled = self.resolve(asked, Resolution::Complete(response)).await?;
                if settled {
                    tracing::info!(target: "idem::recovery", op, %record, "a recovery hook found out that it happened; retries get its answer");
                }
                Ok(if settled { Recovered::Completed } else { Recovered::Lost })
            }
            Some(Recovery::Completed(..)) => {
                tracing::error!(target: "idem::recovery", op, %record, "what a recovery hook answered does not fit its operation: a handler's is made by `StoredResponse::http`, a function's by `StoredResponse::value`, and links are 1 to 512 bytes without NUL");
                self.later(asked, None, Recovered::Failed).await
            }
            Some(Recovery::NotApplied) => {
                if self.resolve(asked, Resolution::Release).await? {
                    tracing::info!(target: "idem::recovery", op, %record, "a recovery hook found out that nothing happened; the key is free");
                    return Ok(Recovered::NotApplied);
                }
                if Resolution::Release.fits(asked.steps) {
                    return self.after_its_quarantine(asked).await;
                }
                tracing::error!(target: "idem::recovery", op, %record, "a recovery hook says that nothing happened, but a step of the operation has a result");
                self.later(asked, None, Recovered::Failed).await
            }
            Some(Recovery::Resume) => self.go_on(asked, Resolution::Resume).await,
            Some(Recovery::ResumeWith(decisions)) => self.go_on(asked, Resolution::ResumeWith(decisions)).await,
            Some(Recovery::StillUnknown { retry_in }) => self.later(asked, retry_in, Recovered::StillUnknown).await,
            None => self.later(asked, None, Recovered::Failed).await,
        }
    }

    /// The next run goes on; or why it could not, so that the hook is asked again, and in the end no more: a run that comes to
    /// the same doubt would have its tries counted from the beginning, for ever.
    async fn go_on(&self, asked: Try<'_>, to: Resolution) -> Result<Recovered, StoreError> {
        let (op, record) = (asked.operation.op, &asked.recovering.record);
        let undecided = undecided(asked.steps, &to, self.provider_window);
        let asks_again = to.decisions().any(|(_, decision)| *decision == StepDecision::AskAgain);
        let why_not = if self.rerun(asked.operation).is_zero() {
            "it began as an operation that never is (neither `in_doubt = rerun_deduped` nor `Steps`)"
        } else if record.reason == Some(Reason::CodeChanged) {
            "the program has changed between two runs (`CodeChanged`), so the next one may come to the same: an operator decides, by `Runtime::resolve`"
        } else if asks_again {
            "`AskAgain` is for operators: ask the provider in the hook, by `InDoubt::step_key`"
        } else if undecided.is_some() {
            "steps were begun that must not run again, and it does not say what they came to: ask their providers by `InDoubt::step_key` and say it with `Recovery::ResumeWith`, or `StillUnknown`; or settle the record by `Runtime::resolve`"
        } else if !to.fits(asked.steps) {
            "it decides about a step that was not begun or has a result: see `InDoubt::steps`"
        } else if self.resolve(asked, to.clone()).await? {
            tracing::info!(target: "idem::recovery", op, record = %record.id, "a recovery hook lets it be run again");
            return Ok(Recovered::Resumed);
        } else if to.does_anew() && self.may_act(asked) {
            return self.after_its_quarantine(asked).await;
        } else {
            "it began as an operation that never is (neither `in_doubt = rerun_deduped` nor `Steps`), or something has happened since"
        };
        tracing::error!(target: "idem::recovery", op, record = %record.id, why_not, steps = undecided, "a recovery hook wants it to be run again, and it is not");
        self.later(asked, None, Recovered::Failed).await
    }

    /// The first run, as far as silence tells. The hook looked while it could still act; what was not found may have come since.
    fn may_act(&self, asked: Try<'_>) -> bool {
        asked.recovering.record.silent_for.min(asked.known_for) < self.quarantine_of(asked.operation)
    }

    /// Asked at the latest when its "nothing happened" will count.
    async fn after_its_quarantine(&self, asked: Try<'_>) -> Result<Recovered, StoreError> {
        let silent = asked.recovering.record.silent_for.min(asked.known_for);
        let left = self.quarantine_of(asked.operation).saturating_sub(silent).max(BACK_OFF.0);
        self.put_off(asked, self.pause_after(asked, None).min(left), Recovered::Quarantined).await
    }

    async fn later(&self, asked: Try<'_>, wish: Option<Duration>, so: Recovered) -> Result<Recovered, StoreError> {
        self.put_off(asked, self.pause_after(asked, wish), so).await
    }

    async fn link(&self, asked: Try<'_>, links: Vec<(String, String)>) -> Result<(), StoreError> {
        let record = &asked.recovering.record;
        let link =
            |(provider, id)| Link { record: record.id, epoch: record.epoch, attempt: record.attempt, provider, id };
        let links: Vec<Link> = links.into_iter().map(link).collect();
        if links.is_empty() { Ok(()) } else { self.ask(self.store.link(&links)).await }
    }

    async fn resolve(&self, asked: Try<'_>, to: Resolution) -> Result<bool, StoreError> {
        let Try { recovering: Recovering { record, .. }, operation, .. } = asked;
        // Only what has ended by its own report may go. Where only the store's clock says that nothing could act, that clock may
        // have jumped.
        let quarantine = if to.does_anew() && self.may_act(asked) { FOREVER } else { self.quarantine_of(operation) };
        let why = match to {
            Resolution::Release => "it found out that nothing happened",
            Resolution::Resume => "it is to be run again",
            Resolution::ResumeWith(_) => "it found out what its steps came to, and it is to be run again",
            _ => "it found out that it happened",
        };
        let rerun = self.rerun(operation);
        let by = Audit { who: "recovery hook".to_owned(), why: why.to_owned() };
        let resolve =
            Resolve { record: record.id, seen: record.fence, to, quarantine, rerun, reason: Reason::Recovery, by };
        self.ask(self.store.resolve(&resolve)).await
    }

    /// Until the next try. `so`, unless the record is not ours any more.
    async fn put_off(&self, asked: Try<'_>, by: Duration, so: Recovered) -> Result<Recovered, StoreError> {
        let Recovering { record, tries } = asked.recovering;
        let put_off = PutOff { record: record.id, seen: record.fence, by };
        if !self.ask(self.store.put_off(&put_off)).await? {
            return Ok(Recovered::Lost);
        }
        if *tries >= TRIES {
            tracing::warn!(target: "idem::recovery", op = record.op, record = %record.id, "a recovery hook does not find out what happened and is asked no more; the record waits for `Runtime::resolve`");
        }
        Ok(so)
    }

    fn pause_after(&self, asked: Try<'_>, wish: Option<Duration>) -> Duration {
        pause(asked.recovering.tries, wish, self.quarantine_of(asked.operation))
    }
}

fn fits(operation: &Operation, response: &StoredResponse, links: &[(String, String)]) -> bool {
    let right_kind = response.status.is_some() == (operation.kind == Kind::Handler);
    right_kind && links.iter().all(|(provider, id)| is_link(provider, id))
}
