//! The request, its effect and its answer, the same behind every variant.

use axum::{
    Json,
    extract::FromRequestParts,
    http::{HeaderMap, StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use idem_runtime::{ScopePart, ScopeWriter};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx::{Database, PgConnection, PgPool, Postgres, Sqlite, SqliteConnection};

use super::writer::Writer;

/// Whose key it is. Stands in a header, so that no variant pays for authentication.
#[derive(Debug, Clone)]
pub(super) struct Tenant(pub(super) String);

impl ScopePart for Tenant {
    fn write_scope(&self, out: &mut ScopeWriter) {
        self.0.write_scope(out);
    }
}

impl<S: Sync> FromRequestParts<S> for Tenant {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        header(&parts.headers, "x-tenant").map(|tenant| Self(tenant.to_owned())).ok_or(StatusCode::UNAUTHORIZED)
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// What is asked for.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Order {
    pub(super) reference: String,
    pub(super) amount: i64,
    currency: String,
    /// So long the body takes before its effect.
    #[serde(default)]
    pause_ms: u64,
}

impl Order {
    pub(super) async fn pause(&self) {
        if self.pause_ms > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(self.pause_ms)).await;
        }
    }
}

/// About 300 bytes of JSON.
#[derive(Debug, Serialize)]
pub(super) struct Receipt<'a> {
    object: &'static str,
    id: String,
    amount: i64,
    currency: &'a str,
    reference: &'a str,
    status: &'static str,
    description: &'static str,
    receipt_url: String,
}

impl<'a> Receipt<'a> {
    pub(super) fn of(order: &'a Order) -> Self {
        Self {
            object: "charge",
            id: format!("ch_{}", order.reference),
            amount: order.amount,
            currency: &order.currency,
            reference: &order.reference,
            status: "succeeded",
            description: "Annual subscription, renewed",
            receipt_url: format!("https://pay.example.com/receipts/{}", order.reference),
        }
    }
}

/// 201 with the receipt.
pub(super) fn created(order: &Order) -> Response {
    (StatusCode::CREATED, Json(Receipt::of(order))).into_response()
}

/// A keyed call, as who writes by hand takes it apart.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) tenant: String,
    pub(super) key: String,
    pub(super) fingerprint: [u8; 32],
    pub(super) order: Order,
}

impl Call {
    pub(super) fn of(headers: &HeaderMap, body: &[u8]) -> Result<Self, Failed> {
        let tenant = header(headers, "x-tenant").ok_or(Failed::Status(StatusCode::UNAUTHORIZED))?;
        let key = header(headers, "idempotency-key").ok_or(Failed::Status(StatusCode::BAD_REQUEST))?;
        let order = serde_json::from_slice(body).map_err(|_| Failed::Status(StatusCode::UNPROCESSABLE_ENTITY))?;
        let (tenant, key) = (tenant.to_owned(), key.trim_matches('"').to_owned());
        Ok(Self { tenant, key, fingerprint: Sha256::digest(body).into(), order })
    }

    /// The answer to keep, as bytes.
    pub(super) fn answer(&self) -> Result<Vec<u8>, Failed> {
        serde_json::to_vec(&Receipt::of(&self.order)).map_err(|_| Failed::Status(StatusCode::INTERNAL_SERVER_ERROR))
    }
}

/// What a row of a table by hand says to a retry: fingerprint, status, body.
pub(super) type Kept = (Vec<u8>, Option<i32>, Option<Vec<u8>>);

/// The answer by hand, from what is kept: 422 for another payload, 409 while the first is under way.
pub(super) fn replay(call: &Call, (fingerprint, status, body): Kept) -> Result<Response, Failed> {
    if fingerprint != call.fingerprint {
        return Err(Failed::Status(StatusCode::UNPROCESSABLE_ENTITY));
    }
    let (Some(status), Some(body)) = (status, body) else { return Err(Failed::Status(StatusCode::CONFLICT)) };
    let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.ok_or(Failed::Status(StatusCode::INTERNAL_SERVER_ERROR))?;
    Ok((status, [("content-type", "application/json"), ("idempotent-replayed", "true")], body).into_response())
}

pub(super) fn first(body: Vec<u8>) -> Response {
    (StatusCode::CREATED, [("content-type", "application/json")], body).into_response()
}

/// Where the effect of a handler goes that is no transaction of idem's.
#[derive(Clone)]
pub(super) enum Effects {
    Postgres(PgPool),
    Sqlite(Writer),
}

impl Effects {
    pub(super) async fn insert(&self, tenant: &str, order: &Order) -> Result<(), Failed> {
        match self {
            Self::Postgres(pool) => Ok(Postgres::insert(&mut *pool.acquire().await?, tenant, order).await?),
            Self::Sqlite(writer) => {
                let (tenant, order) = (tenant.to_owned(), order.clone());
                let insert =
                    writer.run(move |file| Box::pin(async move { Sqlite::insert(file, &tenant, &order).await }));
                Ok(insert.await?)
            }
        }
    }
}

/// The effect: one row.
pub(super) trait Charges: Database {
    fn insert(
        into: &mut Self::Connection,
        tenant: &str,
        order: &Order,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;
}

macro_rules! charges {
    ($database:ty, $connection:ty) => {
        impl Charges for $database {
            async fn insert(into: &mut $connection, tenant: &str, order: &Order) -> sqlx::Result<()> {
                sqlx::query("insert into charges (tenant, reference, amount, currency) values ($1, $2, $3, $4)")
                    .bind(tenant)
                    .bind(&order.reference)
                    .bind(order.amount)
                    .bind(&order.currency)
                    .execute(into)
                    .await
                    .map(drop)
            }
        }
    };
}
charges!(Postgres, PgConnection);
charges!(Sqlite, SqliteConnection);

/// Why a handler fails.
pub(super) enum Failed {
    Status(StatusCode),
    Database(sqlx::Error),
    Idempotency(idem_runtime::Error),
}

impl From<sqlx::Error> for Failed {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<idem_runtime::Error> for Failed {
    fn from(error: idem_runtime::Error) -> Self {
        Self::Idempotency(error)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        match self {
            Self::Status(status) => status.into_response(),
            Self::Database(error) => {
                eprintln!("the database failed: {error}");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
            Self::Idempotency(error) => error.into_response(),
        }
    }
}
