//! `Steps` in handlers and functions, whose closures borrow what is around them.

use axum::{Json, Router, routing::post};
use idem_runtime::{Error, ErrorKind, Runtime, Steps, Tx, idempotent};
use sqlx::{Database, Sqlite, SqliteConnection};

trait Accounts: Database {
    fn insert(tx: &mut Tx<Self>, email: &str) -> impl Future<Output = Result<u64, Error>> + Send
    where
        Self: Sized;
}

impl Accounts for Sqlite {
    async fn insert(tx: &mut Tx<Self>, email: &str) -> Result<u64, Error> {
        let connection: &mut SqliteConnection = tx;
        let inserted = sqlx::query("insert into users (email) values (?1)").bind(email).execute(connection).await;
        Ok(inserted.map_or(0, |inserted| inserted.rows_affected()))
    }
}

#[derive(Clone)]
struct Mail;

impl Mail {
    async fn welcome(&self, key: &str, email: &str) -> Result<String, Error> {
        Ok(format!("{key} {email}"))
    }
}

#[idempotent(scope = global, op = "generic", in_flight = accepted)]
async fn generic<Db: Accounts>(#[idem] steps: Steps, Json(email): Json<String>) -> Result<String, Error> {
    let mail = Mail;
    let user = steps.transaction("user", async |tx| Db::insert(tx, &email).await).await?;
    let sent = steps.run("mail", async |key| mail.welcome(key.as_str(), &email).await).await?;
    let name = format!("letter-{user}");
    let (fax, letter): (String, String) = tokio::try_join!(
        steps.once("fax", async |_key| mail.welcome("", &email).await),
        steps.given(&user).run(&name, async |key| mail.welcome(key.as_str(), &email).await),
    )?;
    let found = async |_key| Ok::<_, Error>(None);
    steps.once_or_find("pigeon", async |key| mail.welcome(key.as_str(), &email).await, found).await?;
    steps.link("mail", &sent).await?;
    Ok(fax + &letter)
}

#[idempotent(scope = global, op = "concrete", client_errors = keep("1s"))]
async fn concrete(#[idem] steps: idem_runtime::Steps, Json(email): Json<String>) -> Result<String, Error> {
    let write = async |tx: &mut Tx<Sqlite>| {
        let inserted = sqlx::query("insert into users (email) values (?1)").bind(&email).execute(&mut **tx).await;
        inserted.map(|_| email.len()).map_err(Trouble::from)
    };
    match steps.transaction("user", write).await {
        Ok(length) => Ok(length.to_string()),
        Err(Trouble::Idem(error)) => Err(error),
        Err(Trouble::Database) => Ok("database".to_owned()),
    }
}

#[derive(Debug)]
enum Trouble {
    Idem(Error),
    Database,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

impl From<sqlx::Error> for Trouble {
    fn from(_: sqlx::Error) -> Self {
        Self::Database
    }
}

#[idempotent(function, runtime = runtime, scope = global, op = "function", key = email)]
async fn function(runtime: &Runtime, email: &str, #[idem] steps: Steps) -> Result<u8, Error> {
    let ended: Result<u8, Error> = steps.run("step", async |key| Ok(u8::from(key.as_str() == email))).await;
    match ended {
        Err(error) if error.kind() == ErrorKind::InDoubt => Err(error),
        ended => ended,
    }
}

fn main() {
    let _: Router<Runtime> =
        Router::new().route("/generic", post(generic::<Sqlite>)).route("/concrete", post(concrete));
    let _ = |runtime: Runtime| tokio::spawn(async move { function(&runtime, "x").await });
}
