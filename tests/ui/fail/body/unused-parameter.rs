#![deny(unused_variables)]

use axum::{
    Json, Router,
    extract::{Path, Query, State},
    routing::post,
};
use idem_runtime::{Runtime, idempotent};

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(
    Path(tenant): Path<String>,
    State(_idem): State<Runtime>,
    note: Query<u64>,
    Json(amount): Json<u64>,
) -> String {
    format!("{tenant} {amount}")
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
