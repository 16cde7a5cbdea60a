use idem_runtime::{Error, Runtime, idempotent};

struct Job;

#[idempotent(function, runtime = idem, scope = global, op = "capture", key = id, in_doubt = rerun_deduped, input = "job")]
async fn capture(idem: &Runtime, id: u64, job: &Job) -> Result<u64, Error> {
    let _ = (idem, job);
    Ok(id)
}

fn main() {
    let _ = capture;
}
