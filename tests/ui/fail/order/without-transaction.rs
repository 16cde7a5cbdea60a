use axum::{Router, routing::post};
use idem_runtime::{Runtime, idempotent};

#[idempotent(scope = global, op = "stripe", webhook, order = ("/data/object/id", "/created"))]
async fn stripe(body: String) -> String {
    body
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/stripe", post(stripe));
}
