use axum::Json;
use idem_runtime::{Steps, idempotent};

#[idempotent(scope = global, op = "provision", in_doubt = rerun_deduped)]
async fn provision(#[idem] steps: Steps, Json(email): Json<String>) -> String {
    drop(steps);
    email
}

fn main() {
    let _ = provision;
}
