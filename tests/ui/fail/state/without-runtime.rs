use axum::{Json, extract::Path};
use idem_runtime::idempotent;

#[derive(Clone)]
struct App {}

#[idempotent(scope = "tenant", op = "charge", state = App)]
async fn charge(Path(tenant): Path<String>, Json(amount): Json<u64>) -> String {
    format!("{tenant} {amount}")
}

fn main() {
    let _ = charge;
}
