//! As `killed`, of a function of several steps.

use std::{
    fs,
    path::{Path, PathBuf},
};

use idem_runtime::{StepKey, Steps};

use super::{
    killed::{builder, start, told},
    *,
};

const THE_OTHER: &str = "completing::killed_steps::the_process_that_is_killed";
const OP: &str = "completing.killed_steps";

/// The provider is a folder, with a file of its own for each call, deduped or not.
#[derive(Serialize, Deserialize)]
struct Job {
    id: String,
    provider: PathBuf,
}

fn called(provider: &Path, step: &str, key: StepKey) -> String {
    let calls = fs::read_dir(provider).unwrap().count();
    fs::File::create_new(provider.join(format!("{step} {calls} {}", key.as_str()))).unwrap();
    format!("{step} done")
}

#[idempotent(function, runtime = idem, scope = global, op = "completing.killed_steps", key = job.id, input = "job")]
async fn sign_up(idem: &Runtime, job: &Job, hangs: bool, #[idem] steps: Steps) -> Result<String, Error> {
    let _ = idem;
    let at = job.provider.as_path();
    let user = steps.run("user", async |key| Ok::<_, Error>(called(at, "user", key))).await?;
    let fax = steps.once("fax", async |key| Ok::<_, Error>(called(at, "fax", key))).await?;
    if hangs {
        fs::File::create(at.with_extension("hangs")).unwrap();
        std::future::pending::<()>().await;
    }
    let mail = steps.once("mail", async |key| Ok::<_, Error>(called(at, "mail", key))).await?;
    Ok(format!("{user}, {fax}, {mail} by run {}", steps.execution().attempts()))
}

fn effects(provider: &Path) -> Vec<String> {
    let names = fs::read_dir(provider).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.map(|name| name.split(' ').next().unwrap().to_owned()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
#[ignore = "run by the test below, in a process of its own"]
async fn the_process_that_is_killed() {
    let (store, provider) = told().await;
    let runtime = builder(store, OP).build().await.unwrap();
    let _ = sign_up(&runtime, &Job { id: "j1".into(), provider }, true).await;
}

#[tokio::test]
async fn scenario_84_what_a_killed_process_began_step_by_step_is_completed_by_another() {
    let place = Place::for_programs().await;
    place.migrate().await;
    let provider = place.file("provider");
    fs::create_dir(&provider).unwrap();
    let mut dying = start(THE_OTHER, &place, &provider);
    eventually(async || provider.with_extension("hangs").exists()).await;
    dying.kill().await.unwrap();
    assert_eq!(effects(&provider), ["fax", "user"]);

    let runtime = builder(place.connect().await, OP)
        .sweep_every(Duration::from_millis(20))
        .resume(OP, |interrupted: Interrupted| async move {
            sign_up(interrupted.runtime(), &interrupted.input()?, false).await.map(drop)
        })
        .build()
        .await
        .unwrap();
    place.pass(Duration::from_secs(10)).await;
    let found = async || runtime.find(OP, idem_runtime::Global, "j1").await.unwrap().unwrap();
    eventually(async || found().await.state == State::Done).await;
    let late = sign_up(&runtime, &Job { id: "j1".into(), provider: provider.clone() }, false).await.unwrap();
    assert_eq!(late, "user done, fax done, mail done by run 2");
    assert_eq!((effects(&provider).join(", "), found().await.attempts), ("fax, mail, user".to_owned(), 2));
}
