//! `growth`: with many keys stored, and while a million of them are purged.

mod purging;

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use crate::{
    Result,
    cell::{self, Measured, Pace},
    load::Keys,
    options::{Database, Options},
    place::Place,
    report,
    run::Median,
    seed::{self, Stored},
    variant::Variant,
};

const VARIANTS: [Variant; 2] = [Variant::Held, Variant::Transactional];
/// Where many keys are stored. Fewer connections than this leave the machine idle; many more only wait.
const CONNECTIONS: [usize; 2] = [16, 64];

pub(crate) async fn growth(options: &Options) -> Result<()> {
    let mut text = report::head("growth").await?;
    let mut place = Place::open(Database::Postgres).await?;
    writeln!(text, "\n### {}", place.version().await?)?;
    text.push_str(&written(&mut place, options).await?);
    text.push_str(&throughput(&mut place, options).await?);
    text.push_str(&purging::table(&mut place, options).await?);
    println!("{text}");
    if options.write { report::write("growth", &text) } else { Ok(()) }
}

/// Bytes and HOT share of what a load has written into empty tables.
async fn written(place: &mut Place, options: &Options) -> Result<String> {
    let mut text = "\n#### As written at 64 connections, from empty tables\n\n\
        | | bytes a key, with its answer and all indexes | HOT share of updates | keys |\n|---|---|---|---|\n"
        .to_owned();
    let pace = Pace { connections: 64, warm_up: options.warm_up, measure: options.measure };
    for variant in VARIANTS {
        place.clear().await?;
        let before = seed::stored(place).await?;
        cell::drive(place, variant, Keys::Unique, pace).await?;
        let after = seed::stored(place).await?;
        let each = after.bytes / after.records;
        writeln!(text, "| {variant} | {each:.0} | {} | {:.0} |", hot(&before, &after), after.records)?;
    }
    Ok(text)
}

fn hot(before: &Stored, after: &Stored) -> String {
    let updates = after.updates - before.updates;
    if updates > 0.0 { format!("{:.0} %", 100.0 * (after.hot - before.hot) / updates) } else { "no updates".to_owned() }
}

/// By how many are stored.
async fn throughput(place: &mut Place, options: &Options) -> Result<String> {
    let mut cells: BTreeMap<(Variant, usize, u64), Vec<Measured>> = BTreeMap::new();
    let mut seeded = Vec::new();
    for &keys in &options.keys {
        seed::records(place, Variant::Held, keys, Duration::ZERO).await?;
        let stored = seed::stored(place).await?;
        seeded.push(stored.bytes / stored.records);
        for rep in 1..=options.reps {
            for connections in CONNECTIONS {
                for variant in VARIANTS {
                    let pace = Pace { connections, warm_up: options.warm_up, measure: options.measure };
                    place.checkpoint().await?;
                    let measured = cell::drive(place, variant, Keys::Unique, pace).await?;
                    let (name, rate) = (variant.name(), measured.rate);
                    eprintln!("{keys} keys: {rep} of {}, {connections} connections, {name}: {rate:.0}/s", options.reps);
                    cells.entry((variant, connections, keys)).or_default().push(measured);
                }
            }
        }
    }
    let mut text =
        "\n#### Unique keys, by how many are stored before\n\nRequests a second (× the first column), p99 in ms:\n\n"
            .to_owned();
    let head: Vec<_> = options.keys.iter().map(|keys| format!("{keys} keys")).collect();
    writeln!(text, "| | {} |\n|---|{}", head.join(" | "), "---|".repeat(head.len()))?;
    for (variant, connections) in VARIANTS.into_iter().flat_map(|it| CONNECTIONS.map(|connections| (it, connections))) {
        let median = |keys: u64, of: fn(&Measured) -> f64| cells[&(variant, connections, keys)].iter().map(of).median();
        let row: Vec<_> = options
            .keys
            .iter()
            .map(|&keys| {
                let (rate, p99) = (median(keys, |it| it.rate), median(keys, |it| it.p99));
                format!("{rate:.0} ({:.2}×) {p99:.1}", rate / median(options.keys[0], |it| it.rate))
            })
            .collect();
        writeln!(text, "| {variant}, {connections} connections | {} |", row.join(" | "))?;
    }
    let seeded: Vec<_> = seeded.iter().map(|bytes| format!("{bytes:.0}")).collect();
    writeln!(text, "| bytes a key, as seeded | {} |", seeded.join(" | "))?;
    Ok(text)
}
