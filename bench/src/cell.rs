//! One measurement: one variant, one load, one server process, which is not there before and gone afterwards.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::sleep;

use crate::{
    Result,
    child::Process,
    load::{self, Keys, Load, Request, percentile},
    machine,
    place::Place,
    serve::Setting,
    variant::Variant,
};

/// What one measurement came to. Times of CPU are microseconds a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Measured {
    pub(crate) rate: f64,
    /// Milliseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) server: f64,
    pub(crate) database: f64,
    pub(crate) load: f64,
    /// Of all CPUs: what nobody used, and what others did than server, database and load.
    pub(crate) idle: f64,
    pub(crate) others: f64,
    pub(crate) wal_bytes: f64,
    pub(crate) flushes: f64,
    /// Answers other than 201, which there should be none of.
    pub(crate) unexpected: BTreeMap<u16, u64>,
}

/// How long, and by how many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) connections: usize,
    pub(crate) warm_up: Duration,
    pub(crate) measure: Duration,
}

struct Used {
    server: Duration,
    database: Duration,
    load: Duration,
    idle: (f64, f64),
}

impl Used {
    fn all(&self) -> Duration {
        self.server + self.database + self.load
    }
}

/// Measures on empty tables; for hot keys, on tables with these and nothing else.
pub(crate) async fn measure(place: &mut Place, variant: Variant, keys: Keys, pace: Pace) -> Result<Measured> {
    place.clear().await?;
    if let Keys::Hot(count) = keys {
        if variant == Variant::Read {
            place.fill_answers(count).await?;
        } else {
            let first = Process::start(&setting(place, variant)).await?;
            load::prepare(first.address(), count).await?;
            first.stop().await?;
        }
    }
    drive(place, variant, keys, pace).await
}

/// Measures on what is there.
pub(crate) async fn drive(place: &mut Place, variant: Variant, keys: Keys, pace: Pace) -> Result<Measured> {
    let setting = setting(place, variant);
    Ok(drive_during(place, &setting, keys, pace, sleep(pace.measure)).await?.0)
}

/// As [`drive`], for as long as `during` takes, and with what comes of that.
pub(crate) async fn drive_during<T>(
    place: &mut Place,
    setting: &Setting,
    keys: Keys,
    pace: Pace,
    during: impl Future<Output = T>,
) -> Result<(Measured, T)> {
    let before = place.wal().await?;
    let process = Process::start(setting).await?;
    let request = Request::new(Duration::ZERO);
    let load = Load { address: process.address(), connections: pace.connections, keys, warm_up: pace.warm_up, request };
    let (server, myself) = (process.pid()?, i32::try_from(std::process::id())?);
    let driven = load::closed(&load, during, || {
        let (server, load) = (machine::cpu(server)?, machine::cpu(myself)?);
        Ok(Used { server, database: place.cpu()?, load, idle: machine::idle()? })
    });
    let (driven, done) = driven.await?;
    process.stop().await?;
    let after = place.wal().await?;
    let ([start, end], answers) = (&driven.samples, driven.answers.max(1) as f64);
    let (ticks, idle) = ((end.idle.1 - start.idle.1).max(1.0), end.idle.0 - start.idle.0);
    let used = end.all().saturating_sub(start.all()).as_secs_f64() * machine::ticks_per_second();
    let each = |from: Duration, to: Duration| to.saturating_sub(from).as_secs_f64() * 1e6 / answers;
    let measured = Measured {
        rate: driven.answers as f64 / driven.seconds,
        p50: percentile(&driven.latencies, 0.5),
        p99: percentile(&driven.latencies, 0.99),
        server: each(start.server, end.server),
        database: each(start.database, end.database),
        load: each(start.load, end.load),
        idle: idle / ticks,
        others: ((ticks - idle - used) / ticks).max(0.0),
        wal_bytes: (after.bytes - before.bytes) / driven.all.max(1) as f64,
        flushes: (after.flushes - before.flushes) / driven.all.max(1) as f64,
        unexpected: driven.statuses.into_iter().filter(|(status, _)| *status != 201).collect(),
    };
    if !measured.unexpected.is_empty() {
        eprintln!("Not every request was answered 201 (0: the connection broke): {:?}", measured.unexpected);
    }
    Ok((measured, done))
}

/// With a runtime's own settings, but without purges.
pub(crate) fn setting(place: &Place, variant: Variant) -> Setting {
    Setting::new(variant, place.url())
}
