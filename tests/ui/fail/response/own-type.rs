use axum::{
    Router,
    extract::Path,
    response::{IntoResponse, Response},
    routing::post,
};
use idem_runtime::{Runtime, idempotent};

struct Receipt(String);

impl IntoResponse for Receipt {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>) -> Receipt {
    Receipt(tenant)
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
