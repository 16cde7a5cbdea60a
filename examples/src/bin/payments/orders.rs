//! Orders: rows of our own database only, so that a `Tx` makes each happen exactly once.

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use idem_runtime::{Tx, idempotent};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{AnyPool, Database, PgConnection, Postgres, Sqlite, SqliteConnection, any::AnyPoolOptions};
use uuid::Uuid;

use crate::tenant::Tenant;

#[derive(Debug, Deserialize)]
pub(crate) struct Order {
    sku: String,
    quantity: i64,
    /// Fails after all is written.
    #[serde(default)]
    fail: bool,
}

#[derive(Debug, Serialize, sqlx::FromRow)]
pub(crate) struct Placed {
    id: String,
    sku: String,
    quantity: i64,
}

/// What differs between the databases; the statements do not.
pub(crate) trait Orders: Database {
    /// Takes from the stock; how many rows that changed.
    fn take(tx: &mut Self::Connection, order: &Order) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;
    fn is_known(tx: &mut Self::Connection, sku: &str) -> impl Future<Output = Result<bool, sqlx::Error>> + Send;
    fn insert(
        tx: &mut Self::Connection,
        tenant: Tenant,
        placed: &Placed,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

// Not kept as prepared statements, so that a pooler may stand between.
macro_rules! orders {
    ($database:ty, $connection:ty) => {
        impl Orders for $database {
            async fn take(tx: &mut $connection, order: &Order) -> Result<u64, sqlx::Error> {
                let take = "update stock set quantity = quantity - $1 where sku = $2 and quantity >= $1";
                let take = sqlx::query(take).persistent(false).bind(order.quantity).bind(&order.sku);
                Ok(take.execute(tx).await?.rows_affected())
            }

            async fn is_known(tx: &mut $connection, sku: &str) -> Result<bool, sqlx::Error> {
                let known = sqlx::query("select 1 from stock where sku = $1").persistent(false).bind(sku);
                Ok(known.fetch_optional(tx).await?.is_some())
            }

            async fn insert(tx: &mut $connection, tenant: Tenant, placed: &Placed) -> Result<(), sqlx::Error> {
                sqlx::query("insert into orders (id, tenant, sku, quantity) values ($1, $2, $3, $4)")
                    .persistent(false)
                    .bind(&placed.id)
                    .bind(tenant.0)
                    .bind(&placed.sku)
                    .bind(placed.quantity)
                    .execute(tx)
                    .await
                    .map(drop)
            }
        }
    };
}
orders!(Sqlite, SqliteConnection);
orders!(Postgres, PgConnection);

/// Order and stock are committed with the key, or not at all: whatever breaks, a retry finds one order or places it.
#[idempotent(scope = "tenant", op = "place-order", ttl = "48h")]
pub(crate) async fn place_order<Db: Orders>(
    tenant: Tenant,
    #[idem] mut tx: Tx<Db>,
    Json(order): Json<Order>,
) -> Result<impl IntoResponse, OrderError> {
    if order.quantity < 1 {
        return Err(OrderError::Invalid);
    }
    if Db::take(&mut tx, &order).await? == 0 {
        let known = Db::is_known(&mut tx, &order.sku).await?;
        return Err(if known { OrderError::NotEnough } else { OrderError::Unknown });
    }
    let placed = Placed { id: format!("or_{}", Uuid::new_v4().simple()), sku: order.sku, quantity: order.quantity };
    Db::insert(&mut tx, tenant, &placed).await?;
    if order.fail {
        return Err(OrderError::Failed);
    }
    Ok((StatusCode::CREATED, [(header::LOCATION, format!("/orders/{}", placed.id))], Json(placed)))
}

#[derive(Debug)]
pub(crate) enum OrderError {
    Invalid,
    Unknown,
    NotEnough,
    Failed,
    Database(sqlx::Error),
}

impl From<sqlx::Error> for OrderError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

/// None of these is kept: the transaction is undone, and the same key may be sent again.
impl IntoResponse for OrderError {
    fn into_response(self) -> Response {
        let (status, error) = match self {
            Self::Invalid => (StatusCode::UNPROCESSABLE_ENTITY, "quantity must be at least 1"),
            Self::Unknown => (StatusCode::NOT_FOUND, "unknown sku"),
            Self::NotEnough => (StatusCode::CONFLICT, "not enough stock"),
            Self::Failed => (StatusCode::INTERNAL_SERVER_ERROR, "the order asked for it"),
            Self::Database(error) => {
                tracing::error!(%error, "order database");
                (StatusCode::INTERNAL_SERVER_ERROR, "internal error")
            }
        };
        (status, Json(json!({ "error": error }))).into_response()
    }
}

/// Every order of the tenant.
#[derive(Serialize)]
pub(crate) struct Items {
    items: Vec<Placed>,
}

pub(crate) async fn orders(tenant: Tenant, State(book): State<OrderBook>) -> Result<Json<Items>, OrderError> {
    Ok(Json(Items { items: book.of(tenant).await? }))
}

/// For reading; who writes has a `Tx`.
#[derive(Clone)]
pub(crate) struct OrderBook {
    pool: AnyPool,
}

const STOCK: &str = "insert into stock (sku, quantity) values ('book', 1000000), ('lamp', 3) on conflict do nothing";

const SQLITE: &str = "create table if not exists orders (
   seq integer primary key, id text not null, tenant text not null, sku text not null, quantity integer not null
 ) strict;
 create table if not exists stock (sku text not null primary key, quantity integer not null) strict";

/// The lock is for processes that start together.
const POSTGRES: &str = "select pg_advisory_xact_lock(hashtext('orders'));
 create table if not exists orders (
   seq bigint generated always as identity primary key, id text not null, tenant text not null, sku text not null,
   quantity bigint not null
 );
 create table if not exists stock (sku text not null primary key, quantity bigint not null)";

impl OrderBook {
    /// Makes the tables, with something in stock.
    pub(crate) async fn connect(url: &str) -> Result<Self, sqlx::Error> {
        let pool = AnyPoolOptions::new().max_connections(2).connect(url).await?;
        sqlx::raw_sql(if url.starts_with("sqlite:") { SQLITE } else { POSTGRES }).execute(&pool).await?;
        sqlx::raw_sql(STOCK).execute(&pool).await?;
        Ok(Self { pool })
    }

    async fn of(&self, tenant: Tenant) -> Result<Vec<Placed>, sqlx::Error> {
        let orders = "select id, sku, quantity from orders where tenant = $1 order by seq";
        let orders = sqlx::query_as(orders).persistent(false).bind(tenant.0);
        let mut connection = self.pool.begin().await?;
        orders.fetch_all(&mut *connection).await
    }
}
