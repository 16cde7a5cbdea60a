use axum::Json;
use idem_runtime::{Error, Steps, idempotent};

struct Customer;

#[idempotent(scope = global, op = "provision")]
async fn provision(#[idem] steps: Steps, Json(email): Json<String>) -> Result<String, Error> {
    let customer: Customer = steps.run("customer", async |_key| Ok::<_, Error>(Customer)).await?;
    drop(customer);
    Ok(email)
}

fn main() {
    let _ = provision;
}
