//! Pairs of which one settles a doubt, or makes one: a recovery takes the record, an operator decides, the owner itself
//! reports that it does not know.

use super::*;
use crate::{
    conformance::steps::{QUARANTINE, WINDOW, find},
    store::Resolution,
};

/// A claim that may take over from a silent owner; any other would only read, and wait for nobody.
fn rerun(key: &str) -> Act {
    Act::Claim(rerunnable(key))
}

/// A decision that rests on what the record is now.
pub(super) async fn decides(stage: &dyn Stage, key: &str, to: Resolution) -> Act {
    let by = Audit { who: "ops".into(), why: "asked the provider".into() };
    let seen = find(stage.store(), key).await.fence;
    Act::Resolve(Resolve {
        record: record(key),
        seen,
        to,
        quarantine: QUARANTINE,
        rerun: WINDOW,
        reason: Reason::Operator,
        by,
    })
}

async fn completes(stage: &dyn Stage, key: &str) -> Act {
    decides(stage, key, Resolution::Complete(reply("by hand"))).await
}

/// Records in doubt by their owners' own reports, whose windows are all over. Once a test: the look for doubts goes
/// through all the time that passes here.
async fn old_doubts<const N: usize>(stage: &dyn Stage, keys: [&str; N]) {
    for key in keys {
        run(stage.store(), key, Outcome::InDoubt(Reason::Status)).await;
    }
    stage.pass(Duration::from_secs(3)).await;
    survey(stage.store()).await;
    stage.pass(GUARD * 2).await;
}

/// The owner comes while its record is being taken: one of the two has it.
pub(in crate::store) async fn recover_then_finish(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let owner = lost(stage, key).await;
        match (commit, meet(stage, Act::Recover, Act::Finish(owner), commit).await.1) {
            (true, Said::Finished(Finished::Lost)) | (false, Said::Finished(Finished::Stored { .. })) => {}
            other => panic!("{other:?}"),
        }
    }
}

pub(in crate::store) async fn finish_then_recover(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let owner = lost(stage, key).await;
        let (meanwhile, after) = meet(stage, Act::Finish(owner), Act::Recover, commit).await;
        found!(meanwhile, None | Some(Said::Recovered(0)));
        found!((commit, after), (true, Said::Recovered(0)) | (false, Said::Recovered(1)));
    }
}

/// Two processes look at the same time: the second one goes by what the first one takes.
pub(in crate::store) async fn recover_then_recover(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        lost(stage, key).await;
        let (meanwhile, after) = meet(stage, Act::Recover, Act::Recover, commit).await;
        found!(meanwhile, None | Some(Said::Recovered(0)));
        found!((commit, after), (true, Said::Recovered(0)) | (false, Said::Recovered(1)));
    }
}

pub(in crate::store) async fn recover_then_renew(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let owner = lost(stage, key).await;
        let (meanwhile, after) = meet(stage, Act::Recover, Act::Renew(owner), commit).await;
        found!(meanwhile, None | Some(Said::Renewed(Renewed::Busy)));
        match (commit, after) {
            (true, Said::Renewed(Renewed::Lost)) | (false, Said::Renewed(Renewed::Held)) => {}
            other => panic!("{other:?}"),
        }
    }
}

pub(in crate::store) async fn renew_then_recover(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let owner = lost(stage, key).await;
        let (meanwhile, after) = meet(stage, Act::Renew(owner), Act::Recover, commit).await;
        found!(meanwhile, None | Some(Said::Recovered(0)));
        found!((commit, after), (true, Said::Recovered(0)) | (false, Said::Recovered(1)));
    }
}

/// What is in doubt is never purged, whoever is at it. (A purge locks none of it, so the other order is no meeting.)
pub(in crate::store) async fn recover_then_purge(stage: &dyn Stage) {
    old_doubts(stage, ENDS.map(|(_, key)| key)).await;
    for (commit, key) in ENDS {
        let (meanwhile, after) = meet(stage, Act::Recover, Act::Purge, commit).await;
        found!((meanwhile, after), (None | Some(Said::Purged(0)), Said::Purged(0)));
        assert_eq!(find(stage.store(), key).await.state, State::InDoubt);
    }
}

