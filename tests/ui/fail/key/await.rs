use axum::{Json, Router, extract::Path, routing::post};
use idem_runtime::{Runtime, idempotent};

async fn lookup(amount: u64) -> u64 {
    amount
}

#[idempotent(scope = "tenant", op = "charge", key = lookup(amount).await)]
async fn charge(Path(tenant): Path<String>, Json(amount): Json<u64>) -> String {
    format!("{tenant} {amount}")
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
