use axum::{Json, extract::Path};
use idem_runtime::{Runtime, idempotent};

struct Charge {
    amount: u64,
}

#[idempotent(scope = "tenant", op = "charge", state = Runtime)]
async fn charge(Path(tenant): Path<String>, Json(req): Json<Charge>) -> String {
    format!("{tenant} {}", req.amount)
}

fn main() {
    let _ = charge;
}
