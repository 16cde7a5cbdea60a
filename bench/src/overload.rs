//! `overload`: more than the server can do, and a database that does not answer.

mod open;
mod silent;

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use tokio::{task::JoinHandle, time::sleep};

use crate::{
    Result,
    cell::{self, Pace},
    load::{Keys, percentile},
    machine,
    options::{Database, Options},
    place::Place,
    report,
    variant::Variant,
};

/// What was answered, and how fast, in microseconds. 0 is a connection that broke.
pub(crate) type Answers = BTreeMap<u16, Vec<u32>>;

pub(crate) async fn overload(options: &Options) -> Result<()> {
    let connections = machine::connections(options.bodies)?;
    let mut text = report::head("overload").await?;
    let mut place = Place::open(Database::Postgres).await?;
    writeln!(text, "\n### {}", place.version().await?)?;
    for variant in [Variant::Held, Variant::Transactional] {
        place.clear().await?;
        let pace = Pace { connections: 64, warm_up: options.warm_up, measure: options.measure };
        let capacity = cell::drive(&mut place, variant, Keys::Unique, pace).await?.rate;
        eprintln!("{}: {capacity:.0}/s at 64 connections", variant.name());
        text.push_str(
            &open::load(&mut place, variant, capacity, connections, options.store_queue, options.measure * 5).await?,
        );
    }
    for variant in [Variant::Held, Variant::Transactional] {
        text.push_str(&silent::database(&mut place, variant, connections / 2, options.store_timeout).await?);
    }
    println!("{text}");
    if options.write { report::write("overload", &text) } else { Ok(()) }
}

/// A row for each status.
fn rows(answers: &mut Answers) -> String {
    let mut rows = "| answer | how many | p50 / p99 / longest, ms |\n|---|---|---|\n".to_owned();
    for (status, latencies) in answers {
        latencies.sort_unstable();
        let [p50, p99, longest] = [0.5, 0.99, 1.0].map(|share| percentile(latencies, share));
        let what = if *status == 0 { "none: the connection broke".to_owned() } else { status.to_string() };
        rows.push_str(&format!("| {what} | {} | {p50:.1} / {p99:.1} / {longest:.1} |\n", latencies.len()));
    }
    rows
}

/// The memory of a process, looked at ten times a second until it is asked.
struct Memory(JoinHandle<Vec<u64>>, tokio::sync::oneshot::Sender<()>);

impl Memory {
    fn watch(pid: i32) -> Self {
        let (enough, mut stop) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let mut seen = Vec::new();
            loop {
                seen.extend(machine::resident(pid));
                tokio::select! {
                    _ = &mut stop => return seen,
                    () = sleep(Duration::from_millis(100)) => {}
                }
            }
        });
        Self(task, enough)
    }

    /// MiB: at first, the most in the first half, the most in the second.
    async fn seen(self) -> Result<[f64; 3]> {
        let _ = self.1.send(()); // it looks until then
        let seen = self.0.await?;
        let most = |part: &[u64]| part.iter().copied().max().unwrap_or(0);
        let (first, second) = seen.split_at(seen.len() / 2);
        Ok([seen.first().copied().unwrap_or(0), most(first), most(second)].map(|it| it as f64 / 1024.0 / 1024.0))
    }
}
