use super::*;

const LIVE: Facts = Facts {
    state: State::InFlight,
    reason: None,
    mine: false,
    same_payload: true,
    lease_over: false,
    result_over: false,
    guard_over: false,
    quarantine_over: false,
    rerun_over: true,
    reruns: false,
    continued: false,
};
const STATES: [State; 7] = [
    State::InFlight,
    State::Done,
    State::Rejected,
    State::Released,
    State::InDoubt,
    State::Resumable,
    State::Unknown(99),
];
const EVENTS: [Event; 11] = [
    Event::Claim { rerun: false },
    Event::Claim { rerun: true },
    Event::Complete,
    Event::Reject,
    Event::Release,
    Event::Hold,
    Event::Suspend,
    Event::Recover,
    Event::ResolveDone,
    Event::ResolveReleased,
    Event::ResolveResumed,
];

/// Every combination of facts: 7 states × 2⁹ booleans × reasons.
fn all_facts() -> impl Iterator<Item = Facts> {
    let reasons = [None, Some(Reason::LeaseExpired), Some(Reason::Status), Some(Reason::Shutdown)];
    STATES.into_iter().flat_map(move |state| {
        reasons.into_iter().flat_map(move |reason| {
            (0..512_u16).map(move |bits| Facts {
                state,
                reason,
                mine: bits & 1 != 0,
                same_payload: bits & 2 != 0,
                lease_over: bits & 4 != 0,
                result_over: bits & 8 != 0,
                guard_over: bits & 16 != 0,
                quarantine_over: bits & 32 != 0,
                rerun_over: bits & 64 != 0,
                continued: bits & 128 != 0,
                reruns: bits & 256 != 0,
            })
        })
    })
}

#[test]
fn done_is_final_until_its_guard_ends() {
    for facts in all_facts().filter(|f| f.state == State::Done) {
        for event in EVENTS {
            let moved = next(&facts, event);
            let may = matches!(event, Event::Claim { .. }) && facts.guard_over && !facts.mine;
            assert_eq!(moved.is_some(), may, "{facts:?} {event:?}");
        }
    }
}

#[test]
fn nobody_but_the_attempt_itself_ends_a_live_run() {
    for facts in all_facts().filter(|f| f.state == State::InFlight && !f.lease_over && !f.mine) {
        for event in EVENTS {
            assert_eq!(next(&facts, event), None, "{facts:?} {event:?}");
        }
    }
}

#[test]
fn in_doubt_is_left_only_by_its_own_attempt_or_a_decision() {
    for facts in all_facts().filter(|f| f.state == State::InDoubt) {
        for event in EVENTS {
            let Some(to) = next(&facts, event) else { continue };
            let own = facts.mine && matches!(event, Event::Complete | Event::Reject | Event::Release | Event::Suspend);
            let operator = matches!(event, Event::ResolveDone | Event::ResolveReleased | Event::ResolveResumed);
            let tried = event == Event::Recover && to == State::InDoubt;
            assert!(own || operator || tried, "{facts:?} {event:?} {to:?}");
        }
    }
}

/// T12: never while an owner may be alive, and never what is settled.
#[test]
fn only_a_doubt_is_recovered_and_it_stays_one() {
    for facts in all_facts() {
        let silent = facts.state == State::InFlight && facts.lease_over || facts.state == State::Resumable;
        let doubt = facts.state == State::InDoubt || silent && facts.rerun_over;
        assert_eq!(next(&facts, Event::Recover), doubt.then_some(State::InDoubt), "{facts:?}");
    }
}

#[test]
fn a_state_of_a_newer_version_is_never_moved() {
    for facts in all_facts().filter(|f| f.state == State::Unknown(99)) {
        assert!(EVENTS.iter().all(|&event| next(&facts, event).is_none()));
        assert_eq!(claim(&facts, true), Verdict::Unknown);
    }
}

#[test]
fn clause_33_release_needs_an_ended_body_or_quarantine() {
    let held = Facts { state: State::InDoubt, lease_over: true, ..LIVE };
    let release = |facts: &Facts| next(facts, Event::ResolveReleased);
    for reason in [Reason::Status, Reason::Panic, Reason::Store] {
        assert_eq!(release(&Facts { reason: Some(reason), ..held }), Some(State::Released), "{reason:?}");
    }
    let cut_off = [Reason::Timeout, Reason::Cancelled, Reason::Shutdown, Reason::LeaseExpired, Reason::Unknown(77)];
    for reason in cut_off.map(Some).into_iter().chain([None]) {
        assert_eq!(release(&Facts { reason, ..held }), None, "{reason:?}: the body may still act");
        assert_eq!(release(&Facts { reason, quarantine_over: true, ..held }), Some(State::Released));
    }
    // A stale reason on a live row proves nothing.
    assert_eq!(release(&Facts { reason: Some(Reason::Status), lease_over: true, ..LIVE }), None);
}

