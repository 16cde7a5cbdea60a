//! Handlers that write orders in a `Tx`, over whichever database this run is about.

use std::time::Duration;

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{MethodRouter, post},
};
use idem_runtime::{Builder, Execution, Final, NotApplied, Tx, idempotent};
use serde::Deserialize;
use sqlx::{AssertSqlSafe, Connection, Database, PgConnection, Postgres, Sqlite, SqliteConnection};

use crate::support::{App, Backend, Place, Probe, Shop, Tenant};

/// The databases that the tests know. SQL as text is all that they need.
pub(crate) trait Books: Database {
    fn run(connection: &mut Self::Connection, sql: &str) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

impl Books for Sqlite {
    async fn run(connection: &mut SqliteConnection, sql: &str) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.map(drop)
    }
}

impl Books for Postgres {
    async fn run(connection: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.map(drop)
    }
}

/// What a body does, step by step.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    /// Executes it, and goes on whatever comes of it.
    Sql(String),
    /// Passes the probe's gate, and counts as started.
    Gate,
    Link(String),
    Panic,
    /// A transaction inside of this one, which is not committed: dropped, or left open.
    Nest(Nested),
    /// Moves the `Tx` to where it outlives the body.
    Keep,
    Sleep(u64),
    Answer(u16),
    Final(u16),
    NotApplied(u16),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Nested {
    Dropped,
    Left,
}

async fn perform<Db: Books>(mut tx: Tx<Db>, exec: &Execution, probe: &Probe, steps: Vec<Step>) -> Response {
    for step in steps {
        match step {
            Step::Sql(sql) => {
                if let Err(error) = Db::run(&mut tx, &sql).await {
                    probe.effect(format!("refused: {error}"));
                }
            }
            Step::Gate => probe.pass().await,
            Step::Link(id) => exec.link("gateway", &id).await.unwrap(),
            Step::Panic => panic!("the test says so"),
            Step::Nest(Nested::Dropped) => drop(tx.begin().await.unwrap()),
            Step::Nest(Nested::Left) => std::mem::forget(tx.begin().await.unwrap()),
            Step::Keep => {
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    drop(tx);
                });
                return StatusCode::CREATED.into_response();
            }
            Step::Sleep(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
            Step::Answer(status) => return answer(status),
            Step::Final(status) => return Final(answer(status)).into_response(),
            Step::NotApplied(status) => return NotApplied(answer(status)).into_response(),
        }
    }
    answer(201)
}

fn answer(status: u16) -> Response {
    (StatusCode::from_u16(status).unwrap(), format!("answer {}", fastrand::u64(..))).into_response()
}

macro_rules! orders {
    ($name:ident, $($annotation:tt)*) => {
        #[idempotent(scope = "tenant", $($annotation)*)]
        pub(crate) async fn $name<Db: Books>(
            tenant: Tenant,
            State(probe): State<Probe>,
            #[idem] exec: Execution,
            #[idem] tx: Tx<Db>,
            Json(steps): Json<Vec<Step>>,
        ) -> Response {
            perform(tx, &exec, &probe, steps).await
        }
    };
}
orders!(order, op = "tx.order");
orders!(keeping, op = "tx.keeping", client_errors = keep("30s"));
orders!(storing, op = "tx.storing", client_errors = store);
orders!(waiting, op = "tx.waiting", in_flight = wait("8s"));
orders!(short, op = "tx.short", timeout = "1s");
orders!(optional, op = "tx.optional", optional);

fn routes<Db: Books>() -> Router<App>
where
    for<'c> &'c mut Db::Connection: Send,
{
    let all: [(&str, MethodRouter<App>); 6] = [
        ("/orders", post(order::<Db>)),
        ("/keeping", post(keeping::<Db>)),
        ("/storing", post(storing::<Db>)),
        ("/waiting", post(waiting::<Db>)),
        ("/short", post(short::<Db>)),
        ("/optional", post(optional::<Db>)),
    ];
    all.into_iter().fold(Router::new(), |router, (path, method)| router.route(path, method))
}

pub(crate) fn router(backend: Backend) -> Router<App> {
    match backend {
        Backend::Sqlite => routes::<Sqlite>(),
        Backend::Postgres | Backend::PgBouncer => routes::<Postgres>(),
    }
}

pub(crate) async fn open() -> Shop {
    open_with(|builder| builder).await
}

pub(crate) async fn open_with(configure: impl FnOnce(Builder) -> Builder) -> Shop {
    let place = std::sync::Arc::new(Place::new());
    let backend = place.backend();
    let shop = Shop::open_on(place, router(backend), configure).await;
    shop.sql(&format!("create table {} (sku text)", shop.place.table("orders"))).await;
    shop
}

impl Shop {
    /// The order that `sku` names, as a step.
    pub(crate) fn write(&self, sku: &str) -> serde_json::Value {
        serde_json::json!({ "sql": format!("insert into {} (sku) values ('{sku}')", self.place.table("orders")) })
    }

    pub(crate) async fn orders(&self) -> i64 {
        self.count(&format!("select count(*) from {}", self.place.table("orders"))).await
    }

    /// Sends these steps.
    pub(crate) async fn order(&self, path: &str, key: &str, steps: &[serde_json::Value]) -> reqwest::Response {
        self.post(path, key).json(steps).send().await.unwrap()
    }
}
