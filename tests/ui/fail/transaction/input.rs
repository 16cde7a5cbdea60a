use idem_runtime::{Error, Runtime, Tx, idempotent};
use sqlx::Sqlite;

#[idempotent(function, runtime = idem, scope = global, op = "order", key = sku, input = "sku")]
async fn order(idem: &Runtime, sku: &str, #[idem] tx: Tx<Sqlite>) -> Result<(), Error> {
    drop(tx);
    let _ = (idem, sku);
    Ok(())
}

fn main() {
    let _ = order;
}
