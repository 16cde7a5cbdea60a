//! The example `jobs`: workers of a queue that are killed every 300 ms, and a thousand jobs that are done once.

use std::{collections::VecDeque, time::Duration};

use tokio::time::timeout;

use crate::support::{
    Backend, Place,
    worker::{Job, Worker},
};

const JOBS: i64 = 1_000;
/// Each lives for so many times `EVERY`: long enough to be seen by the queue, and to see others die.
const WORKERS: usize = 6;
const EVERY: Duration = Duration::from_millis(300);
/// As many as happen at least.
const KILLS: usize = 20;
/// After so many, those that live may end it: a machine that is busy does little in 300 ms.
const MOST_KILLS: usize = 120;
/// Until the jobs of the last that were killed have been given to others, and are done.
const AT_MOST: Duration = Duration::from_secs(120);

/// How many jobs the queue has in this state.
async fn queued(place: &Place, status: &str) -> i64 {
    let table = if place.backend() == Backend::Sqlite { "Jobs" } else { "apalis.jobs" };
    place.count(&format!("select count(*) from {table} where status = '{status}'")).await
}

async fn effects(place: &Place) -> i64 {
    place.count("select count(*) from job_effects").await
}

async fn killed_all_the_time(place: Place) {
    assert_eq!(Worker::run(&place, &["enqueue", &JOBS.to_string()]).await, "1000 jobs are in the queue\n");
    let start = || Worker::start(&place);
    let (mut workers, mut kills): (VecDeque<Worker>, _) = ((0..WORKERS).map(|_| start()).collect(), 0);
    while kills < KILLS || kills < MOST_KILLS && effects(&place).await < JOBS {
        tokio::time::sleep(EVERY).await; // the rhythm of the kills, not a wait
        workers.pop_front().unwrap().kill().await;
        workers.push_back(start());
        kills += 1;
    }
    let done = async {
        while queued(&place, "Done").await < JOBS {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(AT_MOST, done).await.expect("some jobs are lost, or the machine is very busy");
    drop(workers);

    let printed = Worker::run(&place, &["effects"]).await;
    let mut jobs: Vec<Job> = printed.lines().map(Job::read).collect();
    assert_eq!(jobs.len() as i64, JOBS, "an effect for each job");
    jobs.sort_by(|one, other| one.id.cmp(&other.id));
    jobs.dedup_by(|one, other| one.id == other.id);
    assert_eq!(jobs.len() as i64, JOBS, "and no two for one");
    let linked = "select count(*) from idem_key k, idem_link l, job_effects e
                  where l.kid = k.kid and l.id = e.id and k.state = 2";
    assert_eq!(place.count(linked).await, JOBS, "every job is done, and knows what the gateway calls its charge");
    let attempts = place.count("select cast(sum(attempts) as bigint) from idem_key").await;
    println!("{kills} kills; {} jobs were begun again", attempts - JOBS);
    assert!(attempts > JOBS, "no kill has hit a job");
}

mod on_sqlite {
    use super::*;

    #[tokio::test]
    async fn scenario_93_a_thousand_jobs_whose_workers_are_killed_all_the_time() {
        killed_all_the_time(Place::sqlite()).await;
    }
}

mod on_postgres {
    use super::*;

    #[tokio::test]
    async fn scenario_93_a_thousand_jobs_whose_workers_are_killed_all_the_time() {
        killed_all_the_time(Place::for_programs_on(Backend::Postgres).await).await;
    }
}
