use axum::{Json, Router, extract::Path, routing::post};
use idem_runtime::{Runtime, idempotent};

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>, Json(amount): Json<u64>) -> Result<Json<u64>, String> {
    if amount == 0 { Err(tenant) } else { Ok(Json("x")) }
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
