#![deny(dead_code)]

use axum::extract::Path;
use idem_runtime::idempotent;

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
async fn charge(Path(tenant): Path<String>) -> String {
    tenant
}

fn main() {}
