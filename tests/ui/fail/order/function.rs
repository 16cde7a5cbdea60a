use idem_runtime::{Error, Runtime, Tx, idempotent};
use sqlx::Sqlite;

#[idempotent(function, runtime = runtime, scope = global, op = "apply", key = id, order = ("/data/object/id", "/created"))]
async fn apply(runtime: &Runtime, id: &str, #[idem] tx: Tx<Sqlite>) -> Result<(), Error> {
    drop(tx);
    Ok(())
}

fn main() {
    let _ = async |runtime: Runtime| apply(&runtime, "evt_1").await;
}