#[test]
fn clause_03_a_mismatch_is_told_before_anything_else() {
    for facts in all_facts().filter(|f| !f.same_payload && !matches!(f.state, State::Unknown(_))) {
        let verdict = claim(&facts, false);
        let fresh = matches!(verdict, Verdict::Take);
        let own = facts.mine && facts.state == State::InFlight;
        assert!(fresh || own || verdict == Verdict::Mismatch, "{facts:?} {verdict:?}");
    }
}

#[test]
fn a_claim_takes_exactly_what_may_be_taken() {
    for facts in all_facts().filter(|f| !f.mine) {
        for rerun in [false, true] {
            let taken = claim(&facts, rerun) == Verdict::Take;
            assert_eq!(taken, next(&facts, Event::Claim { rerun }).is_some(), "{facts:?}");
        }
    }
    let expired = Facts { lease_over: true, ..LIVE };
    assert_eq!(claim(&expired, false), Verdict::InDoubt(Reason::LeaseExpired), "held mode holds");
    assert_eq!(claim(&expired, true), Verdict::InDoubt(Reason::LeaseExpired), "its window is over");
    assert_eq!(claim(&Facts { rerun_over: false, ..expired }, true), Verdict::Take);
    assert_eq!(claim(&Facts { mine: true, ..LIVE }, false), Verdict::Mine, "a claim whose reply was lost");
}

/// T4, T9: both the operation that began and the claim allow it, in time and with the same payload.
#[test]
fn clause_26_only_the_same_payload_runs_again_and_only_in_time() {
    let open = |f: &Facts| f.state == State::Resumable || f.state == State::InFlight && f.lease_over;
    for facts in all_facts().filter(|f| open(f) && !f.mine) {
        let may = facts.same_payload && !facts.rerun_over;
        assert_eq!(next(&facts, Event::Claim { rerun: true }).is_some(), may, "{facts:?}");
        assert_eq!(next(&facts, Event::Claim { rerun: false }), None, "{facts:?}");
        if facts.same_payload {
            let told = claim(&facts, false);
            let reason = if facts.state == State::Resumable { Reason::Abandoned } else { Reason::LeaseExpired };
            assert_eq!(told, Verdict::InDoubt(reason), "{facts:?}");
        }
    }
}

/// A run that continues an operation says nothing of the runs before it.
#[test]
fn clause_26_a_run_that_continues_frees_no_key() {
    for facts in all_facts().filter(|f| f.continued) {
        for event in [Event::Release, Event::Reject] {
            assert_eq!(next(&facts, event), None, "{facts:?}");
        }
        let released = next(&facts, Event::ResolveReleased).is_some();
        assert!(!released || facts.lease_over && facts.quarantine_over, "{facts:?}");
    }
    for state in [State::InFlight, State::InDoubt] {
        let second = Facts { state, mine: true, continued: true, ..LIVE };
        assert_eq!(next(&second, Event::Suspend), Some(State::Resumable));
        assert_eq!(next(&second, Event::Complete), Some(State::Done));
    }
}

#[test]
fn clause_12_done_replays_then_refuses_then_runs_afresh() {
    let done = Facts { state: State::Done, ..LIVE };
    assert_eq!(claim(&done, false), Verdict::Answered);
    assert_eq!(claim(&Facts { result_over: true, ..done }, false), Verdict::Expired);
    assert_eq!(claim(&Facts { result_over: true, guard_over: true, ..done }, false), Verdict::Take);
    for state in [State::InFlight, State::InDoubt] {
        let old = Facts { state, result_over: true, guard_over: true, ..LIVE };
        assert_ne!(claim(&old, false), Verdict::Take, "what is not settled never expires by ttl");
    }
}

#[test]
fn clause_12_only_what_is_settled_and_over_may_go() {
    for facts in all_facts() {
        let settled = matches!(facts.state, State::Done | State::Rejected | State::Released);
        assert_eq!(may_remove(&facts), settled && facts.guard_over, "{facts:?}");
        assert_eq!(may_strip(&facts), facts.state == State::Done && facts.result_over, "{facts:?}");
    }
}

#[test]
fn a_late_copy_of_a_claim_takes_nothing() {
    for facts in all_facts().filter(|f| f.mine) {
        for rerun in [false, true] {
            assert_eq!(next(&facts, Event::Claim { rerun }), None, "{facts:?}");
            assert_ne!(claim(&facts, rerun), Verdict::Take, "{facts:?}");
        }
    }
}

#[test]
fn codes_are_read_back() {
    for state in STATES {
        assert_eq!(State::from_code(state.code()), state);
    }
    for code in 1..=12 {
        assert_eq!(Reason::from_code(code).map(Reason::code), Some(code));
    }
    assert_eq!(Reason::from_code(0), None);
}
