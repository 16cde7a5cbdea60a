//! PgBouncer in front of a server of the test's own, set up as `tests/postgres` does it for the shared one.

use std::{
    fs,
    io::Write,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::server::{self, Server};

/// Ends when this is dropped or the process ends, as [`Server`] does.
pub(crate) struct Bouncer {
    pub(crate) url: String,
    shell: Child,
    _folder: TempDir,
}

/// Each line that it reads is a crash, and another one; at the end of them all ends.
const SCRIPT: &str = r#"PATH=$PATH:/usr/sbin
    pgbouncer -q "$1" &
    while read -r _; do kill -KILL $!; wait $!; pgbouncer -q "$1" & done
    kill -INT $!; wait"#;

impl Bouncer {
    pub(crate) fn start(server: &Server) -> Self {
        let folder = TempDir::new().unwrap();
        let [users, ini, log] = ["users", "ini", "log"].map(|name| folder.path().join(name));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let behind = server.url.split(['/', ':', '?']).find(|part| part.parse::<u16>().is_ok()).unwrap();
        fs::write(&users, "\"postgres\" \"\"\n").unwrap();
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={behind}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = transaction\n\
             ignore_startup_parameters = extra_float_digits\nserver_login_retry = 1\nlogfile = {}\n",
            users.display(),
            log.display()
        );
        fs::write(&ini, settings).unwrap();
        if server::is_root() {
            assert!(Command::new("chown").args(["-R", "postgres"]).arg(folder.path()).status().unwrap().success());
        }
        drop(listener); // whose port it was
        let shell = server::as_user(Path::new("sh"))
            .args(["-c", SCRIPT, "sh"])
            .arg(&ini)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let said = || fs::read_to_string(&log).unwrap_or_default();
            assert!(started.elapsed() < Duration::from_secs(10), "PgBouncer does not listen: {}", said());
            std::thread::sleep(Duration::from_millis(20));
        }
        let url = server.url.replace(&format!(":{behind}/"), &format!(":{port}/"));
        Self { url, shell, _folder: folder }
    }

    /// It dies, and all its connections with it; another one is started in its place.
    pub(crate) fn crash(&self) {
        self.shell.stdin.as_ref().unwrap().write_all(b"\n").unwrap();
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
