//! A process is killed in the middle of a function; another one completes it, and nobody calls.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use idem_runtime::{PostgresStore, SqliteStore};
use sqlx::PgPool;
use tokio::process::{Child, Command};

use super::*;
use crate::support::Backend;

/// What the process that is killed is told.
const URL: &str = "IDEM_TEST_KILLED_URL";
const FOLDER: &str = "IDEM_TEST_KILLED_FOLDER";
const THE_OTHER: &str = "completing::killed::the_process_that_is_killed";

/// The provider is a folder, which takes a file of one name once.
#[derive(Serialize, Deserialize)]
struct Job {
    id: String,
    provider: PathBuf,
}

#[idempotent(
    function,
    runtime = idem,
    scope = global,
    op = "completing.killed",
    key = job.id,
    in_doubt = rerun_deduped,
    input = "job"
)]
async fn charge(idem: &Runtime, job: &Job, hangs: bool, #[idem] exec: Execution) -> Result<u32, Error> {
    let _ = (idem, fs::File::create_new(job.provider.join(exec.provider_key())));
    if hangs {
        std::future::pending::<()>().await;
    }
    Ok(exec.attempts())
}

pub(super) fn builder(store: Arc<dyn idem_runtime::store::Store>, only: &'static str) -> Builder {
    Runtime::builder(store).namespace("shop").lease(Duration::from_secs(2)).serve_only(move |op| op == only)
}

fn effects(provider: &Path) -> usize {
    fs::read_dir(provider).unwrap().count()
}

/// What the process that is killed has of the one that kills it: the store, and the provider.
pub(super) async fn told() -> (Arc<dyn idem_runtime::store::Store>, PathBuf) {
    let (url, provider) = (env::var(URL).unwrap(), PathBuf::from(env::var(FOLDER).unwrap()));
    let store: Arc<dyn idem_runtime::store::Store> = match Backend::of_this_run() {
        Backend::Sqlite => Arc::new(SqliteStore::connect(&url).await.unwrap()),
        Backend::Postgres => Arc::new(PostgresStore::new(&PgPool::connect_lazy(&url).unwrap())),
        Backend::PgBouncer => Arc::new(PostgresStore::new(&PgPool::connect_lazy(&url).unwrap()).with_simple_protocol()),
    };
    (store, provider)
}

/// Starts this test in a process of its own.
pub(super) fn start(test: &str, place: &Place, provider: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--ignored"])
        .env(URL, place.url())
        .env(FOLDER, provider)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

#[tokio::test]
#[ignore = "run by the test below, in a process of its own"]
async fn the_process_that_is_killed() {
    let (store, provider) = told().await;
    let runtime = builder(store, "completing.killed").build().await.unwrap();
    let _ = charge(&runtime, &Job { id: "j1".into(), provider }, true).await;
}

#[tokio::test]
async fn scenario_84_what_a_killed_process_began_is_completed_by_another() {
    let place = Place::for_programs().await;
    place.migrate().await;
    let provider = place.file("provider");
    fs::create_dir(&provider).unwrap();
    let mut dying = start(THE_OTHER, &place, &provider);
    eventually(async || effects(&provider) == 1).await;
    dying.kill().await.unwrap();

    let runtime = builder(place.connect().await, "completing.killed")
        .sweep_every(Duration::from_millis(20))
        .resume("completing.killed", |interrupted: Interrupted| async move {
            charge(interrupted.runtime(), &interrupted.input()?, false).await.map(drop)
        })
        .build()
        .await
        .unwrap();
    place.pass(Duration::from_secs(10)).await;
    let found = async || runtime.find("completing.killed", idem_runtime::Global, "j1").await.unwrap().unwrap();
    eventually(async || found().await.state == State::Done).await;
    let late = charge(&runtime, &Job { id: "j1".into(), provider: provider.clone() }, false).await.unwrap();
    assert_eq!((late, found().await.attempts, effects(&provider)), (2, 2, 1));
}
