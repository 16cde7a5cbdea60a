//! Every pair of verbs that may meet at one record, in both orders: the first one's transaction is held open until the
//! second one waits for it, or has gone by it; then it is committed or rolled back. A claim and a recovery do not meet: until
//! the end of its window a lost run is for claims, and then for recoveries.

mod settling;
mod steps;

use std::{sync::Arc, time::Duration};

pub(in crate::store) use self::{settling::*, steps::*};
use super::*;
use crate::{
    conformance::{
        recorded::{end_of, start_of},
        steps::{
            GUARD, LEASE, QUARANTINE, claim, claim_one, finish, found, own, record, reply, rerunnable, run, survey,
        },
    },
    state::{Reason, State},
};

/// A verb for one record.
#[derive(Clone)]
pub(in crate::store) enum Act {
    Claim(Claim),
    Finish(Claim),
    /// Its owner does not know.
    Hold(Claim),
    Renew(Claim),
    Purge,
    Recover,
    Resolve(Resolve),
    StartStep(Claim),
    EndStep(Claim),
}

/// What it said.
#[derive(Debug)]
pub(in crate::store) enum Said {
    Claimed(Claimed),
    Finished(Finished),
    Renewed(Renewed),
    Purged(u32),
    Recovered(usize),
    Resolved(bool),
    /// Or lost.
    Started(bool),
    Ended(StepEnded),
}

impl Said {
    pub(in crate::store) fn started(started: &[Started]) -> Self {
        Self::Started(matches!(started, [Started::Step(_)]))
    }
}

impl Act {
    pub(in crate::store) async fn by(&self, store: &dyn Store) -> Said {
        match self {
            Self::Claim(claim) => Said::Claimed(claim_one(store, claim).await),
            Self::Finish(claim) | Self::Hold(claim) => Said::Finished(finish(store, claim, self.outcome()).await),
            Self::Resolve(resolve) => Said::Resolved(store.resolve(resolve).await.unwrap()),
            Self::Renew(claim) => Said::Renewed(store.renew(&[self.renewal(claim)], LEASE).await.unwrap()[0]),
            Self::Recover => Said::Recovered(store.recover(&Self::recovery()).await.unwrap().len()),
            Self::Purge => Said::Purged(store.purge(&Purge::at_any_time(1_000)).await.unwrap().records),
            Self::StartStep(claim) => Said::started(&store.start_steps(&[start_of(claim, STEP)]).await.unwrap()),
            Self::EndStep(claim) => Said::Ended(store.end_steps(&[end_of(claim, STEP, "p1")]).await.unwrap()[0]),
        }
    }

    /// Of a run that ends.
    pub(in crate::store) fn outcome(&self) -> Outcome {
        match self {
            Self::Hold(_) => Outcome::InDoubt(Reason::Status),
            _ => Outcome::Done(reply("x")),
        }
    }

    pub(in crate::store) fn recovery() -> Recover {
        Recover { ops: vec!["charge"], lease: LEASE, grace: Duration::ZERO, tries: 10, limit: 10 }
    }

    pub(in crate::store) fn renewal(&self, claim: &Claim) -> Renewal {
        Renewal { record: claim.record, attempt: claim.attempt }
    }
}

/// Two connections to one database.
#[async_trait::async_trait]
pub(in crate::store) trait Stage: Clock {
    /// The second one, as a store.
    fn store(&self) -> &Arc<dyn Store>;
    /// Renewals, purges and recoveries go by what is locked, instead of waiting.
    fn goes_by(&self) -> bool;
    /// Lets the first one act, and leaves its transaction open.
    async fn hold(&self, act: &Act) -> Said;
    /// Until the second one waits for the first.
    async fn until_it_waits(&self);
    /// Ends the first one's transaction.
    async fn end(&self, commit: bool);
}

/// What `second` says after `first` was committed or rolled back; and what it says meanwhile, where it does not wait.
async fn meet(stage: &dyn Stage, first: Act, second: Act, commit: bool) -> (Option<Said>, Said) {
    stage.hold(&first).await;
    let (store, act) = (Arc::clone(stage.store()), second.clone());
    if stage.goes_by() && matches!(second, Act::Renew(_) | Act::Purge | Act::Recover) {
        let at_once = tokio::time::timeout(Duration::from_secs(3), second.by(&store)).await.expect("it waits");
        stage.end(commit).await;
        return (Some(at_once), second.by(&store).await);
    }
    let waiting = tokio::spawn(async move { act.by(&store).await });
    stage.until_it_waits().await;
    assert!(!waiting.is_finished());
    stage.end(commit).await;
    (None, waiting.await.unwrap())
}

