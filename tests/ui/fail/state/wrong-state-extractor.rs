use axum::{
    Json,
    extract::{Path, State},
};
use idem_runtime::{Runtime, idempotent};

#[idempotent(scope = "tenant", op = "charge", state = Runtime)]
async fn charge(Path(tenant): Path<String>, State(rate): State<u64>, Json(amount): Json<u64>) -> String {
    format!("{tenant} {}", rate * amount)
}

fn main() {
    let _ = charge;
}
