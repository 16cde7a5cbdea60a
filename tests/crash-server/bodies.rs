//! The bodies: one per mode, and what they have in common.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use idem_runtime::{
    Error, Execution, Final, InDoubt, NotApplied, Recovery, StepKey, Steps, StoredResponse, Tx, idempotent,
};
use serde::Deserialize;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Database, PgConnection, Postgres, Sqlite, SqliteConnection};

use super::{
    App, Chance,
    plan::{End, Plan},
    provider::Provider,
};

/// The step whose effect an answer speaks of.
const CHARGE: &str = "charge";

/// The payload. It holds the key, so that a body can name it to the provider.
#[derive(Deserialize)]
pub(crate) struct Order {
    pub(crate) key: String,
}

macro_rules! mode {
    ($name:ident, $($annotation:tt)*) => {
        #[idempotent(scope = global, $($annotation)*)]
        pub(crate) async fn $name(
            State(chance): State<Chance>,
            State(provider): State<Provider>,
            #[idem] exec: Execution,
            Json(order): Json<Order>,
        ) -> Response {
            let effect = async |answer: Value| {
                let by = (CHARGE, exec.provider_key());
                provider.effect(stringify!($name), &order.key, by, &answer).await.map_err(drop)
            };
            perform(chance, &provider, stringify!($name), &order.key, effect).await
        }
    };
}
mode!(held, op = "held", timeout = "4s"); // a long freeze ends it
mode!(recovered, op = "recovered", timeout = "9s"); // a long freeze does not
mode!(deduped, op = "deduped", in_doubt = rerun_deduped);

/// Its effect is a row, in a table without any unique constraint.
#[idempotent(scope = global, op = "transactional")]
pub(crate) async fn transactional<Db: Rows>(
    State(chance): State<Chance>,
    State(provider): State<Provider>,
    #[idem] mut tx: Tx<Db>,
    Json(order): Json<Order>,
) -> Response {
    let effect = async |answer: Value| {
        Db::run(&mut tx, row("transactional", &order.key, CHARGE, &answer)).await.map_err(drop)?;
        Ok(answer)
    };
    perform(chance, &provider, "transactional", &order.key, effect).await
}

/// Five effects in five steps: rows, and what providers do that dedupe by their keys.
#[idempotent(scope = global, op = "resumable")]
pub(crate) async fn resumable<Db: Rows>(
    State(chance): State<Chance>,
    State(provider): State<Provider>,
    #[idem] steps: Steps,
    Json(order): Json<Order>,
) -> Response {
    let effect = async |answer: Value| {
        let own_row = async |step| {
            let insert = row("resumable", &order.key, step, &answer);
            steps.transaction(step, async |tx: &mut Tx<Db>| Db::run(tx, insert).await.map_err(|_| Trouble)).await
        };
        let outside = async |step| {
            let ask = async |key: StepKey| {
                let by = (step, key.as_str());
                provider.effect("resumable", &order.key, by, &answer).await.map_err(|_| Trouble)
            };
            steps.run(step, ask).await
        };
        own_row("user").await?;
        own_row("workspace").await?;
        let told: Value = outside(CHARGE).await?;
        steps.link("provider", told["nonce"].as_str().unwrap_or_default()).await?;
        let (_mail, _customer): (Value, Value) = tokio::try_join!(outside("mail"), outside("customer"))?;
        Ok::<_, Trouble>(told)
    };
    perform(chance, &provider, "resumable", &order.key, async |answer| effect(answer).await.map_err(drop)).await
}

/// A job of a queue, which asks a provider that dedupes.
#[idempotent(function, runtime = app.idem, scope = global, op = "job", key = order.key, in_doubt = rerun_deduped)]
pub(crate) async fn job(
    app: &App,
    order: &Order,
    ran: &AtomicBool,
    #[idem] exec: Execution,
) -> Result<Value, JobError> {
    ran.store(true, Ordering::Relaxed);
    match captured(app, order, exec.provider_key()).await {
        Ok(told) => {
            exec.link("provider", told["nonce"].as_str().unwrap_or_default()).await?;
            Ok(told)
        }
        Err(Unfinished::Refused | Unfinished::NotApplied) => {
            exec.not_applied();
            Err(JobError::Failed)
        }
        Err(Unfinished::Failed) => Err(JobError::Failed),
    }
}

/// The same job, of which nobody knows whether it is done. So its provider is given a new key each time.
pub(crate) async fn bare(app: &App, order: &Order) -> Result<Value, JobError> {
    let by = format!("{:032x}", fastrand::u128(..));
    captured(app, order, &by).await.map_err(|_| JobError::Failed)
}

