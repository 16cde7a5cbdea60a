//! HTTP/1.1 by hand: for requests that a client library refuses to send.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// An answer as it came over the wire. Header names are lower-case.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Raw {
    /// The slug of a problem.
    pub(crate) fn slug(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        body["type"].as_str().and_then(|uri| uri.rsplit('#').next()).unwrap_or_default().to_owned()
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.head.contains("idempotent-replayed: true")
    }

    /// `None` for less than a head.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Self { status, head: head.to_owned(), body: body.to_owned() })
    }
}

/// Sends these bytes, which must ask for `connection: close`, and reads the answer.
pub(crate) async fn raw(addr: SocketAddr, request: &[u8]) -> Raw {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(request).await.unwrap();
    answer(stream).await
}

/// Reads until the server closes the connection, even if it does so by a reset; gives up after 10 s.
pub(crate) async fn answer(mut stream: impl AsyncRead + Unpin) -> Raw {
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(n @ 1..) = timeout(Duration::from_secs(10), stream.read(&mut buffer)).await.expect("no answer in time")
    {
        answer.extend_from_slice(&buffer[..n]);
    }
    Raw::parse(&answer).unwrap_or_else(|| panic!("no answer: {}", String::from_utf8_lossy(&answer)))
}

/// The head of a POST of tenant `acme` with these header lines, byte for byte.
pub(crate) fn post_head(path: &str, lines: &[&[u8]]) -> Vec<u8> {
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nhost: shop\r\nauthorization: Bearer acme\r\ncontent-type: application/json\r\n\
         connection: close\r\n"
    )
    .into_bytes();
    for line in lines {
        head.extend_from_slice(line);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}
