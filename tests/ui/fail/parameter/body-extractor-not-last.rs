use axum::{Json, extract::Path};
use idem_runtime::idempotent;

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Json(amount): Json<u64>, Path(tenant): Path<String>) -> String {
    format!("{tenant} {amount}")
}

fn main() {
    let _ = charge;
}
