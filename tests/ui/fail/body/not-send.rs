use std::sync::{Arc, Mutex};

use axum::{
    Json,
    extract::{Path, State},
};
use idem_runtime::idempotent;

type Total = Arc<Mutex<u64>>;

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>, State(total): State<Total>, Json(amount): Json<u64>) -> String {
    let mut total = total.lock().unwrap();
    tokio::task::yield_now().await;
    *total += amount;
    tenant
}

fn main() {
    let _ = charge;
}
