use axum::{Router, routing::post};
use idem_runtime::{Runtime, Tx, idempotent};
use sqlx::Sqlite;

#[idempotent(scope = global, op = "stripe", order = "/created")]
async fn stripe(#[idem] tx: Tx<Sqlite>, body: String) -> String {
    drop(tx);
    body
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/stripe", post(stripe));
}
