use idem_runtime::{Error, Execution, Runtime, idempotent};

#[idempotent(function, runtime = idem, scope = global, op = "capture", key = id, in_doubt = rerun_deduped, input = "exec")]
async fn capture(idem: &Runtime, id: u64, #[idem] exec: Execution) -> Result<u64, Error> {
    let _ = (idem, exec);
    Ok(id)
}

fn main() {
    let _ = capture;
}
