//! The same steps, played on a store: what `store.rs` makes of a record is what a real store makes of it.

use std::time::Duration;

use idem_runtime::{
    Attempt as StoreAttempt, Audit, Fence, Fingerprint, Key, RecordId, Resolution, Scope, StoredResponse,
    state::{Reason, State, Verdict},
    store::{Claim, Claimed, Finish, Finished, Found, Outcome, Peek, Recover, Renewal, Resolve, Store},
};
use stateright::Model as _;

use crate::{
    config::{Config, Release, Settler},
    step::{Checked, Step},
    world::{Answer, Attempt, Payload, Worker, World},
};

const LEASE: Duration = Duration::from_secs(30);
const QUARANTINE: Duration = Duration::from_secs(600);
/// Longer than any walk, too.
const WINDOW: Duration = Duration::from_secs(30 * 24 * 3600);
/// Longer than any walk.
const TTL: Duration = Duration::from_secs(365 * 24 * 3600);

struct Played<'a> {
    store: &'a dyn Store,
    config: Config,
    record: RecordId,
    /// In the order of the model's numbers, from 1.
    attempts: Vec<StoreAttempt>,
    /// What the operator or the hook has seen.
    seen: Option<Fence>,
}

/// Walks at random through the states of a held configuration, plays each step on `store`, whose clock is tokio's, and
/// compares: what each request is told, whether each write counts, and the record. Only the ends of leases and quarantines
/// are played of time. Gives how many steps were played.
///
/// # Panics
/// Where the model and the store differ, with the steps to that.
pub async fn play(store: &dyn Store, config: Config, seed: u64, steps: usize) -> usize {
    assert_eq!((config.windows, config.purge, config.rerun_ends), (0, None, false), "these are not played");
    let key = Key::new(format!("walk-{seed}")).expect("a key");
    let record = RecordId::new("model", &Scope::of("all"), "walk", &key);
    let mut played = Played { store, config, record, attempts: Vec::new(), seen: None };
    let model = Checked { config, invariants: Vec::new(), reached: Vec::new() };
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut world, mut path) = (World::new(), Vec::new());
    for _ in 0..steps {
        let mut may = Vec::new();
        model.actions(&world, &mut may);
        let mut next: Vec<_> =
            may.into_iter().filter_map(|step| Some((step, model.next_state(&world, step)?))).collect();
        if next.is_empty() {
            break;
        }
        let (step, after) = next.swap_remove(random.usize(..next.len()));
        path.push(step);
        played.step(&world, step, &after).await.unwrap_or_else(|what| panic!("{what}, by {path:?}"));
        played.compare(&after).await.unwrap_or_else(|what| panic!("{what}, by {path:?}"));
        world = after;
    }
    path.len()
}

/// `Err`: how they differ.
type Same = Result<(), String>;

fn same<T: PartialEq + std::fmt::Debug>(what: &str, model: &T, store: &T) -> Same {
    if model == store { Ok(()) } else { Err(format!("{what}: the model says {model:?}, the store {store:?}")) }
}

