use axum::Json;
use idem_runtime::{Execution, idempotent};

#[idempotent(scope = "exec", op = "charge")]
async fn charge(#[idem] exec: Execution, Json(amount): Json<u64>) -> String {
    format!("{amount} {}", exec.attempts())
}

fn main() {
    let _ = charge;
}
