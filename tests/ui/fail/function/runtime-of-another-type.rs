use idem_runtime::{Error, Runtime, idempotent};

#[idempotent(function, runtime = id, scope = global, op = "capture", key = id)]
async fn capture(_idem: &Runtime, id: u64) -> Result<u64, Error> {
    Ok(id)
}

fn main() {
    let _ = capture;
}
