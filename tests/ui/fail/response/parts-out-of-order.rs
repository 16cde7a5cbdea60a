use axum::{Json, Router, extract::Path, http::StatusCode, routing::post};
use idem_runtime::{Runtime, idempotent};

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>) -> (Json<String>, StatusCode) {
    (Json(tenant), StatusCode::CREATED)
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
