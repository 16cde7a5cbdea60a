//! A handler whose steps are what its payload says, run by run, at providers that count what happens to them.

use std::time::Duration;

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use idem_runtime::{Builder, Error, Final, NotApplied, Record, StepKey, Steps, idempotent};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::{Postgres, Sqlite};

use crate::{
    support::{App, Backend, Place, Probe, Seen, Shop, Tenant, seen},
    transactions::shop::Books,
};

/// What a run does, in order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Do {
    /// Calls a provider that dedupes.
    Run(String),
    /// As `Run`, given this.
    Given(String, u64),
    /// As `Run`, and the provider's answer is lost.
    RunLost(String),
    /// As `Run`, and its caller waits at the gate for the provider's answer.
    RunGate(String),
    /// As `Run`, with a number as its result.
    Number(String),
    /// Calls a provider that does not dedupe.
    Once(String),
    /// As `Once`, and the provider's answer is lost.
    OnceLost(String),
    /// As `Once`, and its caller waits at the gate for the provider's answer.
    OnceGate(String),
    /// As `Once`, with a way to find out.
    OnceOrFind(String),
    OnceOrFindLost(String),
    /// As `OnceOrFind`, given this.
    GivenOnceOrFind(String, u64),
    /// As `Run`, given what cannot be written as JSON.
    GivenNoJson(String),
    /// Records what the provider calls it.
    Link(String),
    /// Inserts a row of this name.
    Row(String),
    /// As `Row`, and fails.
    RowFailed(String),
    /// As `Row`, and then executes this in the same transaction.
    Sql(String, String),
    /// Steps of these names, side by side.
    Join(Vec<String>),
    /// Steps of one transaction, from inside of another.
    Nested(String, String),
    /// Keeps a hand on the steps, and begins this one when the run is over.
    Later(String),
    Gate,
    Panic,
    Answer(u16),
    Final(u16),
    NotApplied(u16),
    /// An answer that tells of no error, whatever the steps before have come to.
    Whatever(Vec<Self>),
}

#[derive(Debug)]
pub(crate) enum Trouble {
    Lost,
    Ends(Box<Response>),
    Idem(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        match self {
            Self::Lost => StatusCode::BAD_GATEWAY.into_response(),
            Self::Ends(response) => *response,
            Self::Idem(error) => error.into_response(),
        }
    }
}

/// A provider that does once what it is told with one key.
fn deduped(probe: &Probe, step: &str, key: StepKey) -> String {
    let effect = format!("{step} {}", key.as_str());
    if !probe.log().contains(&effect) {
        probe.effect(&effect);
    }
    format!("{step} done")
}

fn sent(probe: &Probe, step: &str) -> String {
    probe.effect(step);
    format!("{step} done")
}

async fn row<Db: Books>(tx: &mut Db::Connection, table: &str, name: &str) {
    Db::run(tx, &format!("insert into {table} (sku) values ('{name}')")).await.unwrap();
}

/// What a step came to, as text; or how the run ends.
async fn perform<Db: Books>(steps: &Steps, probe: &Probe, table: &str, what: &Do) -> Result<String, Trouble> {
    let ok = |text: String| Ok::<_, Trouble>(text);
    match what {
        Do::Run(name) => steps.run(name, async |key| ok(deduped(probe, name, key))).await,
        Do::Given(name, input) => steps.given(input).run(name, async |key| ok(deduped(probe, name, key))).await,
        Do::RunLost(name) => {
            let lost = async |key| {
                deduped(probe, name, key);
                Err(Trouble::Lost)
            };
            steps.run(name, lost).await
        }
        Do::RunGate(name) => {
            let waits = async |key| {
                let answer = deduped(probe, name, key);
                probe.pass().await;
                ok(answer)
            };
            steps.run(name, waits).await
        }
        Do::Number(name) => {
            let number: u64 = steps.run(name, async |_| Ok::<_, Trouble>(7)).await?;
            ok(number.to_string())
        }
        Do::Once(name) => steps.once(name, async |_| ok(sent(probe, name))).await,
        Do::OnceLost(name) => {
            let lost = async |_| {
                sent(probe, name);
                Err(Trouble::Lost)
            };
            steps.once(name, lost).await
        }
        Do::OnceGate(name) => {
            let waits = async |_| {
                let answer = sent(probe, name);
                probe.pass().await;
                ok(answer)
            };
            steps.once(name, waits).await
        }
        Do::GivenOnceOrFind(name, input) => {
            let find = async |_| Ok::<_, Trouble>(Some(format!("{name} found")));
            steps.given(input).once_or_find(name, async |_| ok(sent(probe, name)), find).await
        }
        Do::GivenNoJson(name) => {
            let no_json = std::collections::HashMap::from([((1, 2), 3)]);
            steps.given(&no_json).run(name, async |key| ok(deduped(probe, name, key))).await
        }
        Do::Link(id) => {
            steps.link("gateway", id).await?;
            ok(String::new())
        }
        Do::OnceOrFind(name) | Do::OnceOrFindLost(name) => {
            let call = async |_| {
                let answer = sent(probe, name);
                if matches!(what, Do::OnceOrFindLost(_)) { Err(Trouble::Lost) } else { ok(answer) }
            };
            let find = async |_| {
                let known = probe.log().contains(name);
                Ok::<_, Trouble>(known.then(|| format!("{name} found")))
            };
            steps.once_or_find(name, call, find).await
        }
        Do::Row(name) => {
            let body = async |tx: &mut idem_runtime::Tx<Db>| {
                row::<Db>(tx, table, name).await;
                ok(format!("{name} written"))
            };
            steps.transaction(name, body).await
        }
        Do::RowFailed(name) => {
            let body = async |tx: &mut idem_runtime::Tx<Db>| {
                row::<Db>(tx, table, name).await;
                Err(Trouble::Lost)
            };
            steps.transaction(name, body).await
        }
        Do::Sql(name, sql) => {
            let body = async |tx: &mut idem_runtime::Tx<Db>| {
                row::<Db>(tx, table, name).await;
                if let Err(error) = Db::run(tx, sql).await {
                    probe.effect(format!("refused: {error}"));
                }
                ok(format!("{name} written"))
            };
            steps.transaction(name, body).await
        }
        Do::Join(names) => {
            let all = names.iter().map(|name| {
                steps.run(name, async move |key| {
                    tokio::time::sleep(Duration::from_millis(fastrand::u64(..5))).await;
                    probe.pass().await;
                    ok(deduped(probe, name, key))
                })
            });
            ok(futures_util::future::try_join_all(all).await?.join(", "))
        }
        Do::Nested(outer, inner) => {
            let body =
                async |_: &mut idem_runtime::Tx<Db>| steps.run(inner, async |key| ok(deduped(probe, inner, key))).await;
            steps.transaction(outer, body).await
        }
        Do::Later(name) => {
            let (steps, probe, name) = (steps.clone(), probe.clone(), name.clone());
            tokio::spawn(async move {
                probe.pass().await;
                let begun = steps.run(&name, async |_| Ok::<_, Trouble>(sent(&probe, &name))).await;
                probe.effect(if begun.is_ok() { "late" } else { "late was refused" });
            });
            ok(String::new())
        }
        Do::Gate => {
            probe.pass().await;
            ok(String::new())
        }
        Do::Panic => panic!("the test says so"),
        Do::Answer(status) => Err(Trouble::Ends(Box::new(status_only(*status)))),
        Do::Final(status) => Err(Trouble::Ends(Box::new(Final(status_only(*status)).into_response()))),
        Do::NotApplied(status) => Err(Trouble::Ends(Box::new(NotApplied(status_only(*status)).into_response()))),
        Do::Whatever(all) => {
            for what in all {
                let came_to = Box::pin(perform::<Db>(steps, probe, table, what)).await;
                drop(came_to);
            }
            ok("whatever".to_owned())
        }
    }
}

