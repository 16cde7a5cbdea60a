//! An open load: requests come when they are due, whatever has become of those before.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};

use super::{Answers, Memory, rows};
use crate::{
    Result,
    cell::setting,
    child::Process,
    load::{Client, Request, unique},
    place::Place,
    serve::Setting,
    variant::Variant,
};

/// Who has no answer by then is said to have none.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn load(
    place: &mut Place,
    variant: Variant,
    capacity: f64,
    connections: usize,
    store_queue: usize,
    length: Duration,
) -> Result<String> {
    place.clear().await?;
    let process = Process::start(&Setting { store_queue, ..setting(place, variant) }).await?;
    let memory = Memory::watch(process.pid()?);
    let mut came = offer(process.address(), capacity * 2.0, connections, length).await?;
    let [before, first, second] = memory.seen().await?;
    process.stop().await?;
    let (effects, _, most) = place.effects().await?;
    Ok(format!(
        "\n#### {variant}: {:.0} requests a second are offered, for {:.0} s, twice what 64 connections came to\n\n\
         {}\n{} more found none of {connections} connections free and were not sent. {} got no answer within {} s. \
         Memory of the server: {before:.0} MiB before, at most {first:.0} in the first half, at most {second:.0} in the second. \
         {effects} effects, at most {most} of one key.\n",
        capacity * 2.0,
        length.as_secs_f64(),
        rows(&mut came.answers),
        came.unsent,
        came.unanswered,
        PATIENCE.as_secs(),
    ))
}

#[derive(Default)]
struct Came {
    answers: Answers,
    unsent: u64,
    unanswered: u64,
}

/// A client that is free again, and what it was told after how long; no client where that took too long.
type Ended = Option<(Client, u16, Duration)>;

async fn offer(address: SocketAddr, rate: f64, connections: usize, length: Duration) -> Result<Came> {
    let mut came = Came::default();
    let (mut free, mut flying) = (Vec::<Client>::new(), JoinSet::<Ended>::new());
    let mut ticks = interval(Duration::from_millis(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (start, mut sent) = (Instant::now(), 0.0);
    while start.elapsed() < length {
        ticks.tick().await;
        while let Some(ended) = flying.try_join_next() {
            free.extend(note(&mut came, ended?));
        }
        let due = start.elapsed().as_secs_f64() * rate;
        while sent < due {
            sent += 1.0;
            let client = match free.pop() {
                Some(client) => client,
                None if flying.len() < connections => Client::new(address),
                None => {
                    came.unsent += 1;
                    continue;
                }
            };
            flying.spawn(one(client, start + Duration::from_secs_f64(sent / rate)));
        }
    }
    while let Some(ended) = flying.join_next().await {
        note(&mut came, ended?);
    }
    Ok(came)
}

/// How long it took counts from when it was due, or a load that comes late would hide how long it had to wait.
async fn one(mut client: Client, due: Instant) -> Ended {
    let mut request = Request::new(Duration::ZERO);
    let reply = timeout(PATIENCE, client.send(request.with_key(unique()))).await.ok()?;
    Some((client, reply.map_or(0, |reply| reply.status), due.elapsed()))
}

fn note(came: &mut Came, ended: Ended) -> Option<Client> {
    let Some((client, status, took)) = ended else {
        came.unanswered += 1;
        return None;
    };
    let took = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
    came.answers.entry(status).or_default().push(took);
    Some(client)
}
