//! A `Tx` in handlers and functions, generic and not.

use axum::{Json, Router, routing::post};
use idem_runtime::{Error, Execution, Runtime, Tx, idempotent};
use sqlx::{Database, Sqlite, SqliteConnection};

trait Orders: Database {
    fn insert(connection: &mut Self::Connection, sku: &str) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

impl Orders for Sqlite {
    async fn insert(connection: &mut SqliteConnection, sku: &str) -> Result<(), sqlx::Error> {
        sqlx::query("insert into orders (sku) values (?1)").bind(sku).execute(connection).await.map(drop)
    }
}

#[idempotent(scope = global, op = "generic", in_flight = wait("1s"))]
async fn generic<Db: Orders>(#[idem] mut tx: Tx<Db>, #[idem] exec: Execution, Json(sku): Json<String>) -> String {
    Db::insert(&mut tx, &sku).await.map_or_else(|error| error.to_string(), |()| exec.attempt().to_string())
}

#[idempotent(scope = global, op = "plain")]
async fn plain(#[idem] mut tx: Tx<Sqlite>, Json(sku): Json<String>) -> Result<(), String> {
    sqlx::query("insert into orders (sku) values (?1)")
        .bind(sku)
        .execute(&mut *tx)
        .await
        .map(drop)
        .map_err(|error| error.to_string())
}

#[idempotent(function, runtime = runtime, scope = global, op = "function", key = sku)]
async fn function<Db: Orders>(runtime: &Runtime, sku: &str, #[idem] mut tx: Tx<Db>) -> Result<u8, Error> {
    let _ = Db::insert(&mut tx, sku).await;
    Ok(1)
}

#[idempotent(scope = global, op = "ordered", order = ("/data/object/id", "/created"))]
async fn ordered<Db: Orders>(#[idem] mut tx: Tx<Db>, Json(sku): Json<String>) -> String {
    Db::insert(&mut tx, &sku).await.map_or_else(|error| error.to_string(), |()| sku)
}

#[idempotent(scope = global, op = "webhook", key = body, webhook, client_errors = keep("1m"), order = ("/a~1b", "/0"))]
async fn webhook(#[idem] tx: Tx<Sqlite>, body: String) -> String {
    drop(tx);
    body
}

fn main() {
    let _: Router<Runtime> = Router::new()
        .route("/generic", post(generic::<Sqlite>))
        .route("/plain", post(plain))
        .route("/ordered", post(ordered::<Sqlite>))
        .route("/webhook", post(webhook));
    let _ = async |runtime: Runtime| function::<Sqlite>(&runtime, "a").await;
}
