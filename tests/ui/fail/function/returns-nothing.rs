use idem_runtime::{Runtime, idempotent};

#[idempotent(function, runtime = idem, scope = global, op = "capture", key = id)]
async fn capture(idem: &Runtime, id: u64) {
    drop((idem.clone(), id));
}

fn main() {
    let _ = capture;
}
