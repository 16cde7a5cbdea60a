use axum::Json;
use idem_runtime::idempotent;

#[idempotent(scope = global, op = "event", key = event, webhook, in_flight = accepted)]
async fn event(Json(event): Json<String>) -> String {
    event
}

fn main() {
    let _ = event;
}
