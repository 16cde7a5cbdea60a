use axum::{Json, extract::Path};
use idem_runtime::{Execution, idempotent};

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>, exec: Execution, Json(amount): Json<u64>) -> String {
    format!("{tenant} {amount} {}", exec.attempts())
}

fn main() {
    let _ = charge;
}
