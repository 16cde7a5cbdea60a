//! A server under test, as a process of its own.

use std::{net::SocketAddr, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

use crate::{
    Result,
    serve::{LISTENS, Setting},
};

/// It is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    address: SocketAddr,
}

const STARTING: Duration = Duration::from_secs(20);
const STOPPING: Duration = Duration::from_secs(10);

impl Process {
    pub(crate) async fn start(setting: &Setting) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["serve", setting.variant.name(), "--url", &setting.url])
            .args(["--purge-every", &setting.purge_every.as_secs_f64().to_string()])
            .args(["--store-timeout", &setting.store_timeout.as_secs_f64().to_string()])
            .args(["--store-queue", &setting.store_queue.to_string()])
            .stdin(Stdio::piped()) // at whose end it ends
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let line = timeout(STARTING, lines.next_line()).await.map_err(|_| "the server under test does not start")??;
        let address = line.as_deref().and_then(|line| line.strip_prefix(LISTENS));
        let address = address.ok_or("the server under test ended at once; what it says stands above")?.parse()?;
        Ok(Self { child, address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn pid(&self) -> Result<i32> {
        Ok(i32::try_from(self.child.id().ok_or("the server under test has ended")?)?)
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        match timeout(STOPPING, self.child.wait()).await {
            Ok(status) => {
                status?;
            }
            Err(_) => self.child.kill().await?,
        }
        Ok(())
    }
}
