use axum::{Json, Router, extract::Path, http::StatusCode, response::IntoResponse, routing::post};
use idem_runtime::{Runtime, idempotent};

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>, Json(amount): Json<u64>) -> Result<impl IntoResponse, StatusCode> {
    if amount == 0 { Err(StatusCode::NOT_FOUND) } else { tenant }
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
