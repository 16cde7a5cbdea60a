//! README.md says what happens: every ```` ```console ```` session in it is run, and must print what it shows.
//!
//! A session is what a terminal would show: lines that begin with `$ ` are commands (a line after one that ends in `\`
//! belongs to it), the lines below are their output. All sessions run in one bash, in an empty folder, with a fresh
//! `payments` in the place of `127.0.0.1:3000`, a fresh `webhooks` and `provisioning` in those of `127.0.0.1:3001` and
//! `:3002`, and the `jobs` and `payments` that this test was built with in those of `target/debug/jobs` and
//! `target/debug/payments`, the latter on the database of the one that runs.
//!
//! In an output, `…` and `<words>` stand for any text within a line, a line `…` for any number of lines, an id
//! (`ch_…`, `po_…`, `or_…`, `do_…` or 32 hex digits) for some id, everywhere the same, and a date for some date.

mod matching;
mod session;

use std::process::Stdio;

use tokio::process::Command;

use self::{
    matching::Output,
    session::{Step, sessions},
};
use crate::support::{
    Backend,
    process::{Disk, binary, spawn},
};

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
const LISTENS: &str = "127.0.0.1:3000";
const RECEIVES: &str = "127.0.0.1:3001";
const PROVISIONS: &str = "127.0.0.1:3002";
const JOBS: &str = "target/debug/jobs";
const PAYMENTS: &str = "target/debug/payments";
/// Between the outputs of two commands.
const MARK: &str = "== end of command ==";

#[tokio::test]
async fn scenario_02_the_readme_s_sessions_print_what_they_show() {
    assert!(is_there("bash", "--version").await, "this test needs bash");
    assert!(is_there("curl", "--version").await, "this test needs curl: on Debian, `apt-get install curl`");
    assert!(is_there("openssl", "version").await, "this test needs openssl: on Debian, `apt-get install openssl`");
    let steps: Vec<Step> = sessions(&std::fs::read_to_string(README).unwrap()).into_iter().flatten().collect();
    assert!(!steps.is_empty(), "README.md shows no ```console session");
    let disk = Disk::new().await;
    let payments = disk.start().await;
    let addr = payments.addr().to_string();
    let (_webhooks, receives, _) = spawn("webhooks", &disk, &[]).await;
    let (_provisioning, provisions, _) = spawn("provisioning", &disk, &[]).await;
    let jobs = binary("jobs").display().to_string();
    let places = [
        (LISTENS, addr),
        (RECEIVES, receives.to_string()),
        (PROVISIONS, provisions.to_string()),
        (JOBS, jobs),
        (PAYMENTS, operator(&disk)),
    ];

    let printed = run(&steps, &disk, &places).await;
    let mut output = Output::default();
    for (step, printed) in steps.iter().zip(printed) {
        let printed = places.iter().fold(printed, |printed, (shown, real)| printed.replace(real, shown));
        assert!(
            output.matches(&step.output, &printed),
            "README.md, line {}:\n$ {}\n\nshows:\n{}\n\nbut this is printed:\n{printed}\n\nserver:\n{}",
            step.line,
            step.command,
            step.output,
            payments.log(),
        );
    }
}

/// `payments` on the database of the one that runs.
fn operator(disk: &Disk) -> String {
    let pooler = if disk.backend() == Backend::PgBouncer { "DATABASE_POOLER=transaction " } else { "" };
    format!("{pooler}DATABASE_URL='{}' {}", disk.url(), binary("payments").display())
}

/// What each command printed.
async fn run(steps: &[Step], disk: &Disk, places: &[(&str, String)]) -> Vec<String> {
    let folder = disk.file("session");
    std::fs::create_dir(&folder).unwrap();
    let mut script = "exec 2>&1\n".to_owned();
    for step in steps {
        let command = places.iter().fold(step.command.clone(), |command, (shown, real)| command.replace(shown, real));
        script += &format!("{command}\nprintf '\\n{MARK}\\n'\n");
    }
    let bash = Command::new("bash")
        .args(["--noprofile", "--norc", "-c", &script])
        .env("LC_ALL", "C.UTF-8")
        .env("no_proxy", "*")
        .current_dir(folder)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output =
        tokio::time::timeout(std::time::Duration::from_secs(120), bash).await.expect("a session hangs").unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let parts: Vec<String> = printed.split(&format!("\n{MARK}\n")).map(str::to_owned).collect();
    assert_eq!(parts.len(), steps.len() + 1, "not every command was run:\n{printed}");
    parts
}

async fn is_there(program: &str, version: &str) -> bool {
    let run = Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status().await;
    run.is_ok_and(|status| status.success())
}
