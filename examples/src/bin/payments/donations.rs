//! Donations: an HTML form, whose key is a hidden field, since a browser that sends a form again cannot set a header.

mod page;

use axum::{
    Form, Json,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use idem_runtime::{Tx, idempotent};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{AnyPool, Database, PgConnection, Postgres, Sqlite, SqliteConnection, any::AnyPoolOptions};
use uuid::Uuid;

pub(crate) use page::problem;

/// What the page sends.
#[derive(Debug, Deserialize)]
pub(crate) struct Gift {
    /// Of the page that was filled in. A UUID, so that nobody can take a key that another page will have.
    key: Uuid,
    /// Cents.
    amount: i64,
}

#[derive(Debug, Serialize, sqlx::FromRow)]
pub(crate) struct Donation {
    id: String,
    amount: i64,
    currency: String,
}

/// What differs between the databases; the statement does not.
pub(crate) trait Donations: Database {
    fn insert(tx: &mut Self::Connection, donation: &Donation) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

// Not kept as a prepared statement, so that a pooler may stand between.
macro_rules! donations {
    ($database:ty, $connection:ty) => {
        impl Donations for $database {
            async fn insert(tx: &mut $connection, donation: &Donation) -> Result<(), sqlx::Error> {
                sqlx::query("insert into donations (id, amount, currency) values ($1, $2, $3)")
                    .persistent(false)
                    .bind(&donation.id)
                    .bind(donation.amount)
                    .bind(&donation.currency)
                    .execute(tx)
                    .await
                    .map(drop)
            }
        }
    };
}
donations!(Sqlite, SqliteConnection);
donations!(Postgres, PgConnection);

/// - `scope = global`: nobody is logged in, and the key is the page's alone. What the form is for (the amount, some day a
///   campaign) belongs to the payload: in the scope, a form sent again with another one would be another donation.
/// - `payload = raw`: with a key of one's own nothing else is compared by default, and another amount would get the thanks
///   for the first one. A browser sends the same form as the same bytes.
/// - `wait`: of a double click it is the second request whose answer is shown.
/// - `30d`: a tab may be opened again weeks later, and sends its form again.
#[idempotent(scope = global, op = "donate", key = form.key, payload = raw, ttl = "30d", in_flight = wait("10s"))]
pub(crate) async fn donate<Db: Donations>(
    #[idem] mut tx: Tx<Db>,
    Form(form): Form<Gift>,
) -> Result<Redirect, DonationError> {
    if form.amount < 1 {
        return Err(DonationError::Invalid);
    }
    let id = format!("do_{}", Uuid::new_v4().simple());
    let donation = Donation { id, amount: form.amount, currency: "EUR".to_owned() };
    Db::insert(&mut tx, &donation).await?;
    // 303: what comes next is a GET, so to load the thanks again sends nothing again.
    Ok(Redirect::to(&format!("/donations/{}", donation.id)))
}

#[derive(Debug)]
pub(crate) enum DonationError {
    Invalid,
    Unknown,
    Database(sqlx::Error),
}

impl From<sqlx::Error> for DonationError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

/// None of these is kept: the transaction is undone, and the same form may be sent again.
impl IntoResponse for DonationError {
    fn into_response(self) -> Response {
        match self {
            Self::Invalid => page::invalid(),
            Self::Unknown => page::unknown(),
            Self::Database(error) => {
                tracing::error!(%error, "donation database");
                page::failed()
            }
        }
    }
}

/// `GET /donate`.
pub(crate) async fn form() -> Response {
    page::form()
}

/// Where a donation leads to.
pub(crate) async fn thanks(
    State(book): State<DonationBook>,
    Path(id): Path<String>,
) -> Result<Response, DonationError> {
    let donation = book.find(&id).await?.ok_or(DonationError::Unknown)?;
    Ok(page::thanks(&donation))
}

/// Every donation.
#[derive(Serialize)]
struct Items {
    items: Vec<Donation>,
}

/// For everybody: it says nothing of who gave.
pub(crate) async fn donations(State(book): State<DonationBook>) -> Response {
    match book.all().await {
        Ok(items) => Json(Items { items }).into_response(),
        Err(error) => {
            tracing::error!(%error, "donation database");
            (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({ "error": "internal error" }))).into_response()
        }
    }
}

/// For reading; who writes has a `Tx`.
#[derive(Clone)]
pub(crate) struct DonationBook {
    pool: AnyPool,
}

const SQLITE: &str = "create table if not exists donations (
   seq integer primary key, id text not null, amount integer not null, currency text not null
 ) strict";

/// The lock is for processes that start together.
const POSTGRES: &str = "select pg_advisory_xact_lock(hashtext('donations'));
 create table if not exists donations (
   seq bigint generated always as identity primary key, id text not null, amount bigint not null, currency text not null
 )";

impl DonationBook {
    /// Makes the table.
    pub(crate) async fn connect(url: &str) -> Result<Self, sqlx::Error> {
        let pool = AnyPoolOptions::new().max_connections(2).connect(url).await?;
        sqlx::raw_sql(if url.starts_with("sqlite:") { SQLITE } else { POSTGRES }).execute(&pool).await?;
        Ok(Self { pool })
    }

    async fn find(&self, id: &str) -> Result<Option<Donation>, sqlx::Error> {
        let find = sqlx::query_as("select id, amount, currency from donations where id = $1").persistent(false);
        let mut connection = self.pool.begin().await?;
        find.bind(id).fetch_optional(&mut *connection).await
    }

    async fn all(&self) -> Result<Vec<Donation>, sqlx::Error> {
        let all = sqlx::query_as("select id, amount, currency from donations order by seq").persistent(false);
        let mut connection = self.pool.begin().await?;
        all.fetch_all(&mut *connection).await
    }
}
