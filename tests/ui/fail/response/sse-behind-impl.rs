use std::convert::Infallible;

use axum::{
    Router,
    extract::Path,
    http::StatusCode,
    response::{
        IntoResponse,
        sse::{Event, Sse},
    },
    routing::post,
};
use futures_util::stream::empty;
use idem_runtime::{Runtime, idempotent};

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>) -> Result<impl IntoResponse, StatusCode> {
    drop(tenant);
    Ok(Sse::new(empty::<Result<Event, Infallible>>()))
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
