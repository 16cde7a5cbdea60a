//! Logs as they must never be; each is named after what it must be found for.

use super::*;
use crate::crash::log::{Effect, Left};

const SECOND: Duration = Duration::from_secs(1);

fn key(mode: Mode) -> Key {
    Key { mode, nr: 7 }
}

fn created(nonce: &str) -> Answer {
    let body = format!(r#"{{"nonce":"{nonce}","run":1}}"#);
    Answer { status: 201, replayed: false, unrecorded: false, slug: None, body }
}

fn refused(status: u16, slug: &str) -> Answer {
    let body = String::new();
    Answer { status, replayed: false, unrecorded: false, slug: Some(slug.to_owned()), body }
}

fn failed() -> Answer {
    Answer { slug: None, ..refused(500, "") }
}

fn in_doubt() -> Answer {
    refused(409, "idempotency-outcome-unknown")
}

/// A key that was told all this, one after the other, by server 0, and whose steps had these effects each.
fn log(mode: Mode, told: &[Answer], effects: &[&str]) -> Log {
    let key = key(mode);
    let at = |n: usize| u32::try_from(n).unwrap() * SECOND;
    let told = told.iter().enumerate().map(|(n, answer)| Told {
        key,
        server: 0,
        sent: at(2 * n),
        ended: at(2 * n + 1),
        answer: Some(answer.clone()),
    });
    let told: Vec<Told> = told.collect();
    let last = told.iter().filter_map(|told| Some((key, told.answer.clone()?))).collect();
    let state = if effects.is_empty() { State::InDoubt } else { State::Done };
    let left = Left { state: Some(state), effects: effects.len() };
    let of_each_step = |nonce: &&str| {
        let nonce = (*nonce).to_owned();
        mode.steps().iter().map(move |step| Effect { key, step: (*step).to_owned(), nonce: nonce.clone() })
    };
    let effects = effects.iter().flat_map(of_each_step).collect();
    Log { told, effects, last, left: [(key, left)].into(), ..Log::default() }
}

/// The rules that it breaks.
fn broken(log: &Log) -> Vec<Rule> {
    check(log).into_iter().map(|breach| breach.rule).collect()
}

#[test]
fn a_sound_log_is_sound() {
    for mode in Mode::ALL {
        let unknown = refused(503, UNAVAILABLE);
        let sound = log(mode, &[unknown.clone(), created("a"), created("a"), unknown, created("a")], &["a"]);
        assert_eq!(check(&sound), []);
    }
}

#[test]
fn two_effects_of_one_key() {
    let twice = log(Mode::Transactional, &[created("a"), created("a")], &["a", "b"]);
    assert_eq!(broken(&twice), [Rule::OneEffect]);
    let nobody_was_told = log(Mode::Held, &[in_doubt()], &["a", "b"]);
    assert!(broken(&nobody_was_told).contains(&Rule::OneEffect));
}

#[test]
fn one_step_of_several_that_is_missing_or_there_twice() {
    let mut missing = log(Mode::Resumable, &[created("a")], &["a"]);
    let one = missing.effects.remove(0);
    assert_eq!(broken(&missing), [Rule::TruthfulAnswer]);
    missing.effects.extend([one.clone(), one]);
    assert_eq!(broken(&missing), [Rule::OneEffect]);
}

#[test]
fn a_success_without_an_effect() {
    assert_eq!(broken(&log(Mode::Held, &[created("a")], &[])), [Rule::TruthfulAnswer]);
    let not_recorded = Answer { unrecorded: true, ..created("a") };
    assert_eq!(broken(&log(Mode::Recovered, &[not_recorded], &[])), [Rule::TruthfulAnswer]);
}

#[test]
fn a_job_that_is_lost() {
    let acknowledged = Answer { status: 200, slug: None, ..refused(200, "") };
    assert_eq!(broken(&log(Mode::Job, std::slice::from_ref(&acknowledged), &[])), [Rule::TruthfulAnswer]);
    assert_eq!(check(&log(Mode::Job, std::slice::from_ref(&acknowledged), &["a"])), []);
    assert!(broken(&log(Mode::Deduped, &[acknowledged], &["a"])).contains(&Rule::ExpectedAnswer), "of no request");
    assert!(broken(&log(Mode::Job, &[in_doubt()], &["a"])).contains(&Rule::Settled), "it is parked");
}

#[test]
fn a_success_with_the_effect_of_another_run() {
    assert_eq!(broken(&log(Mode::Transactional, &[created("a")], &["b"])), [Rule::TruthfulAnswer]);
    let without = Answer { body: "ok".to_owned(), ..created("a") };
    assert_eq!(broken(&log(Mode::Transactional, &[without], &["b"])), [Rule::TruthfulAnswer]);
}

#[test]
fn two_answers_for_one_key() {
    let found_out = Answer { body: r#"{"nonce":"a","run":"found out"}"#.to_owned(), ..created("a") };
    assert_eq!(broken(&log(Mode::Recovered, &[found_out, created("a")], &["a"])), [Rule::OneAnswer]);
    let other_status = Answer { status: 402, ..created("a") };
    assert_eq!(broken(&log(Mode::Held, &[created("a"), other_status], &["a"])), [Rule::OneAnswer]);
}

#[test]
fn an_answer_that_was_not_recorded_may_differ() {
    let alone = Answer { unrecorded: true, body: r#"{"nonce":"a","run":2}"#.to_owned(), ..created("a") };
    assert_eq!(check(&log(Mode::Recovered, &[alone, created("a")], &["a"])), []);
}

#[test]
fn a_success_that_is_lost() {
    let mut lost = log(Mode::Held, &[created("a"), in_doubt()], &["a"]);
    lost.failing.insert(key(Mode::Held));
    assert_eq!(broken(&lost), [Rule::KeptAnswer]);
    let runs_again = log(Mode::Held, &[created("a"), refused(409, "idempotency-in-progress"), created("a")], &["a"]);
    assert_eq!(broken(&runs_again), [Rule::KeptAnswer]);
    let failed_again = log(Mode::Transactional, &[created("a"), failed(), created("a")], &["a"]);
    assert_eq!(broken(&failed_again), [Rule::KeptAnswer]);
}

#[test]
fn a_request_that_overtakes_an_answer_may_be_told_less() {
    let mut beside = log(Mode::Held, &[created("a"), refused(409, "idempotency-in-progress"), created("a")], &["a"]);
    beside.told[1].sent = SECOND / 2;
    assert_eq!(check(&beside), []);
}

#[test]
fn an_effect_whose_key_is_free() {
    for state in [None, Some(State::Released)] {
        let mut forgotten = log(Mode::Held, &[created("a")], &["a"]);
        forgotten.left.insert(key(Mode::Held), Left { state, effects: 1 });
        assert_eq!(broken(&forgotten), [Rule::KeptEffect]);
    }
}

#[test]
fn a_key_without_an_end() {
    for stuck in [refused(409, "idempotency-in-progress"), refused(503, UNAVAILABLE), failed()] {
        for mode in Mode::ALL {
            assert_eq!(broken(&log(mode, std::slice::from_ref(&stuck), &[])), [Rule::Settled]);
        }
    }
    let mut silent = log(Mode::Held, &[created("a")], &["a"]);
    silent.last.clear();
    assert_eq!(broken(&silent), [Rule::Settled]);
}

#[test]
fn a_doubt_where_somebody_finds_out() {
    for mode in [Mode::Recovered, Mode::Transactional] {
        let mut doubt = log(mode, &[failed(), in_doubt()], &["a"]);
        doubt.failing.insert(key(mode));
        assert_eq!(broken(&doubt), [Rule::Settled]);
    }
}

#[test]
fn a_doubt_without_a_reason() {
    assert_eq!(broken(&log(Mode::Held, &[in_doubt()], &[])), [Rule::DoubtHasReason]);
    let damage = |server, from, to| {
        let mut log = log(Mode::Held, &[in_doubt()], &[]);
        log.damage.push(Damage { what: "kill", server, from: from * SECOND, to: to * SECOND });
        broken(&log)
    };
    assert_eq!(damage(Some(1), 0, 1), [Rule::DoubtHasReason], "another server's");
    assert_eq!(damage(Some(0), 20, 21), [Rule::DoubtHasReason], "much later");
    assert_eq!((damage(Some(0), 1, 2), damage(None, 3, 4)), (vec![], vec![]));
    assert_eq!(check(&log(Mode::Held, &[refused(503, UNAVAILABLE), in_doubt()], &[])), []);
    let mut drawn = log(Mode::Held, &[failed(), in_doubt()], &[]);
    drawn.failing.insert(key(Mode::Held));
    assert_eq!(check(&drawn), []);
}

#[test]
fn a_doubt_when_all_was_calm() {
    let calm = |mode, told: &[Answer]| {
        let mut log = log(mode, told, &["a"]);
        log.calm.insert(key(mode));
        log.damage.push(Damage { what: "kill", server: None, from: SECOND / 4, to: SECOND / 2 });
        for told in &mut log.told {
            (told.sent, told.ended) = (told.sent / 4, told.sent / 4 + SECOND / 4);
        }
        log
    };
    for mode in [Mode::Held, Mode::Recovered, Mode::Transactional] {
        let settled = calm(mode, &[refused(409, "idempotency-in-progress"), in_doubt(), created("a")]);
        assert_eq!(broken(&settled), [Rule::DoubtHasReason], "a hook found out");
    }
    let mut left = calm(Mode::Held, &[failed(), in_doubt()]);
    assert_eq!(broken(&left), [Rule::DoubtHasReason]);
    left.told[0].ended = left.told[0].sent + LEASE;
    assert_eq!(broken(&left), [Rule::DoubtHasReason], "sooner than a lease can end");
    left.told[1].ended = left.told[0].ended;
    assert_eq!(check(&left), [], "the machine was slow");
    let mut hit = calm(Mode::Held, &[failed(), in_doubt()]);
    hit.calm.clear();
    assert_eq!(check(&hit), [], "of any other key nobody can say");
}

#[test]
fn an_answer_that_nobody_asked_for() {
    for slug in ["idempotency-key-reused", "idempotency-store-unreadable", "idempotency-result-unavailable"] {
        let odd = log(Mode::Held, &[refused(422, slug), created("a")], &["a"]);
        assert_eq!(broken(&odd), [Rule::ExpectedAnswer], "{slug}");
    }
}
