use axum::{
    Json, Router,
    extract::Path,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use idem_runtime::{Runtime, idempotent};

struct ApiError;

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        StatusCode::BAD_REQUEST.into_response()
    }
}

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>, Json(amount): Json<u64>) -> Result<String, ApiError> {
    let expected = tenant.parse::<u64>()?;
    Ok(format!("{}", expected == amount))
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
