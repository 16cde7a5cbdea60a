use axum::{Json, extract::Path};
use idem_runtime::idempotent;

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
fn charge(Path(tenant): Path<String>, Json(amount): Json<u64>) -> String {
    format!("{tenant} {amount}")
}

fn main() {
    let _ = charge;
}
