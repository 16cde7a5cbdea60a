use idem_runtime::{Error, Runtime, idempotent};

struct Receipt {
    id: u64,
}

#[idempotent(function, runtime = idem, scope = global, op = "capture", key = id)]
async fn capture(idem: &Runtime, id: u64) -> Result<Receipt, Error> {
    let _ = idem;
    Ok(Receipt { id })
}

fn main() {
    let _ = capture;
}
