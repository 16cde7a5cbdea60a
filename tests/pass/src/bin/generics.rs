//! C29: generics, const generics, where clauses and lifetimes reach every generated part; turbofish at the router.
#![deny(warnings)]

mod support;

use axum::{Json, Router, extract::Path, routing};
use idem_runtime::{Error, Runtime, idempotent};

trait Gateway: Send + Sync + 'static {
    fn fee(amount: u64) -> u64;
}

struct Stripe;

impl Gateway for Stripe {
    fn fee(amount: u64) -> u64 {
        amount / 10
    }
}

#[idempotent(scope = tenant, op = "pay", ttl = "24h")]
async fn pay<G, const N: usize>(Path(tenant): Path<String>, Json(amount): Json<u64>) -> Json<Vec<u64>>
where
    G: Gateway,
{
    drop(tenant);
    Json([G::fee(amount); N].to_vec())
}

#[idempotent(function, runtime = idem, scope = tenant, op = "generic-function", key = key)]
async fn generic<'a, T, const N: usize>(
    idem: &'a Runtime,
    tenant: &'a str,
    key: [u8; N],
    value: T,
) -> Result<(T, usize), Error>
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    let _ = idem;
    Ok((value, tenant.len() + N))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let idem = support::runtime().await;
    let router = Router::new().route("/{tenant}", routing::post(pay::<Stripe, 3>)).with_state(idem.clone());
    assert_eq!(support::post(&router, "/acme", "100").await, (200, "[10,10,10]".to_owned()));
    assert_eq!(generic::<_, 2>(&idem, "acme", [1, 2], true).await.unwrap(), (true, 6));
}
