use axum::{Json, Router, extract::Path, routing::post};
use idem_runtime::{Runtime, idempotent};

struct Receipt(String);

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>) -> Json<Receipt> {
    Json(Receipt(tenant))
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
