use axum::Json;
use idem_runtime::{Tx, idempotent};
use sqlx::Sqlite;

#[idempotent(scope = global, op = "order")]
async fn order(#[idem] one: Tx<Sqlite>, #[idem] two: idem_runtime::Tx<Sqlite>, Json(sku): Json<String>) -> String {
    drop((one, two));
    sku
}

fn main() {
    let _ = order;
}
