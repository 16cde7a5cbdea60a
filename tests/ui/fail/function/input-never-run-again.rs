use idem_runtime::{Error, Runtime, idempotent};

#[idempotent(function, runtime = idem, scope = global, op = "capture", key = id, input = "id")]
async fn capture(idem: &Runtime, id: u64) -> Result<u64, Error> {
    let _ = idem;
    Ok(id)
}

fn main() {
    let _ = capture;
}
