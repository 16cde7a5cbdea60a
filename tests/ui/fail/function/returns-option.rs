use idem_runtime::{Runtime, idempotent};

#[idempotent(function, runtime = idem, scope = global, op = "capture", key = id)]
async fn capture(idem: &Runtime, id: u64) -> Option<u64> {
    let _ = idem;
    Some(id)
}

fn main() {
    let _ = capture;
}
