use axum::Json;
use idem_runtime::{Steps, idempotent};

#[idempotent(scope = global, op = "provision")]
async fn provision(steps: Steps, Json(email): Json<String>) -> String {
    drop(steps);
    email
}

fn main() {
    let _ = provision;
}
