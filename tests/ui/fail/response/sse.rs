use std::convert::Infallible;

use axum::{
    Router,
    extract::Path,
    response::sse::{Event, Sse},
    routing::post,
};
use futures_util::stream::{Empty, empty};
use idem_runtime::{Runtime, idempotent};

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>) -> Sse<Empty<Result<Event, Infallible>>> {
    drop(tenant);
    Sse::new(empty())
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