/// A run whose lease was over at once, and a claim that may take over.
async fn silent(stage: &dyn Stage, key: &str) -> (Claim, Claim) {
    let owner = Claim { lease: Duration::ZERO, ..rerunnable(key) };
    own(stage.store(), &owner).await;
    (owner, rerunnable(key))
}

/// A run whose lease is over, and that has been looked at.
async fn lost(stage: &dyn Stage, key: &str) -> Claim {
    let owner = Claim { lease: Duration::ZERO, ..claim(key) };
    own(stage.store(), &owner).await;
    stage.pass(Duration::from_secs(3)).await;
    survey(stage.store()).await;
    owner
}

/// A record that may be purged.
async fn over(stage: &dyn Stage, key: &str) -> Claim {
    let owner = run(stage.store(), key, Outcome::Done(reply("x"))).await;
    stage.pass(GUARD * 2).await;
    owner
}

const ENDS: [(bool, &str); 2] = [(true, "committed"), (false, "rolled back")];

pub(in crate::store) async fn claim_then_claim(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        for (key, attempts) in [(format!("{key}, new"), 1), (format!("{key}, released"), 2)] {
            if attempts == 2 {
                run(stage.store(), &key, Outcome::Released(Reason::Status)).await;
            }
            match (commit, meet(stage, Act::Claim(claim(&key)), Act::Claim(claim(&key)), commit).await.1) {
                (true, Said::Claimed(Claimed::Found(Found::InFlight { .. }))) => {}
                (false, Said::Claimed(Claimed::Owner(owned))) => assert_eq!(owned.attempts, attempts),
                other => panic!("{key}: {other:?}"),
            }
        }
    }
}

pub(in crate::store) async fn claim_then_finish(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, other) = silent(stage, key).await;
        match (commit, meet(stage, Act::Claim(other), Act::Finish(owner), commit).await.1) {
            (true, Said::Finished(Finished::Lost)) | (false, Said::Finished(Finished::Stored { .. })) => {}
            other => panic!("{other:?}"),
        }
    }
}

pub(in crate::store) async fn finish_then_claim(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, other) = silent(stage, key).await;
        match (commit, meet(stage, Act::Finish(owner), Act::Claim(other), commit).await.1) {
            (true, Said::Claimed(Claimed::Found(Found::Replay(replay)))) => assert_eq!(replay.response, reply("x")),
            (false, Said::Claimed(Claimed::Owner(owned))) => assert_eq!(owned.attempts, 2),
            other => panic!("{other:?}"),
        }
    }
}

pub(in crate::store) async fn claim_then_renew(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, other) = silent(stage, key).await;
        let (meanwhile, after) = meet(stage, Act::Claim(other), Act::Renew(owner), commit).await;
        found!(meanwhile, None | Some(Said::Renewed(Renewed::Busy)));
        match (commit, after) {
            (true, Said::Renewed(Renewed::Lost)) | (false, Said::Renewed(Renewed::Held)) => {}
            other => panic!("{other:?}"),
        }
    }
}

pub(in crate::store) async fn renew_then_claim(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, other) = silent(stage, key).await;
        match (commit, meet(stage, Act::Renew(owner), Act::Claim(other), commit).await.1) {
            (true, Said::Claimed(Claimed::Found(Found::InFlight { .. }))) => {}
            (false, Said::Claimed(Claimed::Owner(owned))) => assert_eq!(owned.attempts, 2),
            other => panic!("{other:?}"),
        }
    }
}

pub(in crate::store) async fn finish_then_renew(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let owner = claim(key);
        own(stage.store(), &owner).await;
        let (meanwhile, after) = meet(stage, Act::Finish(owner.clone()), Act::Renew(owner), commit).await;
        found!(meanwhile, None | Some(Said::Renewed(Renewed::Busy)));
        match (commit, after) {
            (true, Said::Renewed(Renewed::Lost)) | (false, Said::Renewed(Renewed::Held)) => {}
            other => panic!("{other:?}"),
        }
    }
}

pub(in crate::store) async fn renew_then_finish(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let owner = claim(key);
        own(stage.store(), &owner).await;
        let (_, after) = meet(stage, Act::Renew(owner.clone()), Act::Finish(owner), commit).await;
        found!(after, Said::Finished(Finished::Stored { .. }));
    }
}

pub(in crate::store) async fn claim_then_purge(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        over(stage, key).await;
        let (meanwhile, after) = meet(stage, Act::Claim(claim(key)), Act::Purge, commit).await;
        found!(meanwhile, None | Some(Said::Purged(0)));
        found!((commit, after), (true, Said::Purged(0)) | (false, Said::Purged(1)));
        let left = stage.store().find(record(key)).await.unwrap();
        assert_eq!(left.map(|record| record.state), commit.then_some(State::InFlight));
    }
}

