//! `memory`: of a request whose body sleeps.

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::sleep};

use crate::{
    Result,
    cell::setting,
    child::Process,
    load::{Client, Request, unique},
    machine,
    options::{Database, Options},
    place::Place,
    report,
    variant::Variant,
};

/// Longer than all of them take to fall asleep, and a look at them.
const NAP: Duration = Duration::from_secs(1200);
/// How long they may take for that.
const PATIENCE: Duration = Duration::from_secs(600);
/// So many come together, and the next when these sleep: what is weighed is sleep, not a crowd at the door.
const AT_ONCE: usize = 64;

pub(crate) async fn memory(options: &Options) -> Result<()> {
    let bodies = machine::connections(options.bodies)?;
    let mut text = report::head("memory").await?;
    let mut place = Place::open(Database::Postgres).await?;
    writeln!(
        text,
        "\n### {}\n\n{bodies} requests, each on a connection of its own, whose bodies sleep. What *bare* takes is the connection and \
         the handler; the rest is idem's.\n\n| | idle, MiB | with all asleep, MiB | a request, KiB |\n|---|---|---|---|",
        place.version().await?,
    )?;
    let mut each = Vec::new();
    for variant in [Variant::Nap, Variant::NapHeld] {
        place.clear().await?;
        let process = Process::start(&setting(&place, variant)).await?;
        let (idle, asleep) = fall_asleep(&process, bodies).await?;
        process.stop().await?;
        let one = (asleep as f64 - idle as f64) / bodies as f64 / 1024.0;
        let [idle, asleep] = [idle, asleep].map(|bytes| bytes as f64 / 1024.0 / 1024.0);
        writeln!(text, "| {variant} | {idle:.1} | {asleep:.1} | {one:.1} |")?;
        each.push(one);
    }
    writeln!(text, "| **idem's share** | | | {:.1} |", each[1] - each[0])?;
    println!("{text}");
    if options.write { report::write("memory", &text) } else { Ok(()) }
}

/// What the server has in memory before, and when all bodies sleep.
async fn fall_asleep(process: &Process, bodies: usize) -> Result<(u64, u64)> {
    let address = process.address();
    let mut look = Client::new(address);
    let mut first = Request::new(Duration::ZERO);
    look.send(first.with_key(unique())).await?; // so that what each process needs once is there
    let idle = machine::resident(process.pid()?)?;
    let (mut requests, start) = (JoinSet::new(), Instant::now());
    while requests.len() < bodies {
        for _ in 0..AT_ONCE.min(bodies - requests.len()) {
            requests.spawn(async move {
                let (mut client, mut request) = (Client::new(address), Request::new(NAP));
                client.send(request.with_key(unique())).await.map(|reply| reply.status)
            });
        }
        let expected = requests.len() + 1; // and the first
        while asleep(&mut look).await? < expected {
            if let Some(ended) = requests.try_join_next() {
                return Err(format!("a request ended whose body should sleep: {:?}", ended?).into());
            }
            if start.elapsed() > PATIENCE {
                let limit = PATIENCE.as_secs();
                return Err(format!("not all bodies fell asleep within {limit} s; try fewer (`--bodies`)").into());
            }
            sleep(Duration::from_millis(2)).await;
        }
    }
    Ok((idle, machine::resident(process.pid()?)?))
}

/// How many bodies sleep.
async fn asleep(look: &mut Client) -> Result<usize> {
    look.send(b"GET /asleep HTTP/1.1\r\nhost: bench\r\n\r\n").await?;
    Ok(look.body().parse()?)
}
