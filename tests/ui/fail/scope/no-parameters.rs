use axum::{Router, routing::post};
use idem_runtime::{Runtime, idempotent};

#[idempotent(scope = "tenant", op = "charge")]
async fn charge() -> String {
    String::new()
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
