use axum::{Json, extract::Path};
use idem_runtime::idempotent;

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>, Json(amount): Json<u64>, note: String) -> String {
    format!("{tenant} {amount} {note}")
}

fn main() {
    let _ = charge;
}
