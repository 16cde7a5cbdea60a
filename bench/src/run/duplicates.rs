//! Many requests with one key at once, some of whose clients hang up: how often the effect happens, and what is answered.

use std::{
    collections::BTreeMap,
    fmt::Write,
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    Result,
    cell::setting,
    child::Process,
    load::{Client, Reply, Request},
    place::Place,
    variant::Variant,
};

const KEYS: u64 = 50;
const DUPLICATES: u64 = 32;
/// One in so many hangs up: of each fourth key, the first to send among them.
const HANGING_UP: u64 = 4;
/// So long the body takes before its effect.
const BODY: Duration = Duration::from_millis(20);
/// So long a client waits that hangs up, at most.
const PATIENCE: u64 = 30;

/// So long the retries go on.
const IN_THE_END: Duration = Duration::from_secs(5);

/// How the answers to all requests of all keys went.
#[derive(Debug, Default)]
struct Answers {
    statuses: BTreeMap<u16, u64>,
    replayed: u64,
    hung_up: u64,
    /// Keys that a retry was told the answer of, within [`IN_THE_END`].
    answered: u64,
}

pub(super) async fn table(place: &mut Place, variants: &[Variant]) -> Result<String> {
    let mut text = format!(
        "\n#### {DUPLICATES} requests at once with each of {KEYS} keys, one in {HANGING_UP} of whose clients hangs up\n\n\
         | | effects | most of one key | answers | answered within 5 s |\n|---|---|---|---|---|\n"
    );
    for &variant in variants {
        place.clear().await?;
        let process = Process::start(&setting(place, variant)).await?;
        let answers = ask(process.address()).await?;
        process.stop().await?;
        let (effects, _, most) = place.effects().await?;
        let mut told: Vec<_> = answers.statuses.iter().map(|(status, count)| format!("{count} × {status}")).collect();
        told.push(format!("{} replays among them", answers.replayed));
        told.push(format!("{} hung up", answers.hung_up));
        let told = told.join(", ");
        writeln!(text, "| {variant} | {effects} | {most} | {told} | {} of {KEYS} |", answers.answered)?;
        eprintln!("duplicates: {}: {effects} effects", variant.name());
    }
    Ok(text)
}

async fn ask(address: SocketAddr) -> Result<Answers> {
    let mut answers = Answers::default();
    for key in 0..KEYS {
        let mut requests = JoinSet::new();
        for nr in 0..DUPLICATES {
            let patience =
                (nr % HANGING_UP == key % HANGING_UP).then(|| Duration::from_millis(fastrand::u64(..PATIENCE)));
            requests.spawn(async move {
                let mut request = Request::new(BODY);
                let mut client = Client::new(address);
                let patience = patience.unwrap_or(Duration::from_secs(60));
                timeout(patience, client.send(request.with_key(key))).await
            });
        }
        while let Some(ended) = requests.join_next().await {
            match ended? {
                Ok(Ok(Reply { status, replayed })) => {
                    *answers.statuses.entry(status).or_default() += 1;
                    answers.replayed += u64::from(replayed);
                }
                Ok(Err(error)) => return Err(format!("a duplicate was not answered: {error}").into()),
                Err(_) => answers.hung_up += 1,
            }
        }
    }
    answers.answered = ask_again(address).await?;
    Ok(answers)
}

/// Asks as clients do that are told to, until each key is answered 201 or the time is over; how many are.
async fn ask_again(address: SocketAddr) -> Result<u64> {
    let (mut client, mut request) = (Client::new(address), Request::new(BODY));
    let mut open: Vec<u64> = (0..KEYS).collect();
    let start = Instant::now();
    while !open.is_empty() && start.elapsed() < IN_THE_END {
        sleep(BODY * 10).await; // bodies whose clients are gone
        let mut still = Vec::new();
        for key in open {
            if client.send(request.with_key(key)).await?.status != 201 {
                still.push(key);
            }
        }
        open = still;
    }
    Ok(KEYS - open.len() as u64)
}
