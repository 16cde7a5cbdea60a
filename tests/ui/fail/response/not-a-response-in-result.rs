use axum::{Router, extract::Path, http::StatusCode, routing::post};
use idem_runtime::{Runtime, idempotent};

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>) -> Result<u64, StatusCode> {
    Ok(tenant.len() as u64)
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
