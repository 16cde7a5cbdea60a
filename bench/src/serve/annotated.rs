//! The same with idem.

use axum::{Json, extract::State, response::Response};
use idem_runtime::{Steps, Tx, idempotent};

use super::{
    Asleep,
    charge::{Charges, Effects, Failed, Order, Tenant, created},
};

/// The effect is elsewhere, as far as idem knows.
#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
pub(super) async fn charge(
    tenant: Tenant,
    State(effects): State<Effects>,
    Json(order): Json<Order>,
) -> Result<Response, Failed> {
    order.pause().await;
    effects.insert(&tenant.0, &order).await?;
    Ok(created(&order))
}

#[idempotent(scope = "tenant", op = "place", ttl = "24h")]
pub(super) async fn place<Db: Charges>(
    tenant: Tenant,
    #[idem] mut tx: Tx<Db>,
    Json(order): Json<Order>,
) -> Result<Response, Failed> {
    order.pause().await;
    Db::insert(&mut tx, &tenant.0, &order).await?;
    Ok(created(&order))
}

/// Three steps that do nothing but are recorded.
#[idempotent(scope = "tenant", op = "workflow", ttl = "24h")]
pub(super) async fn workflow(
    tenant: Tenant,
    #[idem] steps: Steps,
    Json(order): Json<Order>,
) -> Result<Response, Failed> {
    for step in ["reserve", "charge", "notify"] {
        steps.run(step, async |_key| Ok::<_, Failed>(format!("{step}-{}", order.reference))).await?;
    }
    Ok(created(&order))
}

#[idempotent(scope = "tenant", op = "nap", ttl = "24h")]
pub(super) async fn nap(tenant: Tenant, State(asleep): State<Asleep>, Json(order): Json<Order>) -> Response {
    asleep.nap(&order).await;
    created(&order)
}
