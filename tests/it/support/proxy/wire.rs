//! One connection, message by message.

use std::{
    io,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use super::{Cut, Told};

/// Of messages that end a request: `Query`, `Sync`, `FunctionCall`.
const END_OF_REQUEST: [u8; 3] = [b'Q', b'S', b'F'];
const READY_FOR_QUERY: u8 = b'Z';

/// Requests, counted; what opens the session is the first.
#[derive(Default)]
struct Progress {
    asked: usize,
    answered: usize,
    /// The one whose answer is lost.
    lost: Option<usize>,
}

#[derive(Default)]
struct Shared(Mutex<Progress>);

impl Shared {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap()
    }
}

/// Until either side ends or the test ends it; then both are closed.
pub(super) async fn carry(client: TcpStream, server: TcpStream, told: &Told) {
    let nodelay = [client.set_nodelay(true), server.set_nodelay(true)];
    assert!(nodelay.iter().all(Result::is_ok));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let shared = Shared::default();
    // An error is an end.
    let _: io::Result<()> = tokio::select! {
        ended = requests(from_client, to_server, told, &shared) => ended,
        ended = replies(from_server, to_client, told, &shared) => ended,
    };
}

async fn requests(from: OwnedReadHalf, mut to: OwnedWriteHalf, told: &Told, shared: &Shared) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let opening = message(&mut from, 0).await?;
    delay(|| told.state().slow_requests).await;
    shared.progress().asked = 1;
    to.write_all(&opening).await?;
    loop {
        let burst = from.buffer().is_empty();
        let message = message(&mut from, 1).await?;
        if burst {
            delay(|| told.state().slow_requests).await;
        }
        match told.cuts(&message) {
            Some(Cut::Before) => {
                told.state().counts.before += 1;
                return Ok(());
            }
            Some(Cut::After) => {
                let mut progress = shared.progress();
                progress.lost = Some(progress.asked + 1);
            }
            None => {}
        }
        if END_OF_REQUEST.contains(&message[0]) {
            shared.progress().asked += 1;
        }
        to.write_all(&message).await?;
    }
}

async fn replies(from: OwnedReadHalf, mut to: OwnedWriteHalf, told: &Told, shared: &Shared) -> io::Result<()> {
    let mut from = BufReader::new(from);
    loop {
        let burst = from.buffer().is_empty();
        let message = message(&mut from, 1).await?;
        let is_lost = {
            let mut progress = shared.progress();
            let is_lost = progress.lost.is_some_and(|lost| progress.answered + 1 >= lost);
            if message[0] == READY_FOR_QUERY {
                progress.answered += 1;
            }
            is_lost
        };
        if is_lost && message[0] == READY_FOR_QUERY {
            told.state().counts.after += 1;
            return Ok(());
        }
        if is_lost {
            continue;
        }
        if burst {
            delay(|| told.state().slow_replies).await;
        }
        to.write_all(&message).await?;
    }
}

async fn delay(by: impl Fn() -> Duration) {
    let by = by();
    if !by.is_zero() {
        tokio::time::sleep(by).await;
    }
}

/// The next one: a type of so many bytes, a length that counts itself but not the type, the rest.
async fn message(from: &mut BufReader<OwnedReadHalf>, kind: usize) -> io::Result<Vec<u8>> {
    let mut message = vec![0; kind + 4];
    from.read_exact(&mut message).await?;
    let length = message[kind..].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    if length < 4 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    message.resize(kind + length, 0);
    from.read_exact(&mut message[kind + 4..]).await?;
    Ok(message)
}
