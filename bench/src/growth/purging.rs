//! What a purge of many keys takes, and what it costs those who claim meanwhile.

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use idem_runtime::{
    PostgresStore,
    store::{Purge, Store},
};
use sqlx::PgPool;
use tokio::time::sleep;

use crate::{
    Result,
    cell::{self, Measured, Pace, setting},
    load::Keys,
    options::Options,
    place::Place,
    seed,
    serve::Setting,
    variant::Variant,
};

/// Beyond every window of a record.
const EXPIRED: Duration = Duration::from_secs(3 * 24 * 60 * 60);
/// What is asked for at once where nothing else matters. (The runtime asks for less.)
const BATCH: u32 = 1_000;
/// So much longer than any other cell the runtime's own purge is looked at: it has pauses.
const LONGER: u32 = 3;

/// The verb, called again and again.
#[derive(Debug, Default)]
struct Purging {
    records: u64,
    took: Duration,
    slowest: Duration,
}

pub(super) async fn table(place: &mut Place, options: &Options) -> Result<String> {
    let pace = Pace { connections: 16, warm_up: options.warm_up, measure: options.measure };
    let setting = setting(place, Variant::Held);
    seed::records(place, Variant::Held, options.expired, EXPIRED).await?;
    let alone = purge(place.url()).await?;
    eprintln!("purged {} keys in {:.2} s", alone.records, alone.took.as_secs_f64());

    seed::records(place, Variant::Held, options.expired, EXPIRED).await?;
    let quiet = cell::drive(place, Variant::Held, Keys::Unique, pace).await?;
    let own = Setting { purge_every: Duration::from_secs(1), ..setting.clone() };
    let long = sleep(options.measure * LONGER);
    let (slowly, ()) = cell::drive_during(place, &own, Keys::Unique, pace, long).await?;
    let left = seed::expired(place).await?;
    let until_empty = purge(place.url());
    let (meanwhile, purged) = cell::drive_during(place, &setting, Keys::Unique, pace, until_empty).await?;

    let mut text = format!(
        "\n#### A purge of {} expired keys\n\n\
         | | keys removed | seconds | slowest batch of {BATCH}, ms | claims meanwhile at 16 connections: req/s, p99 in ms (× quiet) |\n\
         |---|---|---|---|---|\n",
        options.expired,
    );
    let claims = |it: &Measured| format!("{:.0}, {:.1} ({:.2}×)", it.rate, it.p99, it.p99 / quiet.p99);
    let removed = i64::try_from(options.expired)? - left;
    let seconds = (options.warm_up + options.measure * LONGER).as_secs_f64(); // it purges for as long as its server lives
    writeln!(text, "| none | | | | {} |", claims(&quiet))?;
    writeln!(text, "| batch after batch, alone | {} | |", row(&alone))?;
    writeln!(text, "| batch after batch | {} | {} |", row(&purged?), claims(&meanwhile))?;
    writeln!(text, "| as the runtime does it, with its pauses | {removed} | {seconds:.1} | | {} |", claims(&slowly))?;
    Ok(text)
}

fn row(purging: &Purging) -> String {
    let Purging { records, took, slowest } = purging;
    format!("{records} | {:.2} | {:.0}", took.as_secs_f64(), slowest.as_secs_f64() * 1e3)
}

/// Batch after batch until nothing is left.
async fn purge(url: String) -> Result<Purging> {
    let store = PostgresStore::new(&PgPool::connect_lazy(&url)?);
    let (start, mut purging) = (Instant::now(), Purging::default());
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
