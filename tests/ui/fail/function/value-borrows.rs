use idem_runtime::{Error, Runtime, idempotent};

#[idempotent(function, runtime = idem, scope = global, op = "capture", key = id)]
async fn capture<'a>(idem: &Runtime, id: &'a str) -> Result<&'a str, Error> {
    let _ = idem;
    Ok(id)
}

fn main() {
    let _ = capture;
}
