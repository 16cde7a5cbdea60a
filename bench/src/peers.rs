//! `peers`: the workflow of three steps on what people use instead, installed into a folder that goes afterwards.

mod dbos;
mod restate;

use std::{collections::BTreeMap, fmt::Write, process::Stdio};

use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    Result,
    cell::{self, Pace},
    load::Keys,
    options::{Database, Options},
    place::Place,
    report,
    run::Median,
    variant::Variant,
};

/// Callers at once.
const CALLERS: [usize; 2] = [1, 16];

/// Requests a second, and p50 and p99 in ms.
type Row = [f64; 3];

pub(crate) async fn peers(options: &Options) -> Result<()> {
    let folder = TempDir::new()?;
    let mut place = Place::open(Database::Postgres).await?;
    let restate = restate::Restate::start(folder.path()).await?;
    let dbos = dbos::Dbos::install(folder.path(), &mut place).await?;
    let names = [
        "steps by hand".to_owned(),
        "**idem, `Steps`**".to_owned(),
        format!("Restate {}, `idempotency-key` at its ingress", restate.version),
        format!("DBOS {} (Python), by workflow id", dbos.version),
    ];
    let mut cells: BTreeMap<(usize, usize), Vec<Row>> = BTreeMap::new();
    for rep in 1..=options.reps {
        for callers in CALLERS {
            let pace = Pace { connections: callers, warm_up: options.warm_up, measure: options.measure };
            let rows = [
                ours(&mut place, Variant::StepsByHand, pace).await?,
                ours(&mut place, Variant::Steps, pace).await?,
                restate.drive(pace).await?,
                dbos.drive(pace).await?,
            ];
            eprintln!("peers: {rep} of {}, {callers} callers: {:.0?}/s", options.reps, rows.map(|row| row[0]));
            for (nr, row) in rows.into_iter().enumerate() {
                cells.entry((nr, callers)).or_default().push(row);
            }
        }
    }
    let mut text = report::head("peers").await?;
    writeln!(
        text,
        "\nThree steps that do nothing: requests a second, p50 / p99 in ms.\n\n| | 1 caller | 16 callers |\n|---|---|---|"
    )?;
    for (nr, name) in names.iter().enumerate() {
        let row = CALLERS.map(|callers| {
            let [rate, p50, p99] = [0, 1, 2].map(|of| cells[&(nr, callers)].iter().map(|row| row[of]).median());
            format!("{rate:.0}, {p50:.1} / {p99:.1}")
        });
        writeln!(text, "| {name} | {} |", row.join(" | "))?;
    }
    println!("{text}");
    if options.write { report::write("peers", &text) } else { Ok(()) }
}

async fn ours(place: &mut Place, variant: Variant, pace: Pace) -> Result<Row> {
    let measured = cell::measure(place, variant, Keys::Unique, pace).await?;
    Ok([measured.rate, measured.p50, measured.p99])
}

/// Runs it to its end, and gives what it printed.
async fn output(command: &mut Command, what_to_do: &str) -> Result<String> {
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await;
    let output = output.map_err(|error| format!("{command:?}: {error}; {what_to_do}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} failed; {what_to_do}\n{}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