fn status_only(status: u16) -> Response {
    StatusCode::from_u16(status).unwrap().into_response()
}

async fn run<Db: Books>(steps: &Steps, probe: &Probe, plan: Plan) -> Result<(StatusCode, String), Trouble> {
    let turn = usize::try_from(steps.execution().attempts()).unwrap().min(plan.runs.len());
    let mut said = Vec::new();
    for what in turn.checked_sub(1).map_or(&[][..], |turn| &plan.runs[turn]) {
        said.push(perform::<Db>(steps, probe, &plan.table, what).await?);
    }
    Ok((StatusCode::CREATED, said.join("; ")))
}

/// What each run does, in turn; the last one again and again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) table: String,
    pub(crate) runs: Vec<Vec<Do>>,
}

macro_rules! workshop {
    ($name:ident, $($annotation:tt)*) => {
        #[idempotent(scope = "tenant", $($annotation)*)]
        async fn $name<Db: Books>(
            tenant: Tenant,
            State(probe): State<Probe>,
            #[idem] steps: Steps,
            Json(plan): Json<Plan>,
        ) -> Result<(StatusCode, String), Trouble> {
            run::<Db>(&steps, &probe, plan).await
        }
    };
}
workshop!(work, op = "steps.work");
workshop!(short, op = "steps.short", timeout = "1s");
workshop!(optional, op = "steps.optional", optional);

fn routes<Db: Books>() -> Router<App>
where
    for<'c> &'c mut Db::Connection: Send,
{
    let router = Router::new().route("/work", post(work::<Db>)).route("/short", post(short::<Db>));
    router.route("/optional", post(optional::<Db>))
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
    let shop = Shop::open_on(std::sync::Arc::clone(&place), router(place.backend()), configure).await;
    shop.sql(&format!("create table {} (sku text)", place.table("orders"))).await;
    shop
}

pub(crate) fn name(name: &str) -> String {
    name.to_owned()
}

impl Shop {
    pub(crate) fn plan(&self, runs: &[Vec<Do>]) -> Value {
        json!(Plan { table: self.place.table("orders"), runs: runs.to_vec() })
    }

    /// Sends it as acme's request with this key.
    pub(crate) async fn work(&self, path: &str, key: &str, runs: &[Vec<Do>]) -> Seen {
        seen(self.post(path, key).json(&self.plan(runs)).send().await.unwrap()).await
    }

    pub(crate) async fn worked(&self, key: &str) -> Record {
        self.record("steps.work", key).await
    }

    pub(crate) async fn rows(&self) -> Vec<String> {
        let table = self.place.table("orders");
        let sql = format!("select sku from {table} order by sku");
        sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_all(self.place.database().await).await.unwrap()
    }

    /// What providers did, without the keys by which they were asked.
    pub(crate) fn effects_by_step(&self) -> Vec<String> {
        let step = |effect: String| effect.split(' ').next().unwrap().to_owned();
        self.probe.log().into_iter().map(step).collect()
    }
}
