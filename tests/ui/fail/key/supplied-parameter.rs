use axum::extract::Path;
use idem_runtime::{Execution, idempotent};

#[idempotent(scope = "tenant", op = "charge", key = exec.attempts())]
async fn charge(Path(tenant): Path<String>, #[idem] exec: Execution) -> String {
    format!("{tenant} {}", exec.attempts())
}

fn main() {
    let _ = charge;
}
