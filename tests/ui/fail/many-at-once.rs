use axum::{Json, extract::Path};
use idem_runtime::{Execution, idempotent};

#[idempotent(scope = "tennant", op = "Charge", ttl = "24hours", ttl = "1h", retries = 3, payload = fields("amount"))]
fn charge(Path(tenant): Path<String>, #[idem(x)] exec: Execution, Json(amount): Json<u64>) -> String {
    format!("{tenant} {amount} {}", exec.attempts())
}

fn main() {
    let _ = charge;
}
