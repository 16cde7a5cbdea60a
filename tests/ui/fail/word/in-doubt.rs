use axum::{Json, Router, extract::Path, routing::post};
use idem_runtime::{Runtime, idempotent};

#[idempotent(scope = "tenant", op = "charge", in_doubt = rerun)]
async fn charge(Path(tenant): Path<String>, Json(amount): Json<u64>) -> String {
    format!("{tenant} {amount}")
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
