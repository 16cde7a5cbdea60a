//! Real processes of the example `jobs`, over one database.

use std::{process::Stdio, time::Duration};

use tokio::{
    process::{Child, Command},
    time::timeout,
};

use super::{Place, process::binary};

/// A running worker of the example `jobs`. Killed when dropped.
pub(crate) struct Worker(Child);

/// A line of `jobs effects`.
pub(crate) struct Job {
    pub(crate) id: String,
}

impl Worker {
    /// With leases of 2 s.
    pub(crate) fn start(place: &Place) -> Self {
        Self(Self::command(place).arg("work").stdout(Stdio::null()).spawn().unwrap())
    }

    /// What a command prints that ends by itself.
    pub(crate) async fn run(place: &Place, arguments: &[&str]) -> String {
        let output = Self::command(place).args(arguments).stderr(Stdio::piped()).output();
        let output = timeout(Duration::from_secs(60), output).await.expect("it ends").unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn command(place: &Place) -> Command {
        let mut command = Command::new(binary("jobs"));
        command.env("DATABASE_URL", place.url()).env("LEASE_SECONDS", "2").stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// `kill -9`; returns when it is dead.
    pub(crate) async fn kill(mut self) {
        self.0.kill().await.unwrap();
    }
}

impl Job {
    pub(crate) fn read(line: &str) -> Self {
        let (id, charge) = line.split_once(' ').unwrap();
        assert!(charge.starts_with("ch_"), "{line}");
        Self { id: id.to_owned() }
    }
}
