use idem_runtime::{Error, Runtime, idempotent};

#[idempotent(function, runtime = idem, scope = global, op = "capture", key = id)]
async fn capture(idem: &Runtime, id: u64) -> Result<u64, Error> {
    let _ = idem;
    if id == 0 { Ok(id) } else { "x" }
}

fn main() {
    let _ = capture;
}
