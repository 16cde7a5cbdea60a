//! The command line.

use std::time::Duration;

use lexopt::{Arg, Parser, ValueExt};

use crate::{Result, serve::Setting, variant::Variant};

pub(crate) const USAGE: &str = "usage: idem-bench COMMAND [OPTIONS]

  run        the same handler, bare, by hand and with idem: throughput, latency, CPU, WAL
  growth     with many keys stored, and while a million of them are purged
  overload   more than the server can do, and a database that does not answer
  memory     of a request whose body sleeps
  peers      three steps on Restate (npm) and DBOS (PyPI), which it installs into a temporary folder

  --seconds 2                  how long each cell is measured
  --warm-up 1                  and how long it is driven before, in seconds
  --reps 3                     how often; medians are shown
  --connections 1,16,64,256    of `run`
  --stores postgres,sqlite     of `run`
  --loads unique,replay,...    of `run`: unique, replay, duplicates, steps, slow-flush
  --hot 1000                   of `run`: how many keys are replayed
  --keys 10000,1000000,5000000 of `growth`: how many keys are stored before
  --expired 1000000            of `growth`: how many are purged
  --bodies 10000               of `memory`: how many sleep; of `overload`: how many connections there are at most, of which
                               half wait for a database that does not answer
  --store-timeout 5            of `overload`: how long the runtime waits for the database, in seconds
  --store-queue 1000           of `overload`: how many calls of a kind the runtime lets wait (its default is 10,000)
  --write                      also put the tables into bench/README.md, and draw the chart

The database server is started in TMPDIR, which must lie on the disk that is to be measured.";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Database {
    Postgres,
    Sqlite,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Unique,
    Replay,
    Duplicates,
    Steps,
    SlowFlush,
}

#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) measure: Duration,
    pub(crate) warm_up: Duration,
    pub(crate) reps: usize,
    pub(crate) connections: Vec<usize>,
    pub(crate) stores: Vec<Database>,
    pub(crate) loads: Vec<Kind>,
    pub(crate) hot: u64,
    pub(crate) keys: Vec<u64>,
    pub(crate) expired: u64,
    pub(crate) bodies: usize,
    pub(crate) store_timeout: Duration,
    pub(crate) store_queue: usize,
    pub(crate) write: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            measure: Duration::from_secs(2),
            warm_up: Duration::from_secs(1),
            reps: 3,
            connections: vec![1, 16, 64, 256],
            stores: vec![Database::Postgres, Database::Sqlite],
            loads: vec![Kind::Unique, Kind::Replay, Kind::Duplicates, Kind::Steps, Kind::SlowFlush],
            hot: 1_000,
            keys: vec![10_000, 1_000_000, 5_000_000],
            expired: 1_000_000,
            bodies: 10_000,
            store_timeout: Duration::from_secs(5),
            store_queue: 1_000,
            write: false,
        }
    }
}

pub(crate) enum Command {
    Run(Options),
    Growth(Options),
    Overload(Options),
    Memory(Options),
    Peers(Options),
    Serve(Setting),
    Help,
}

/// What the command line asks for.
pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Command> {
    let mut parser = Parser::from_args(arguments);
    let command = match parser.next()? {
        Some(Arg::Value(command)) => command.string()?,
        None | Some(Arg::Long("help") | Arg::Short('h')) => return Ok(Command::Help),
        Some(other) => return Err(other.unexpected().into()),
    };
    match command.as_str() {
        "serve" => serve(parser).map(Command::Serve),
        "run" => options(parser).map(Command::Run),
        "growth" => options(parser).map(Command::Growth),
        "overload" => options(parser).map(Command::Overload),
        "memory" => options(parser).map(Command::Memory),
        "peers" => options(parser).map(Command::Peers),
        "help" => Ok(Command::Help),
        other => Err(format!("there is no command `{other}`\n\n{USAGE}").into()),
    }
}

fn options(mut parser: Parser) -> Result<Options> {
    let mut options = Options::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("seconds") => options.measure = seconds(&mut parser)?,
            Arg::Long("warm-up") => options.warm_up = seconds(&mut parser)?,
            Arg::Long("reps") => options.reps = parser.value()?.parse::<usize>()?.max(1),
            Arg::Long("connections") => options.connections = list(&mut parser, |it| Ok(it.parse()?))?,
            Arg::Long("stores") => options.stores = list(&mut parser, database)?,
            Arg::Long("loads") => options.loads = list(&mut parser, kind)?,
            Arg::Long("hot") => options.hot = parser.value()?.parse::<u64>()?.max(1),
            Arg::Long("keys") => options.keys = list(&mut parser, |it| Ok(it.parse()?))?,
            Arg::Long("expired") => options.expired = parser.value()?.parse()?,
            Arg::Long("bodies") => options.bodies = parser.value()?.parse()?,
            Arg::Long("store-timeout") => options.store_timeout = seconds(&mut parser)?,
            Arg::Long("store-queue") => options.store_queue = parser.value()?.parse::<usize>()?.max(1),
            Arg::Long("write") => options.write = true,
            other => return Err(format!("{}\n\n{USAGE}", other.unexpected()).into()),
        }
    }
    Ok(options)
}

fn serve(mut parser: Parser) -> Result<Setting> {
    let variant = Variant::named(&parser.value()?.string()?)?;
    let mut setting = Setting::new(variant, String::new());
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("url") => setting.url = parser.value()?.string()?,
            Arg::Long("purge-every") => setting.purge_every = seconds(&mut parser)?,
            Arg::Long("store-timeout") => setting.store_timeout = seconds(&mut parser)?,
            Arg::Long("store-queue") => setting.store_queue = parser.value()?.parse()?,
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(setting)
}

fn seconds(parser: &mut Parser) -> Result<Duration> {
    let text = parser.value()?.string()?;
    let seconds: f64 = text.parse().map_err(|error| format!("`{text}` are no seconds: {error}"))?;
    Ok(Duration::try_from_secs_f64(seconds)?)
}

fn list<T>(parser: &mut Parser, item: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    let text = parser.value()?.string()?;
    let items = text.split(',').map(|it| item(it.trim()).map_err(|error| format!("`{it}`: {error}").into()));
    items.collect()
}

fn database(name: &str) -> Result<Database> {
    match name {
        "postgres" => Ok(Database::Postgres),
        "sqlite" => Ok(Database::Sqlite),
        _ => Err("a store is `postgres` or `sqlite`".into()),
    }
}

fn kind(name: &str) -> Result<Kind> {
    match name {
        "unique" => Ok(Kind::Unique),
        "replay" => Ok(Kind::Replay),
        "duplicates" => Ok(Kind::Duplicates),
        "steps" => Ok(Kind::Steps),
        "slow-flush" => Ok(Kind::SlowFlush),
        _ => Err("a load is `unique`, `replay`, `duplicates`, `steps` or `slow-flush`".into()),
    }
}
