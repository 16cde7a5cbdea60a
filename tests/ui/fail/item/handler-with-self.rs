use axum::extract::Path;
use idem_runtime::idempotent;

struct Shop;

impl Shop {
    #[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
    async fn charge(&self, Path(tenant): Path<String>) -> String {
        tenant
    }
}

fn main() {
    let _ = Shop.charge(Path(String::new()));
}
