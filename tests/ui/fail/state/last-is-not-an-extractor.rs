use axum::extract::Path;
use idem_runtime::{Runtime, idempotent};

#[idempotent(scope = "tenant", op = "charge", state = Runtime)]
async fn charge(Path(tenant): Path<String>, amount: u64) -> String {
    format!("{tenant} {amount}")
}

fn main() {
    let _ = charge;
}