/// What is not known is no claim's to take.
pub(in crate::store) async fn hold_then_claim(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, other) = silent(stage, key).await;
        match (commit, meet(stage, Act::Hold(owner), Act::Claim(other), commit).await.1) {
            (true, Said::Claimed(Claimed::Found(Found::InDoubt(Reason::Status)))) => {}
            (false, Said::Claimed(Claimed::Owner(owned))) => assert_eq!(owned.attempts, 2),
            other => panic!("{other:?}"),
        }
    }
}

pub(in crate::store) async fn claim_then_hold(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, other) = silent(stage, key).await;
        match (commit, meet(stage, Act::Claim(other), Act::Hold(owner), commit).await.1) {
            (true, Said::Finished(Finished::Lost)) | (false, Said::Finished(Finished::Stored { .. })) => {}
            other => panic!("{other:?}"),
        }
        let state = if commit { State::InFlight } else { State::InDoubt };
        assert_eq!(find(stage.store(), key).await.state, state);
    }
}

pub(in crate::store) async fn hold_then_recover(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let owner = lost(stage, key).await;
        let (meanwhile, after) = meet(stage, Act::Hold(owner), Act::Recover, commit).await;
        found!(meanwhile, None | Some(Said::Recovered(0)));
        found!(after, Said::Recovered(1));
        let reason = if commit { Reason::Status } else { Reason::LeaseExpired };
        assert_eq!(find(stage.store(), key).await.reason, Some(reason));
    }
}

pub(in crate::store) async fn recover_then_hold(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let owner = lost(stage, key).await;
        match (commit, meet(stage, Act::Recover, Act::Hold(owner), commit).await.1) {
            (true, Said::Finished(Finished::Lost)) | (false, Said::Finished(Finished::Stored { .. })) => {}
            other => panic!("{other:?}"),
        }
    }
}

pub(in crate::store) async fn resolve_then_claim(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        silent(stage, key).await;
        let completes = completes(stage, key).await;
        match (commit, meet(stage, completes, rerun(key), commit).await.1) {
            (true, Said::Claimed(Claimed::Found(Found::Replay(replay)))) => {
                assert_eq!(replay.response, reply("by hand"));
            }
            (false, Said::Claimed(Claimed::Owner(owned))) => assert_eq!(owned.attempts, 2),
            other => panic!("{other:?}"),
        }
    }
    for (commit, key) in ENDS.map(|(commit, key)| (commit, format!("{key}, released"))) {
        silent(stage, &key).await;
        stage.pass(QUARANTINE * 2).await;
        let releases = decides(stage, &key, Resolution::Release).await;
        let (_, after) = meet(stage, releases, rerun(&key), commit).await;
        let owned = found!(after, Said::Claimed(Claimed::Owner(owned)) => owned);
        assert_eq!((owned.attempts, owned.continues()), (2, !commit), "afresh only after the release");
    }
}

pub(in crate::store) async fn claim_then_resolve(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        silent(stage, key).await;
        let completes = completes(stage, key).await;
        let (_, after) = meet(stage, rerun(key), completes, commit).await;
        found!((commit, after), (true, Said::Resolved(false)) | (false, Said::Resolved(true)));
    }
}

/// What is let be run again is run by one, in the same epoch; the run that was lost is not counted on any more.
pub(in crate::store) async fn resume_then_claim(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, _) = silent(stage, key).await;
        let resumes = decides(stage, key, Resolution::Resume).await;
        let (_, after) = meet(stage, resumes, rerun(key), commit).await;
        let owned = found!(after, Said::Claimed(Claimed::Owner(owned)) => owned);
        assert_eq!((owned.attempts, owned.continues()), (2, true));
        found!(Act::Finish(owner).by(stage.store()).await, Said::Finished(Finished::Lost));
    }
}

pub(in crate::store) async fn claim_then_resume(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        silent(stage, key).await;
        let resumes = decides(stage, key, Resolution::Resume).await;
        let (_, after) = meet(stage, rerun(key), resumes, commit).await;
        found!((commit, after), (true, Said::Resolved(false)) | (false, Said::Resolved(true)));
    }
}