async fn captured(app: &App, order: &Order, by: &str) -> Result<Value, Unfinished> {
    let effect =
        async |answer: Value| app.provider.effect("job", &order.key, (CHARGE, by), &answer).await.map_err(drop);
    drawn(app.chance, &app.provider, "job", &order.key, effect).await
}

#[derive(Debug)]
pub(crate) enum JobError {
    Failed,
    Idempotency(Error),
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        Self::Idempotency(error)
    }
}

/// A step failed, or was refused.
struct Trouble;

impl From<Error> for Trouble {
    fn from(_: Error) -> Self {
        Self
    }
}

/// Inserts an effect.
fn row(mode: &str, key: &str, step: &str, answer: &Value) -> String {
    let nonce = answer["nonce"].as_str().unwrap_or_default();
    format!("insert into crash_rows (mode, nr, step, nonce) values ('{mode}', '{key}', '{step}', '{nonce}')")
}

/// The run as it was drawn.
async fn perform(
    chance: Chance,
    provider: &Provider,
    mode: &str,
    key: &str,
    effect: impl AsyncFnOnce(Value) -> Result<Value, ()>,
) -> Response {
    match drawn(chance, provider, mode, key, effect).await {
        Ok(told) if told["status"] == 402 => Final(answer(&told)).into_response(), // what was done says so, maybe by an earlier run
        Ok(told) => answer(&told),
        Err(Unfinished::Refused) => (StatusCode::UNPROCESSABLE_ENTITY, "refused").into_response(),
        Err(Unfinished::NotApplied) => NotApplied((StatusCode::SERVICE_UNAVAILABLE, "not applied")).into_response(),
        Err(Unfinished::Failed) => failed(),
    }
}

/// A run that has no success to tell of.
enum Unfinished {
    Refused,
    NotApplied,
    Failed,
}

/// What was done. Two runs never say the same: each has its own nonce.
async fn drawn(
    chance: Chance,
    provider: &Provider,
    mode: &str,
    key: &str,
    effect: impl AsyncFnOnce(Value) -> Result<Value, ()>,
) -> Result<Value, Unfinished> {
    let run = provider.begins(mode, key).await.map_err(|_| Unfinished::Failed)?;
    let plan = Plan::draw(chance.mix, chance.seed, &format!("{mode}/{key}"), run);
    tokio::time::sleep(plan.before).await;
    match plan.end {
        End::Refused => return Err(Unfinished::Refused),
        End::NotApplied => return Err(Unfinished::NotApplied),
        End::Fails { after: false } => return Err(Unfinished::Failed),
        End::Panics { after: false } => panic!("it was drawn"),
        End::Created | End::Declined | End::Fails { after: true } | End::Panics { after: true } => {}
    }
    let declined = plan.end == End::Declined;
    let status = if declined { 402 } else { 201 };
    let nonce = format!("{:016x}", fastrand::u64(..));
    let answer = json!({ "nonce": nonce, "run": run, "status": status });
    let told = effect(answer).await.map_err(|()| Unfinished::Failed)?;
    tokio::time::sleep(plan.after).await;
    match plan.end {
        End::Fails { .. } => Err(Unfinished::Failed),
        End::Panics { .. } => panic!("it was drawn"),
        _ => Ok(told),
    }
}

fn answer(told: &Value) -> Response {
    let status = told["status"].as_u64().and_then(|status| StatusCode::from_u16(status.try_into().ok()?).ok());
    (status.unwrap_or(StatusCode::CREATED), Json(told.clone())).into_response()
}

fn failed() -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, "failed").into_response()
}

/// The recovery hook: the provider is asked. Its answer says that it is the hook's, so it differs from that of the run.
pub(crate) async fn find_out(provider: Provider, doubt: InDoubt) -> Recovery {
    match provider.find(doubt.provider_key()).await {
        Ok(Some(mut told)) => {
            told["run"] = json!("found out");
            let answer = answer(&told);
            match StoredResponse::http(answer).await {
                Ok(answer) => Recovery::Completed(answer, Vec::new()),
                Err(_) => Recovery::StillUnknown { retry_in: None },
            }
        }
        Ok(None) => Recovery::NotApplied,
        Err(_) => Recovery::StillUnknown { retry_in: None },
    }
}

/// The databases whose rows can be effects.
pub(crate) trait Rows: Database {
    fn run(connection: &mut Self::Connection, sql: String) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

impl Rows for Sqlite {
    async fn run(connection: &mut SqliteConnection, sql: String) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.map(drop)
    }
}

impl Rows for Postgres {
    async fn run(connection: &mut PgConnection, sql: String) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.map(drop)
    }
}
