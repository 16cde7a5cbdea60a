use axum::Json;
use idem_runtime::{Steps, idempotent};

#[idempotent(scope = global, op = "provision")]
async fn provision(#[idem] one: Steps, #[idem] two: idem_runtime::Steps, Json(email): Json<String>) -> String {
    drop((one, two));
    email
}

fn main() {
    let _ = provision;
}
