//! Pairs of which one starts or ends a step. The takeover that comes second has seen, when it is granted, all that the first
//! one wrote; the step that comes second writes nothing.

use super::*;
use crate::{
    conformance::recorded::{is, noted, start},
    store::{Resolution, StepDecision, StepDecisions, StepEnded},
};

pub(in crate::store) const STEP: &str = "pay";

/// A silent owner that has started a step, and a claim that may take over.
async fn amid_a_step(stage: &dyn Stage, key: &str) -> (Claim, Claim) {
    let (owner, other) = silent(stage, key).await;
    start(stage.store(), &owner, STEP).await;
    (owner, other)
}

/// Whether the step has the result that `Act::EndStep` gives it.
async fn has_ended(stage: &dyn Stage, key: &str, ended: bool) {
    assert_eq!(noted(stage.store(), key).await, [is(STEP, ended.then_some("p1"))]);
}

pub(in crate::store) async fn claim_then_start_step(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, other) = silent(stage, key).await;
        let (_, after) = meet(stage, Act::Claim(other), Act::StartStep(owner), commit).await;
        found!((commit, after), (true, Said::Started(false)) | (false, Said::Started(true)));
        assert_eq!(noted(stage.store(), key).await.len(), usize::from(!commit));
    }
}

pub(in crate::store) async fn start_step_then_claim(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, other) = silent(stage, key).await;
        let (_, after) = meet(stage, Act::StartStep(owner), Act::Claim(other), commit).await;
        found!(after, Said::Claimed(Claimed::Owner(owned)) if owned.attempts == 2);
        assert_eq!(noted(stage.store(), key).await.len(), usize::from(commit));
    }
}

pub(in crate::store) async fn claim_then_end_step(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, other) = amid_a_step(stage, key).await;
        let (_, after) = meet(stage, Act::Claim(other), Act::EndStep(owner), commit).await;
        let said = if commit { StepEnded::Lost } else { StepEnded::Stored };
        found!(after, Said::Ended(ended) if ended == said);
        has_ended(stage, key, !commit).await;
    }
}

pub(in crate::store) async fn end_step_then_claim(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, other) = amid_a_step(stage, key).await;
        let (_, after) = meet(stage, Act::EndStep(owner), Act::Claim(other), commit).await;
        found!(after, Said::Claimed(Claimed::Owner(owned)) if owned.attempts == 2);
        has_ended(stage, key, commit).await;
    }
}

pub(in crate::store) async fn recover_then_end_step(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let owner = lost(stage, key).await;
        start(stage.store(), &owner, STEP).await;
        let (_, after) = meet(stage, Act::Recover, Act::EndStep(owner), commit).await;
        let said = if commit { StepEnded::Lost } else { StepEnded::Stored };
        found!(after, Said::Ended(ended) if ended == said);
        has_ended(stage, key, !commit).await;
    }
}

pub(in crate::store) async fn end_step_then_recover(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let owner = lost(stage, key).await;
        start(stage.store(), &owner, STEP).await;
        let (meanwhile, after) = meet(stage, Act::EndStep(owner), Act::Recover, commit).await;
        found!(meanwhile, None | Some(Said::Recovered(0)));
        found!(after, Said::Recovered(1));
        has_ended(stage, key, commit).await;
    }
}

/// A run that has ended notes nothing more, also of what it had begun to say.
pub(in crate::store) async fn finish_then_end_step(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, _) = amid_a_step(stage, key).await;
        let (_, after) = meet(stage, Act::Hold(owner.clone()), Act::EndStep(owner), commit).await;
        let said = if commit { StepEnded::Lost } else { StepEnded::Stored };
        found!(after, Said::Ended(ended) if ended == said);
        has_ended(stage, key, !commit).await;
    }
}

/// A renewal goes by and comes again, or waits; it is not lost.
pub(in crate::store) async fn end_step_then_renew(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, _) = amid_a_step(stage, key).await;
        let (meanwhile, after) = meet(stage, Act::EndStep(owner.clone()), Act::Renew(owner), commit).await;
        found!(meanwhile, None | Some(Said::Renewed(Renewed::Busy)));
        found!(after, Said::Renewed(Renewed::Held));
    }
}

/// Says what the step came to, in the place of its silent owner.
async fn settles(stage: &dyn Stage, key: &str) -> Act {
    let decided = StepDecisions::new().step(STEP, StepDecision::Done("by hand".into()));
    decides(stage, key, Resolution::ResumeWith(decided)).await
}

pub(in crate::store) async fn end_step_then_decide(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, _) = amid_a_step(stage, key).await;
        let settles = settles(stage, key).await;
        let (_, after) = meet(stage, Act::EndStep(owner), settles, commit).await;
        found!(after, Said::Resolved(resolved) if resolved != commit);
        assert_eq!(noted(stage.store(), key).await, [is(STEP, Some(if commit { "p1" } else { "by hand" }))]);
    }
}

pub(in crate::store) async fn decide_then_end_step(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, _) = amid_a_step(stage, key).await;
        let settles = settles(stage, key).await;
        let (_, after) = meet(stage, settles, Act::EndStep(owner), commit).await;
        found!(after, Said::Ended(ended) if (ended == StepEnded::Lost) == commit);
        assert_eq!(noted(stage.store(), key).await, [is(STEP, Some(if commit { "by hand" } else { "p1" }))]);
    }
}

/// What a step has done by then is not released.
pub(in crate::store) async fn end_step_then_release(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, _) = amid_a_step(stage, key).await;
        stage.pass(QUARANTINE).await;
        let releases = decides(stage, key, Resolution::Release).await;
        let (_, after) = meet(stage, Act::EndStep(owner), releases, commit).await;
        found!(after, Said::Resolved(resolved) if resolved != commit);
        has_ended(stage, key, commit).await;
    }
}
