//! A Postgres server of our own: durable settings, a free loopback port, a folder that goes with it.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{Result, machine};

const WHAT_TO_DO: &str = "no Postgres server to measure with: install its programs (Debian: apt-get install postgresql), or \
     leave Postgres out with `--stores sqlite`";

/// It ends when this is dropped or, since the shell that started it waits for the end of its standard input, with this process.
pub(crate) struct Server {
    url: String,
    data: PathBuf,
    shell: Child,
    _folder: TempDir,
}

/// Initialises, starts, waits for the end of its input and stops by the postmaster's id, which is in the data folder. With
/// the server's settings as they come: `fsync` and `synchronous_commit` are on.
const SCRIPT: &str = r#"
trap : INT TERM # of the whole group: this process ends, which ends the input, and the server must be stopped all the same
"$1/initdb" --auth=trust --username=postgres --encoding=UTF8 --locale=C --no-sync --pgdata "$2" >"$2.init" 2>&1 </dev/null ||
  { cat "$2.init"; exit 1; }
"$1/pg_ctl" -D "$2" -l "$2/log" -o "$3" -w start >"$2/start" 2>&1 </dev/null || { cat "$2/log"; exit 1; }
echo started
read -r _
"$1/pg_ctl" -D "$2" -m immediate stop >"$2/stop" 2>&1
rm -rf "${2%/*}""#;

impl Server {
    /// In the folder for temporary files (`TMPDIR`), which should be on the disk that is to be measured.
    pub(crate) fn start() -> Result<Self> {
        let programs = programs().ok_or(WHAT_TO_DO)?;
        let folder = TempDir::new()?;
        if is_root() {
            let owned = Command::new("chown").arg("postgres").arg(folder.path()).status();
            let owned = owned.map_err(|error| format!("chown: {error}"))?;
            if !owned.success() {
                return Err("Postgres does not run as root, and there is no user `postgres` to run it as".into());
            }
        }
        let data = folder.path().join("data");
        // Another process may take it before the server does; then it says so, and a second try finds another.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut shell = as_user()
            .args(["sh", "-c", SCRIPT, "sh"])
            .args([&programs, &data])
            .arg(format!("-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let told = shell.stdout.take().map(BufReader::new).ok_or("no output")?;
        let mut said = Vec::new();
        for line in told.lines() {
            match line?.as_str() {
                "started" => {
                    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable");
                    return Ok(Self { url, data, shell, _folder: folder });
                }
                other => said.push(other.to_owned()),
            }
        }
        Err(format!("Postgres does not start; try again. It says:\n{}", said.join("\n")).into())
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The postmaster, by the file that it writes.
    pub(crate) fn pid(&self) -> Result<i32> {
        let file = self.data.join("postmaster.pid");
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(text.lines().next().unwrap_or_default().trim().parse()?)
    }

    /// The postmaster and all of its processes.
    pub(crate) fn processes(&self) -> Result<Vec<i32>> {
        let postmaster = self.pid()?;
        let mut processes = machine::children(postmaster)?;
        processes.push(postmaster);
        Ok(processes)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait(); // it stops the server first
    }
}

/// Postgres refuses to run as root.
fn as_user() -> Command {
    if is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]);
        command
    } else {
        Command::new("env")
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The newest; Debian keeps the server's programs out of the path, one folder per version.
fn programs() -> Option<PathBuf> {
    let version = |folder: &Path| folder.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let mut debian: Vec<_> =
        fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|it| it.path()).collect();
    debian.sort_by_key(|folder| std::cmp::Reverse(version(folder)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = debian.into_iter().map(|folder| folder.join("bin")).chain(std::env::split_paths(&path));
    folders.into_iter().find(|folder| folder.join("initdb").exists() && folder.join("pg_ctl").exists())
}
