use axum::extract::Path;
use idem_runtime::{Execution, idempotent};

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>, exec: Execution) -> String {
    format!("{tenant} {}", exec.attempts())
}

fn main() {
    let _ = charge;
}