impl Played<'_> {
    async fn step(&mut self, before: &World, step: Step, after: &World) -> Same {
        match step {
            Step::Request(payload) if after.runs > before.runs => self.claim(payload).await,
            Step::Complete(attempt) | Step::CompleteUnheard(attempt) => {
                let answer = before.runs().find(|run| run.attempt == attempt).and_then(|run| run.answer);
                self.finish(attempt, Outcome::Done(reply(answer)), before, after).await
            }
            Step::Fail(attempt) => self.finish(attempt, Outcome::InDoubt(Reason::Status), before, after).await,
            Step::GiveUp(attempt) => self.finish(attempt, Outcome::InDoubt(Reason::Shutdown), before, after).await,
            Step::CutOff(attempt) => {
                let outcome = Outcome::InDoubt(Reason::Timeout); // nobody is left to hear whether it was lost
                let finish = Finish { record: self.record, attempt: self.attempt(attempt), outcome };
                self.store.finish(&[finish]).await.map_err(|error| error.to_string())?;
                Ok(())
            }
            Step::Release(attempt) => self.finish(attempt, Outcome::Released(Reason::Status), before, after).await,
            Step::Reject(attempt) => self.finish(attempt, Outcome::Rejected(reply(None), TTL), before, after).await,
            Step::Renew(attempt) => {
                let renewal = Renewal { record: self.record, attempt: self.attempt(attempt) };
                self.store.renew(&[renewal], LEASE).await.map_err(|error| error.to_string())?;
                Ok(())
            }
            Step::LeaseEnds => {
                tokio::time::advance(LEASE).await;
                Ok(())
            }
            Step::QuarantineEnds => {
                tokio::time::advance(QUARANTINE).await;
                Ok(())
            }
            Step::Look if matches!(self.config.settler, Some(Settler::Hook(_))) => self.take_over().await,
            Step::Look => {
                let record = self.store.find(self.record).await.map_err(|error| error.to_string())?;
                self.seen = record.map(|record| record.fence);
                Ok(())
            }
            Step::Settle => self.settle(before, after).await,
            _ => Ok(()), // outside of the store
        }
    }

    async fn claim(&mut self, payload: Payload) -> Same {
        let attempt = StoreAttempt::random();
        self.attempts.push(attempt);
        let claim = Claim {
            record: self.record,
            scope: "all".into(),
            op: "walk",
            attempt,
            fingerprint: fingerprint(payload),
            lease: LEASE,
            ttl: TTL,
            guard: TTL,
            rerun: if self.config.rerun { WINDOW } else { Duration::ZERO },
            input: None,
        };
        let claimed = self.store.claim(&[claim]).await.map_err(|error| error.to_string())?;
        same("granted", &true, &matches!(claimed[..], [Claimed::Owner(_)]))
    }

    async fn finish(&self, attempt: Attempt, outcome: Outcome, before: &World, after: &World) -> Same {
        let run = before.runs().find(|run| run.attempt == attempt);
        let continues = run.is_some_and(|run| run.continues(&self.config));
        let outcome = match outcome {
            Outcome::InDoubt(reason) if self.config.rerun => Outcome::Resumable(reason),
            Outcome::Released(reason) if continues => Outcome::Resumable(reason),
            Outcome::Rejected(..) if continues => Outcome::Resumable(Reason::Status),
            outcome => outcome,
        };
        let finish = Finish { record: self.record, attempt: self.attempt(attempt), outcome };
        let finished = self.store.finish(&[finish]).await.map_err(|error| error.to_string())?;
        let lost = losers(after) > losers(before);
        same("lost", &lost, &matches!(finished[..], [Finished::Lost]))
    }

    /// T12, by a hook; how long nobody else may have it is the store's own, and not played.
    async fn take_over(&mut self) -> Same {
        let recover = Recover { ops: vec!["walk"], lease: Duration::ZERO, grace: Duration::ZERO, tries: 100, limit: 1 };
        let taken = self.store.recover(&recover).await.map_err(|error| error.to_string())?;
        self.seen = taken.iter().find(|taken| taken.record.id == self.record).map(|taken| taken.record.fence);
        same("taken over", &true, &self.seen.is_some())
    }

    async fn settle(&self, before: &World, after: &World) -> Same {
        let (Some(look), Some(seen)) = (before.settling, self.seen) else { return Ok(()) };
        let to = match (look.found, self.config.settler.map(Settler::release)) {
            (Some(_), _) => Resolution::Complete(reply(look.found)),
            (None, Some(Release::Void)) => Resolution::Void,
            (None, Some(Release::Resume)) => Resolution::Resume,
            (None, _) => Resolution::Release,
        };
        let by = Audit { who: "model".into(), why: "walk".into() };
        let resolve = Resolve {
            record: self.record,
            seen,
            to,
            quarantine: QUARANTINE,
            rerun: WINDOW,
            reason: Reason::Operator,
            by,
        };
        let resolved = self.store.resolve(&resolve).await.map_err(|error| error.to_string())?;
        same("resolved", &(after.row != before.row), &resolved)
    }

    /// What requests would be told, and the record.
    async fn compare(&self, world: &World) -> Same {
        for payload in [0, 1] {
            let peek = Peek { record: self.record, fingerprint: fingerprint(payload), rerun: self.config.rerun };
            let told = self.store.peek(&[peek]).await.map_err(|error| error.to_string())?;
            let answer = world.row.as_ref().and_then(|row| row.answer);
            let done = world.row.as_ref().is_some_and(|row| row.state == State::Done);
            let expected = match world.verdict(&self.config, payload) {
                Verdict::Take => None,
                Verdict::Answered if done && answer.is_none() => Some(String::from("NotRetained")),
                Verdict::Answered => Some(format!("{:?}", reply(answer).body)),
                verdict => Some(format!("{verdict:?}")),
            };
            same("told", &expected, &told.first().and_then(Option::as_ref).map(words))?;
        }
        let record = self.store.find(self.record).await.map_err(|error| error.to_string())?;
        let Some(row) = &world.row else { return same("a record", &false, &record.is_some()) };
        let record = record.ok_or("the store has no record")?;
        let silent = if row.rerun_over { State::InDoubt } else { State::Resumable };
        let expired = row.state == State::InFlight && row.lease_over;
        let (state, reason) = if expired { (silent, Some(Reason::LeaseExpired)) } else { (row.state, row.reason) };
        same("state", &(state, reason), &(record.state, record.reason))?;
        same("continued", &(row.fence != row.epoch), &(record.fence != record.epoch))?;
        let current = self.attempts.iter().position(|attempt| *attempt == record.attempt).map_or(0, |at| at + 1);
        same("attempt", &usize::from(row.attempt), &current)
    }

    fn attempt(&self, attempt: Attempt) -> StoreAttempt {
        self.attempts[usize::from(attempt) - 1]
    }
}

fn losers(world: &World) -> usize {
    world.workers.iter().filter(|worker| matches!(worker, Worker::Lost(_))).count()
}

fn fingerprint(payload: Payload) -> Fingerprint {
    Fingerprint::from_parts(1, [payload; 32])
}

/// `None`: a client error that is kept.
fn reply(answer: Option<Answer>) -> StoredResponse {
    StoredResponse {
        status: Some(200),
        headers: Vec::new().into(),
        body: Some(format!("{answer:?}").into_bytes().into()),
    }
}

/// What a store finds, in the words of the verdict.
fn words(found: &Found) -> String {
    match found {
        Found::InFlight { .. } => String::from("InFlight"),
        Found::InDoubt(reason) => format!("InDoubt({reason:?})"),
        Found::Mismatch => String::from("Mismatch"),
        Found::NotRetained { .. } => String::from("NotRetained"),
        Found::Replay(replay) => format!("{:?}", replay.response.body),
        other => format!("{other:?}"),
    }
}
