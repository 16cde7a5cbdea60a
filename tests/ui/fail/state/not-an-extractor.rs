use axum::{Json, extract::Path};
use idem_runtime::{Runtime, idempotent};

#[idempotent(scope = "tenant", op = "charge", state = Runtime)]
async fn charge(Path(tenant): Path<String>, currency: u64, Json(amount): Json<u64>) -> String {
    format!("{tenant} {currency} {amount}")
}

fn main() {
    let _ = charge;
}
