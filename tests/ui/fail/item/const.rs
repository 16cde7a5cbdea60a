use axum::extract::Path;
use idem_runtime::idempotent;

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
const fn charge(tenant: &Path<String>) -> &Path<String> {
    tenant
}

fn main() {
    let _ = charge(&Path(String::new()));
}
