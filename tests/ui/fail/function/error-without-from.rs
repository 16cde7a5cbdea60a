use idem_runtime::{Runtime, idempotent};

struct JobError;

#[idempotent(function, runtime = idem, scope = global, op = "capture", key = id)]
async fn capture(idem: &Runtime, id: u64) -> Result<u64, JobError> {
    let _ = idem;
    if id == 0 { Err(JobError) } else { Ok(id) }
}

fn main() {
    let _ = capture;
}
