#![deny(unused_variables)]

use idem_runtime::{Error, Runtime, idempotent};

#[idempotent(function, runtime = idem, scope = global, op = "capture", key = id)]
async fn capture(idem: &Runtime, id: u64, note: &str) -> Result<u64, Error> {
    let _ = idem;
    Ok(id)
}

fn main() {
    let _ = capture;
}
