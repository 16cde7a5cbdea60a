use axum::{Router, extract::Path, routing::post};
use idem_runtime::{Runtime, idempotent};

struct ApiError;

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>) -> Result<String, ApiError> {
    if tenant.is_empty() { Err(ApiError) } else { Ok(tenant) }
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
