use axum::Json;
use idem_runtime::idempotent;

#[idempotent(scope = global, op = "charge", in_doubt = rerun_deduped, input = "amount")]
async fn charge(Json(amount): Json<u64>) -> String {
    amount.to_string()
}

fn main() {
    let _ = charge;
}
