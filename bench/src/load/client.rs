//! As much of an HTTP/1.1 client as a load needs: it costs little of the CPU that it shares with what it measures.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// One connection, which is opened when it is needed and again when it broke.
#[derive(Debug)]
pub(crate) struct Client {
    address: SocketAddr,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// It is marked as a replay.
    pub(crate) replayed: bool,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, stream: None, buffer: Vec::with_capacity(4096) }
    }

    /// Sends a request and reads all of its answer.
    ///
    /// Dropped half-way, the connection is closed with the client, as by somebody who hangs up; do not use it again.
    pub(crate) async fn send(&mut self, request: &[u8]) -> io::Result<Reply> {
        let reply = self.exchange(request).await;
        if reply.is_err() {
            self.stream = None;
        }
        reply
    }

    /// The body of the last answer.
    pub(crate) fn body(&self) -> &str {
        let head = self.buffer.windows(4).position(|four| four == b"\r\n\r\n");
        head.and_then(|head| str::from_utf8(&self.buffer[head + 4..]).ok()).unwrap_or_default()
    }

    async fn exchange(&mut self, request: &[u8]) -> io::Result<Reply> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = TcpStream::connect(self.address).await?;
                stream.set_nodelay(true)?;
                none.insert(stream)
            }
        };
        stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if let Some((reply, length)) = parse(&self.buffer)?
                && self.buffer.len() >= length
            {
                return Ok(reply);
            }
            if stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// What a complete head says, and how long the answer is with its body.
fn parse(buffer: &[u8]) -> io::Result<Option<(Reply, usize)>> {
    let Some(head) = buffer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let text = str::from_utf8(&buffer[..head]).map_err(|_| invalid("a head that is no text"))?;
    let status = text.get(9..12).and_then(|status| status.parse().ok()).ok_or_else(|| invalid("no status"))?;
    let (mut length, mut replayed) = (0, false);
    for (name, value) in text.lines().skip(1).filter_map(|line| line.split_once(": ")) {
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().map_err(|_| invalid("no length"))?;
        } else if name.eq_ignore_ascii_case("idempotent-replayed") {
            replayed = value == "true";
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(invalid("an answer in chunks"));
        }
    }
    Ok(Some((Reply { status, replayed }, head + 4 + length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nidempotent-replayed: true\r\n\r\n{}";

    #[test]
    fn an_answer_is_read_to_its_end() {
        let reply = Reply { status: 201, replayed: true };
        assert_eq!(parse(ANSWER).unwrap(), Some((reply, ANSWER.len())));
        assert_eq!(parse(&ANSWER[..60]).unwrap(), None);
    }

    #[test]
    fn what_cannot_be_counted_is_an_error() {
        assert!(parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(parse(b"nonsense\r\n\r\n").is_err());
    }
}