pub(in crate::store) async fn resolve_then_finish(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, _) = silent(stage, key).await;
        let completes = completes(stage, key).await;
        match (commit, meet(stage, completes, Act::Finish(owner), commit).await.1) {
            (true, Said::Finished(Finished::Lost)) | (false, Said::Finished(Finished::Stored { .. })) => {}
            other => panic!("{other:?}"),
        }
        let Claimed::Found(Found::Replay(replay)) = claim_one(stage.store(), &claim(key)).await else {
            panic!("{key}")
        };
        assert_eq!(replay.response, reply(if commit { "by hand" } else { "x" }));
    }
}

pub(in crate::store) async fn finish_then_resolve(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, _) = silent(stage, key).await;
        let completes = completes(stage, key).await;
        let (_, after) = meet(stage, Act::Finish(owner), completes, commit).await;
        found!((commit, after), (true, Said::Resolved(false)) | (false, Said::Resolved(true)));
        let Claimed::Found(Found::Replay(replay)) = claim_one(stage.store(), &claim(key)).await else {
            panic!("{key}")
        };
        assert_eq!(replay.response, reply(if commit { "x" } else { "by hand" }));
    }
}

pub(in crate::store) async fn resolve_then_renew(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, _) = silent(stage, key).await;
        let completes = completes(stage, key).await;
        let (meanwhile, after) = meet(stage, completes, Act::Renew(owner), commit).await;
        found!(meanwhile, None | Some(Said::Renewed(Renewed::Busy)));
        match (commit, after) {
            (true, Said::Renewed(Renewed::Lost)) | (false, Said::Renewed(Renewed::Held)) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// An owner that is alive after all is not decided about.
pub(in crate::store) async fn renew_then_resolve(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        let (owner, _) = silent(stage, key).await;
        let completes = completes(stage, key).await;
        let (_, after) = meet(stage, Act::Renew(owner), completes, commit).await;
        found!((commit, after), (true, Said::Resolved(false)) | (false, Said::Resolved(true)));
    }
}

pub(in crate::store) async fn resolve_then_recover(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        lost(stage, key).await;
        let completes = completes(stage, key).await;
        let (meanwhile, after) = meet(stage, completes, Act::Recover, commit).await;
        found!(meanwhile, None | Some(Said::Recovered(0)));
        found!((commit, after), (true, Said::Recovered(0)) | (false, Said::Recovered(1)));
    }
}

/// Somebody looks at it, so what the operator saw is old.
pub(in crate::store) async fn recover_then_resolve(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        lost(stage, key).await;
        let completes = completes(stage, key).await;
        let (_, after) = meet(stage, Act::Recover, completes, commit).await;
        found!((commit, after), (true, Said::Resolved(false)) | (false, Said::Resolved(true)));
    }
}

/// Of two decisions one counts.
pub(in crate::store) async fn resolve_then_resolve(stage: &dyn Stage) {
    for (commit, key) in ENDS {
        lost(stage, key).await;
        let (voids, completes) = (decides(stage, key, Resolution::Void).await, completes(stage, key).await);
        let (_, after) = meet(stage, voids, completes, commit).await;
        found!((commit, after), (true, Said::Resolved(false)) | (false, Said::Resolved(true)));
    }
}

/// An old doubt that is answered keeps its answer for a whole window; one that is released is over.
pub(in crate::store) async fn resolve_then_purge(stage: &dyn Stage) {
    let answered = ENDS;
    let released = [(true, "released, committed"), (false, "released, rolled back")];
    old_doubts(stage, [answered[0].1, answered[1].1, released[0].1, released[1].1]).await;
    for (commit, key) in answered {
        let completes = completes(stage, key).await;
        let (meanwhile, after) = meet(stage, completes, Act::Purge, commit).await;
        found!((meanwhile, after), (None | Some(Said::Purged(0)), Said::Purged(0)));
    }
    for (commit, key) in released {
        let releases = decides(stage, key, Resolution::Release).await;
        let (meanwhile, after) = meet(stage, releases, Act::Purge, commit).await;
        found!(meanwhile, None | Some(Said::Purged(0)));
        found!((commit, after), (true, Said::Purged(1)) | (false, Said::Purged(0)));
    }
}
