use axum::Json;
use idem_runtime::{Tx, idempotent};
use sqlx::Sqlite;

#[idempotent(scope = global, op = "order", in_doubt = rerun_deduped)]
async fn order(#[idem] tx: Tx<Sqlite>, Json(sku): Json<String>) -> String {
    drop(tx);
    sku
}

fn main() {
    let _ = order;
}