pub(in crate::store) async fn purge_then_claim(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        over(stage, key).await;
        let (_, after) = meet(stage, Act::Purge, Act::Claim(claim(key)), commit).await;
        let owned = found!(after, Said::Claimed(Claimed::Owner(owned)) => owned);
        assert_eq!(owned.attempts, if commit { 1 } else { 2 });
        assert_eq!(stage.store().find(record(key)).await.unwrap().unwrap().state, State::InFlight);
    }
}

/// A finish that is sent again holds the record as any other does; one that settles a doubt gives it new windows.
pub(in crate::store) async fn finish_then_purge(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let owner = over(stage, key).await;
        let (meanwhile, after) = meet(stage, Act::Finish(owner), Act::Purge, commit).await;
        found!(meanwhile, None | Some(Said::Purged(0)));
        found!(after, Said::Purged(1));
    }
    for (commit, key) in ENDS.into_iter().rev() {
        let owner = run(stage.store(), key, Outcome::InDoubt(Reason::Status)).await;
        stage.pass(GUARD * 2).await;
        let (meanwhile, after) = meet(stage, Act::Finish(owner), Act::Purge, commit).await;
        found!((meanwhile, after), (None | Some(Said::Purged(0)), Said::Purged(0)));
        let state = if commit { State::Done } else { State::InDoubt };
        assert_eq!(stage.store().find(record(key)).await.unwrap().unwrap().state, state);
    }
}

pub(in crate::store) async fn purge_then_finish(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let owner = over(stage, key).await;
        match (commit, meet(stage, Act::Purge, Act::Finish(owner), commit).await.1) {
            (true, Said::Finished(Finished::Lost)) | (false, Said::Finished(Finished::Stored { .. })) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// A test per pair, on a stage that `$open` makes.
macro_rules! interleavings {
    ($open:path: $($test:ident $pair:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            $crate::store::tests::interleavings::$pair(&$open().await).await;
        }
    )*};
    ($open:path) => {
        $crate::store::tests::interleavings::interleavings! { $open:
            scenario_102_claim_then_claim claim_then_claim
            scenario_102_claim_then_finish claim_then_finish
            scenario_102_finish_then_claim finish_then_claim
            scenario_102_claim_then_renew claim_then_renew
            scenario_102_renew_then_claim renew_then_claim
            scenario_102_finish_then_renew finish_then_renew
            scenario_102_renew_then_finish renew_then_finish
            scenario_102_claim_then_purge claim_then_purge
            scenario_102_purge_then_claim purge_then_claim
            scenario_102_finish_then_purge finish_then_purge
            scenario_102_purge_then_finish purge_then_finish
            scenario_102_recover_then_finish recover_then_finish
            scenario_102_finish_then_recover finish_then_recover
            scenario_102_recover_then_recover recover_then_recover
            scenario_102_recover_then_renew recover_then_renew
            scenario_102_renew_then_recover renew_then_recover
            scenario_102_recover_then_purge recover_then_purge
            scenario_102_hold_then_claim hold_then_claim
            scenario_102_claim_then_hold claim_then_hold
            scenario_102_hold_then_recover hold_then_recover
            scenario_102_recover_then_hold recover_then_hold
            scenario_102_resolve_then_claim resolve_then_claim
            scenario_102_claim_then_resolve claim_then_resolve
            scenario_102_resume_then_claim resume_then_claim
            scenario_102_claim_then_resume claim_then_resume
            scenario_102_resolve_then_finish resolve_then_finish
            scenario_102_finish_then_resolve finish_then_resolve
            scenario_102_resolve_then_renew resolve_then_renew
            scenario_102_renew_then_resolve renew_then_resolve
            scenario_102_resolve_then_recover resolve_then_recover
            scenario_102_recover_then_resolve recover_then_resolve
            scenario_102_resolve_then_resolve resolve_then_resolve
            scenario_102_resolve_then_purge resolve_then_purge
            scenario_85_claim_then_start_step claim_then_start_step
            scenario_102_start_step_then_claim start_step_then_claim
            scenario_85_claim_then_end_step claim_then_end_step
            scenario_102_end_step_then_claim end_step_then_claim
            scenario_102_recover_then_end_step recover_then_end_step
            scenario_102_end_step_then_recover end_step_then_recover
            scenario_102_finish_then_end_step finish_then_end_step
            scenario_102_end_step_then_renew end_step_then_renew
            scenario_102_end_step_then_decide end_step_then_decide
            scenario_102_decide_then_end_step decide_then_end_step
            scenario_102_end_step_then_release end_step_then_release
        }
    };
}
pub(in crate::store) use interleavings;
