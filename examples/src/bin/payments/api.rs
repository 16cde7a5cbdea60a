//! The endpoints. What makes a retry safe is one line above each.

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use idem_runtime::{
    Execution, Final, InDoubt, NotApplied, OperationInfo, Recovery, Runtime, StoredResponse, idempotent,
};
use serde::Serialize;
use serde_json::json;

use crate::{
    gateway::{Gateway, Kind, Payment, Receipt, Trouble},
    tenant::Tenant,
};

#[idempotent(scope = "tenant", op = "charge", ttl = "24h")]
pub(crate) async fn charge(
    tenant: Tenant,
    State(gateway): State<Gateway>,
    #[idem] exec: Execution,
    Json(payment): Json<Payment>,
) -> Result<impl IntoResponse, ApiError> {
    let receipt = gateway.pay(Kind::Charge, tenant, exec.provider_key(), &payment).await?;
    exec.link("gateway", &receipt.id).await?; // recorded with it, for refunds
    Ok(created("/charges", receipt))
}

/// A charge whose outcome is unknown: the gateway knows it by the key that it was given.
pub(crate) async fn recover_charge(gateway: Gateway, doubt: InDoubt) -> Recovery {
    let receipt = match gateway.find(doubt.provider_key()).await {
        Ok(Some(receipt)) => receipt,
        Ok(None) if doubt.silent_for() > Gateway::LIMIT => return Recovery::NotApplied,
        // What was sent to the gateway may still be before it.
        Ok(None) | Err(_) => return Recovery::StillUnknown { retry_in: None },
    };
    let links = vec![("gateway".to_owned(), receipt.id.clone())];
    let answer = match receipt.is_declined() {
        true => ApiError::Gateway(Trouble::DeclinedForGood).into_response(),
        false => created("/charges", receipt).into_response(),
    };
    match StoredResponse::http(answer).await {
        Ok(answer) => Recovery::Completed(answer, links),
        Err(_) => Recovery::StillUnknown { retry_in: None },
    }
}

/// Without a recovery hook: a person looks at each payout whose outcome is unknown.
#[idempotent(scope = "tenant", op = "payout", ttl = "24h")]
pub(crate) async fn payout(
    tenant: Tenant,
    State(gateway): State<Gateway>,
    #[idem] exec: Execution,
    Json(payment): Json<Payment>,
) -> Result<impl IntoResponse, ApiError> {
    let receipt = gateway.pay(Kind::Payout, tenant, exec.provider_key(), &payment).await?;
    exec.link("gateway", &receipt.id).await?;
    Ok(created("/payouts", receipt))
}

fn created(path: &str, receipt: Receipt) -> (StatusCode, [(header::HeaderName, String); 1], Json<Receipt>) {
    (StatusCode::CREATED, [(header::LOCATION, format!("{path}/{}", receipt.id))], Json(receipt))
}

/// Every effect of the tenant.
#[derive(Serialize)]
pub(crate) struct Items {
    items: Vec<Receipt>,
}

pub(crate) async fn charges(tenant: Tenant, State(gateway): State<Gateway>) -> Result<Json<Items>, ApiError> {
    Ok(Json(Items { items: gateway.effects(Kind::Charge, tenant).await? }))
}

pub(crate) async fn payouts(tenant: Tenant, State(gateway): State<Gateway>) -> Result<Json<Items>, ApiError> {
    Ok(Json(Items { items: gateway.effects(Kind::Payout, tenant).await? }))
}

/// For whoever calls this API. Nothing in it is a tenant's, so it asks for no token.
#[derive(Serialize)]
pub(crate) struct Operations {
    operations: Vec<OperationInfo>,
}

pub(crate) async fn operations(State(idem): State<Runtime>) -> Json<Operations> {
    Json(Operations { operations: idem.operations().to_vec() })
}

/// What can go wrong, and what each means for a retry.
#[derive(Debug)]
pub(crate) enum ApiError {
    Gateway(Trouble),
    Idempotency(idem_runtime::Error),
}

impl From<Trouble> for ApiError {
    fn from(trouble: Trouble) -> Self {
        Self::Gateway(trouble)
    }
}

impl From<idem_runtime::Error> for ApiError {
    fn from(error: idem_runtime::Error) -> Self {
        Self::Idempotency(error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let answer = |status: StatusCode, error: &str| (status, Json(json!({ "error": error })));
        match self {
            // A client error: nothing happened, the same key may carry a corrected payment.
            Self::Gateway(Trouble::Invalid(why)) => answer(StatusCode::UNPROCESSABLE_ENTITY, why).into_response(),
            Self::Gateway(Trouble::Declined) => answer(StatusCode::PAYMENT_REQUIRED, "card declined").into_response(),
            // The gateway has it on record: a retry must get this answer, not another try.
            Self::Gateway(Trouble::DeclinedForGood) => {
                Final(answer(StatusCode::PAYMENT_REQUIRED, "card declined for good")).into_response()
            }
            // Nothing left this process: a retry may run.
            Self::Gateway(Trouble::Unreachable) => {
                NotApplied(answer(StatusCode::SERVICE_UNAVAILABLE, "gateway unreachable")).into_response()
            }
            // It may have happened. A 5xx says just that, and the key is held.
            Self::Gateway(Trouble::NoReply) => {
                answer(StatusCode::BAD_GATEWAY, "no reply from the gateway").into_response()
            }
            Self::Gateway(Trouble::Database(error)) => {
                tracing::error!(%error, "gateway database");
                answer(StatusCode::INTERNAL_SERVER_ERROR, "internal error").into_response()
            }
            Self::Idempotency(error) => error.into_response(),
        }
    }
}
