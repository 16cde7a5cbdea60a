//! `growth`: with many keys stored, and while a million of them are purged.

use std::{
    collections::BTreeMap,
    fmt::Write,
    time::{Duration, Instant},
};

use idem_runtime::{
    PostgresStore,
    store::{Purge, Store},
};
use sqlx::PgPool;

use crate::{
    Result,
    cell::{self, Measured, Pace, setting},
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
/// Beyond every window of a record.
const EXPIRED: Duration = Duration::from_secs(3 * 24 * 60 * 60);
/// What the runtime removes at once.
const BATCH: u32 = 1_000;

pub(crate) async fn growth(options: &Options) -> Result<()> {
    let mut text = report::head("growth").await?;
    let mut place = Place::open(Database::Postgres).await?;
    writeln!(text, "\n### {}", place.version().await?)?;
    text.push_str(&written(&mut place, options).await?);
    text.push_str(&throughput(&mut place, options).await?);
    text.push_str(&purging(&mut place, options).await?);
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

/// What a purge of many takes, and what it costs those who claim meanwhile.
async fn purging(place: &mut Place, options: &Options) -> Result<String> {
    let pace = Pace { connections: 16, warm_up: options.warm_up, measure: options.measure };
    seed::records(place, Variant::Held, options.expired, EXPIRED).await?;
    let alone = purge(place.url()).await?;
    eprintln!("purged {} keys in {:.2} s", alone.records, alone.took.as_secs_f64());

    seed::records(place, Variant::Held, options.expired, EXPIRED).await?;
    let setting = setting(place, Variant::Held);
    let quiet = cell::drive(place, Variant::Held, Keys::Unique, pace).await?;
    let before = seed::stored(place).await?.records;
    let own_pace = crate::serve::Setting { purge_every: Duration::from_secs(1), ..setting.clone() };
    let long = tokio::time::sleep(options.measure * 3);
    let (slowly, ()) = cell::drive_during(place, &own_pace, Keys::Unique, pace, long).await?;
    let after = seed::stored(place).await?.records;
    let url = place.url();
    let (meanwhile, purged) = cell::drive_during(place, &setting, Keys::Unique, pace, purge(url)).await?;
    let purged = purged?;

    let mut text = format!(
        "\n#### A purge of {} expired keys\n\n\
         | | keys removed | seconds | slowest batch of {BATCH}, ms | claims meanwhile at 16 connections: req/s, p99 in ms (× quiet) |\n\
         |---|---|---|---|---|\n",
        options.expired,
    );
    let claims = |it: &Measured| format!("{:.0}, {:.1} ({:.2}×)", it.rate, it.p99, it.p99 / quiet.p99);
    let purge =
        |it: &Purging| format!("{} | {:.2} | {:.0}", it.records, it.took.as_secs_f64(), it.slowest.as_secs_f64() * 1e3);
    writeln!(text, "| none | | | | {} |", claims(&quiet))?;
    writeln!(text, "| batch after batch, alone | {} | |", purge(&alone))?;
    writeln!(text, "| batch after batch | {} | {} |", purge(&purged), claims(&meanwhile))?;
    // Claims have added records meanwhile, and what was removed shows in what is missing.
    let added = slowly.rate * options.measure.as_secs_f64() * 3.0;
    let seconds = options.measure.as_secs_f64() * 3.0;
    let removed = (before + added - after).max(0.0);
    writeln!(
        text,
        "| as the runtime does it, with its pauses | about {removed:.0} | {seconds:.1} | | {} |",
        claims(&slowly)
    )?;
    Ok(text)
}

struct Purging {
    records: u64,
    took: Duration,
    slowest: Duration,
}

/// Batch after batch until nothing is left.
async fn purge(url: String) -> Result<Purging> {
    let store = PostgresStore::new(&PgPool::connect_lazy(&url)?);
    let start = Instant::now();
    let mut purging = Purging { records: 0, took: Duration::ZERO, slowest: Duration::ZERO };
    loop {
        let sent = Instant::now();
        let purged = store.purge(&Purge::at_any_time(BATCH)).await?;
        purging.slowest = purging.slowest.max(sent.elapsed());
        purging.records += u64::from(purged.records);
        if !purged.more {
            purging.took = start.elapsed();
            return Ok(purging);
        }
    }
}
