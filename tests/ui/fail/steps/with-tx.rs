use axum::Json;
use idem_runtime::{Steps, Tx, idempotent};
use sqlx::Sqlite;

#[idempotent(scope = global, op = "provision")]
async fn provision(#[idem] tx: Tx<Sqlite>, #[idem] steps: Steps, Json(email): Json<String>) -> String {
    drop((tx, steps));
    email
}

fn main() {
    let _ = provision;
}
