//! Several servers over one database are killed, frozen and cut off while clients retry; then every key is looked at. What
//! a run does, to whom and when is drawn from one seed, which is printed: `SEED=… tests/soak` repeats it.

mod checker;
mod clients;
mod faults;
mod fleet;
mod log;
#[allow(dead_code, reason = "the server needs more of it, and less")]
mod plan;
mod points;
mod provider;
mod queue;
mod report;
mod run;

use std::{env, time::Duration};

use self::{
    checker::Rule,
    faults::{Fault, Menu, everything},
    fleet::SERVERS,
    log::Mode,
    plan::Mix,
    run::{Course, seed},
};
use crate::support::Backend;

/// More than the servers' two cores need: many of them wait for one that is frozen.
const CLIENTS: usize = 96;

/// A number from the environment.
fn number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes; see tests/soak"]
async fn scenario_41_to_49_whatever_is_killed_every_key_keeps_the_contract() {
    let course = Course {
        mix: Mix::Usual,
        broken: None,
        modes: &Mode::ALL,
        clients: CLIENTS,
        menu: everything(Backend::of_this_run()),
        time: Duration::from_secs(number("SOAK_SECONDS", 30)),
        keys_per_mode: number("SOAK_KEYS", 2_000),
        calm: 400,
        patience: Duration::from_secs(3),
        to_the_end: Duration::from_secs(90),
    };
    let outcome = course.run(seed()).await;
    println!("{}", outcome.report);
    if !outcome.breaches.is_empty() {
        let (count, first) = (outcome.breaches.len(), outcome.breaches.iter().take(20));
        let first: Vec<String> = first.map(ToString::to_string).collect();
        panic!("{count} breaches; all logs are in {}\n{}", outcome.keep().display(), first.join("\n"));
    }
}

/// Runs against an engine that is broken until one of these rules is seen broken: a fault needs its occasion, and one that a
/// slow machine did not give comes with another seed.
async fn is_found_out(course: impl Fn() -> Course, by: &[Rule]) {
    for _ in 0..3 {
        if found(course()).await.iter().any(|rule| by.contains(rule)) {
            return;
        }
    }
    panic!("nobody saw it");
}

/// The rules that were seen broken.
async fn found(course: Course) -> Vec<Rule> {
    let broken = course.broken.unwrap();
    let outcome = course.run(seed()).await;
    println!("{}", outcome.report);
    let mut rules: Vec<Rule> = outcome.breaches.iter().map(|breach| breach.rule).collect();
    rules.sort();
    rules.dedup();
    println!(
        "{broken}: found by {rules:?}, e.g. {}",
        outcome.breaches.first().map(ToString::to_string).unwrap_or_default()
    );
    rules
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes; see tests/soak"]
async fn clause_19_an_engine_without_a_fence_is_found_out() {
    let course = || Course {
        mix: Mix::Long,
        broken: Some("no-fence"),
        modes: &[Mode::Recovered],
        clients: 32,
        menu: Menu { servers: 2, of_a_server: &[(Fault::Coma, 1)], of_the_database: &[], quiet: 800..1_500 },
        time: Duration::from_secs(13),
        keys_per_mode: 0,
        calm: 0,
        patience: Duration::from_secs(10),
        to_the_end: Duration::from_secs(10),
    };
    is_found_out(course, &[Rule::OneAnswer, Rule::KeptAnswer]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes; see tests/soak"]
async fn clause_14_an_engine_that_frees_a_key_on_5xx_is_found_out() {
    let course = || Course {
        mix: Mix::Failing,
        broken: Some("release-on-5xx"),
        modes: &[Mode::Held],
        clients: 8,
        menu: Menu { servers: 0, of_a_server: &[], of_the_database: &[], quiet: 500..1_000 },
        time: Duration::from_secs(3),
        keys_per_mode: 50,
        calm: 0,
        patience: Duration::from_secs(3),
        to_the_end: Duration::from_secs(10),
    };
    is_found_out(course, &[Rule::OneEffect]).await;
}

/// Only those keys show it to which nothing happened: a doubt of any other may have its reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes; see tests/soak"]
async fn clause_16_an_engine_that_doubts_a_success_is_found_out() {
    let course = || Course {
        mix: Mix::Usual,
        broken: Some("doubts"),
        modes: &[Mode::Held],
        clients: 8,
        menu: Menu { servers: SERVERS, of_a_server: &[(Fault::Kill, 1)], of_the_database: &[], quiet: 500..1_000 },
        time: Duration::from_secs(5),
        keys_per_mode: 100,
        calm: 400, // so that one of three servers has a hundred successes
        patience: Duration::from_secs(3),
        to_the_end: Duration::from_secs(10),
    };
    is_found_out(course, &[Rule::DoubtHasReason]).await;
}

/// Jobs come again that are in the queue twice, or of which it did not hear in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes; see tests/soak"]
async fn clause_44_a_worker_whose_function_is_bare_is_found_out() {
    is_found_out(|| of_jobs("bare"), &[Rule::OneEffect]).await;
}

/// The one that was doing the job is killed, and nobody is left to do it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes; see tests/soak"]
async fn clause_44_a_worker_that_acknowledges_what_another_one_does_is_found_out() {
    is_found_out(|| of_jobs("acks-in-progress"), &[Rule::TruthfulAnswer]).await;
}

fn of_jobs(broken: &'static str) -> Course {
    Course {
        mix: Mix::Long,
        broken: Some(broken),
        modes: &[Mode::Job],
        clients: 16,
        menu: Menu { servers: SERVERS, of_a_server: &[(Fault::Kill, 1)], of_the_database: &[], quiet: 500..1_000 },
        time: Duration::from_secs(8),
        keys_per_mode: 50,
        calm: 0,
        patience: Duration::from_secs(5),
        to_the_end: Duration::from_secs(10),
    }
}
