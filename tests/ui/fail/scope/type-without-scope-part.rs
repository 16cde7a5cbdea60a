use axum::{Json, Router, extract::Path, routing::post};
use idem_runtime::{Runtime, idempotent};

#[derive(serde::Deserialize)]
struct Tenant {
    id: u64,
}

#[idempotent(scope = "tenant", op = "charge")]
async fn charge(Path(tenant): Path<Tenant>, Json(amount): Json<u64>) -> String {
    format!("{} {amount}", tenant.id)
}

fn main() {
    let _: Router<Runtime> = Router::new().route("/charges", post(charge));
}
