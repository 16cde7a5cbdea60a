use idem_runtime::{Error, Runtime, idempotent};

#[derive(serde::Serialize)]
struct Receipt {
    id: u64,
}

#[idempotent(function, runtime = idem, scope = global, op = "capture", key = id)]
async fn capture(idem: &Runtime, id: u64) -> Result<Vec<Receipt>, Error> {
    let _ = idem;
    Ok(vec![Receipt { id }])
}

fn main() {
    let _ = capture;
}
