#![deny(unused_mut)]

use axum::{Json, Router, extract::Path, routing::post};
use idem_runtime::{Execution, Runtime, idempotent};

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>, #[idem] exec: Execution, Json(mut amount): Json<u64>) -> String {
    format!("{tenant} {amount} {}", exec.attempts())
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
