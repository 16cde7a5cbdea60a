//! The server for tests, here and in `tests/it`: the one that `IDEM_TEST_POSTGRES` names, or one that is started here and
//! goes with the process.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use tempfile::TempDir;

const WHAT_TO_DO: &str = "no Postgres for the tests: set IDEM_TEST_POSTGRES to the URL of a database that may be filled, \
     or run `tests/postgres run cargo test …`, or install the server (Debian: apt-get install postgresql)";

/// The URL of the server that all tests of this process share.
pub(crate) fn shared() -> &'static str {
    static URL: OnceLock<String> = OnceLock::new();
    static SERVER: OnceLock<Server> = OnceLock::new();
    URL.get_or_init(|| {
        std::env::var("IDEM_TEST_POSTGRES")
            .unwrap_or_else(|_| SERVER.get_or_init(|| Server::start(&["fsync=off"])).url.clone())
    })
}

/// A server of its own, for tests that stop it or set it up in another way. It ends when this is dropped or, as a
/// `static` never is, when the process ends: the shell that started it waits for the end of its standard input.
pub(crate) struct Server {
    pub(crate) url: String,
    programs: PathBuf,
    data: PathBuf,
    options: String,
    shell: Child,
    _folder: TempDir,
}

impl Server {
    /// Initialises and starts it. `settings` as for `postgres -c`.
    pub(crate) fn start(settings: &[&str]) -> Self {
        Self::prepare(settings, |_| {})
    }

    /// One that only follows: with no primary to follow, but it does not know that.
    pub(crate) fn standby(settings: &[&str]) -> Self {
        Self::prepare(settings, |data| fs::write(data.join("standby.signal"), "").unwrap())
    }

    fn prepare(settings: &[&str], change: impl FnOnce(&Path)) -> Self {
        let programs = programs().expect(WHAT_TO_DO);
        let folder = TempDir::new().unwrap();
        let data = folder.path().join("data");
        if is_root() {
            let owned = Command::new("chown").arg("postgres").arg(folder.path()).status();
            assert!(owned.unwrap().success(), "{WHAT_TO_DO}");
        }
        let initialise = as_user(&programs.join("initdb"))
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync", "--pgdata"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(initialise.status.success(), "{}", String::from_utf8_lossy(&initialise.stderr));
        change(&data);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut options =
            format!("-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200");
        for setting in settings {
            options.push_str(&format!(" -c {setting}"));
        }
        // `pg_ctl stop` goes by the postmaster's id in the data folder, so a server restarted meanwhile is found too.
        let script = r#"
            "$1/pg_ctl" -D "$2" -l "$2/log" -o "$3" -w start >"$2/start" 2>&1 </dev/null || { cat "$2/log"; exit 1; }
            echo started
            read -r _
            "$1/pg_ctl" -D "$2" -m immediate stop >"$2/stop" 2>&1
            rm -rf "${2%/*}""#;
        let mut shell = as_user(Path::new("sh"))
            .args(["-c", script, "sh"])
            .args([&programs, &data])
            .arg(&options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "started", "the server does not start");
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable");
        Self { url, programs, data, options, shell, _folder: folder }
    }

    /// As after a crash: no checkpoint, all sessions cut off.
    pub(crate) fn restart(&self) {
        self.stop();
        self.start_again();
    }

    /// As [`restart`](Self::restart), and stays away.
    pub(crate) fn stop(&self) {
        self.control(&["-m", "immediate", "stop"]);
    }

    pub(crate) fn start_again(&self) {
        self.control(&["-o", &self.options, "start"]);
    }

    fn control(&self, action: &[&str]) {
        let mut control = as_user(&self.programs.join("pg_ctl"));
        let control = control.args(action).args(["-w", "-D"]).arg(&self.data).arg("-l").arg(self.data.join("log"));
        assert!(control.stdout(Stdio::null()).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// Postgres refuses to run as root.
pub(crate) fn as_user(program: &Path) -> Command {
    let mut command = if is_root() { Command::new("runuser") } else { Command::new("env") };
    if is_root() {
        command.args(["-u", "postgres", "--"]);
    }
    command.arg(program).current_dir("/");
    command
}

pub(crate) fn is_root() -> bool {
    static ROOT: OnceLock<bool> = OnceLock::new();
    *ROOT.get_or_init(|| Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n"))
}

/// Debian keeps the server's programs out of the path, one folder per version.
fn programs() -> Option<PathBuf> {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|it| it.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = debian.chain(std::env::split_paths(&path)).collect();
    folders.retain(|folder| folder.join("initdb").exists() && folder.join("pg_ctl").exists());
    folders.into_iter().next()
}
