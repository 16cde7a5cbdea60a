use axum::{Json, extract::Path};
use idem_runtime::{Runtime, idempotent};

#[idempotent(scope = "tenant", op = "charge", state = Runtime)]
async fn charge(Json(amount): Json<u64>, Path(tenant): Path<String>) -> String {
    format!("{tenant} {amount}")
}

fn main() {
    let _ = charge;
}
