//! `run`: the same handler, bare, by hand and with idem.

mod duplicates;
mod grid;

use std::time::Duration;

pub(crate) use self::grid::{Grid, Median};
use crate::{
    Result,
    cell::{self, Pace},
    chart,
    load::Keys,
    options::{Database, Kind, Options},
    place::Place,
    report,
    variant::Variant,
};

/// What each flush of the slow disk waits.
const SLOW: Duration = Duration::from_millis(1);

const UNIQUE: &[Variant] =
    &[Variant::Bare, Variant::ByHandTransaction, Variant::ByHandLease, Variant::Held, Variant::Transactional];
const REPLAY: &[Variant] = &[
    Variant::Read,
    Variant::ByHandTransaction,
    Variant::ByHandLease,
    Variant::HeldCold,
    Variant::TransactionalCold,
    Variant::Held,
];
const STEPS: &[Variant] = &[Variant::StepsByHand, Variant::Steps];

/// What is measured interleaved, and becomes one table.
struct Plan {
    title: &'static str,
    variants: &'static [Variant],
    keys: Keys,
    /// No more connections than these.
    connections: usize,
    slow: bool,
}

pub(crate) async fn run(options: &Options) -> Result<()> {
    let mut text = report::head("run").await?;
    let mut bars = None;
    for &database in &options.stores {
        let mut place = Place::open(database).await?;
        text.push_str(&format!("\n### {}\n", place.version().await?));
        for &kind in &options.loads {
            if kind == Kind::Duplicates {
                text.push_str(&duplicates::table(&mut place, UNIQUE).await?);
                continue;
            }
            let Some(plan) = plan(kind, database, options.hot) else { continue };
            let grid = grid(&mut place, &plan, options).await?;
            text.push_str(&format!("\n#### {}\n\n{grid}", plan.title));
            if kind == Kind::Unique && database == Database::Postgres {
                bars = Some(chart::draw(&grid));
            }
        }
    }
    println!("{text}");
    if options.write {
        report::write("run", &text)?;
        if let Some(bars) = bars {
            report::write_chart(&bars)?;
        }
    }
    Ok(())
}

fn plan(kind: Kind, database: Database, hot: u64) -> Option<Plan> {
    let (variants, keys, connections, slow) = (UNIQUE, Keys::Unique, usize::MAX, false);
    let unique = Plan { title: "Unique keys", variants, keys, connections, slow };
    match kind {
        Kind::Unique => Some(unique),
        Kind::Replay => {
            Some(Plan { title: "Replays of keys that are answered", variants: REPLAY, keys: Keys::Hot(hot), ..unique })
        }
        Kind::Steps if database == Database::Postgres => {
            Some(Plan { title: "Three recorded steps", variants: STEPS, connections: 16, ..unique })
        }
        Kind::SlowFlush if database == Database::Postgres => {
            let title = "Unique keys, where each flush takes 1 ms longer";
            Some(Plan { title, connections: 64, slow: true, ..unique })
        }
        Kind::Steps | Kind::SlowFlush | Kind::Duplicates => None,
    }
}

async fn grid(place: &mut Place, plan: &Plan, options: &Options) -> Result<Grid> {
    if plan.slow {
        place.delay_flushes(SLOW).await?;
    }
    let connections: Vec<usize> = options.connections.iter().copied().filter(|&it| it <= plan.connections).collect();
    let mut grid = Grid::new(plan.variants, connections.clone(), place.database());
    for rep in 1..=options.reps {
        for &connections in &connections {
            for &variant in plan.variants {
                let pace = Pace { connections, warm_up: options.warm_up, measure: options.measure };
                let measured = cell::measure(place, variant, plan.keys, pace).await?;
                let (title, reps, rate) = (plan.title, options.reps, measured.rate);
                eprintln!("{title}: {rep} of {reps}, {connections} connections, {}: {rate:.0}/s", variant.name());
                grid.add(connections, variant, measured);
            }
        }
    }
    if plan.slow {
        place.delay_flushes(Duration::ZERO).await?;
    }
    Ok(grid)
}
