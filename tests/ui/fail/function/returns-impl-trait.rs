use idem_runtime::{Error, Runtime, idempotent};

#[idempotent(function, runtime = idem, scope = global, op = "capture", key = id)]
async fn capture(idem: &Runtime, id: u64) -> Result<impl Sized, Error> {
    let _ = idem;
    Ok(id)
}

fn main() {
    let _ = capture;
}
