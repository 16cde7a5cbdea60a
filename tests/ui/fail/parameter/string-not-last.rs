use axum::extract::Path;
use idem_runtime::idempotent;

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(note: String, Path(tenant): Path<String>) -> String {
    format!("{tenant} {note}")
}

fn main() {
    let _ = charge;
}
