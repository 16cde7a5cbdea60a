//! Restate: its server, and a service on its TypeScript SDK, both from npm.

use std::{
    net::{SocketAddr, TcpListener},
    path::Path,
    process::Stdio,
    time::Duration,
};

use tokio::{
    process::{Child, Command},
    time::sleep,
};

use super::{Row, output};
use crate::{
    Result,
    cell::Pace,
    load::{self, Client, Keys, Load, Request, percentile},
};

const SERVICE: &str = include_str!("../../peers/restate.mjs");
const WHAT_TO_DO: &str = "`peers` needs Node.js 20 or newer with npm, and a way to its registry";
const STARTING: u32 = 300;

/// Both are killed when this is dropped.
pub(super) struct Restate {
    pub(super) version: String,
    ingress: SocketAddr,
    _processes: [Child; 2],
}

impl Restate {
    pub(super) async fn start(folder: &Path) -> Result<Self> {
        std::fs::write(folder.join("package.json"), "{}")?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "@restatedev/restate-server", "@restatedev/restate-sdk"]);
        output(npm.current_dir(folder), WHAT_TO_DO).await?;
        let [ingress, admin, node, service] = [free()?, free()?, free()?, free()?];
        // The program itself: npm's own starter would leave it behind.
        let program = std::fs::read_dir(folder.join("node_modules/@restatedev"))?
            .flatten()
            .map(|package| package.path().join("bin/restate-server"))
            .find(|program| program.exists())
            .ok_or("npm has installed no `restate-server` for this machine")?;
        let version = output(Command::new(&program).arg("--version"), WHAT_TO_DO).await?;
        let version = version.split_whitespace().nth(1).unwrap_or("?").to_owned();
        let server = Command::new(&program)
            .env("RESTATE_BASE_DIR", folder.join("restate"))
            .env("RESTATE_DISABLE_TELEMETRY", "true")
            .env("RESTATE_LOG_FILTER", "warn")
            .env("RESTATE_BIND_ADDRESS", node.to_string())
            .env("RESTATE_INGRESS__BIND_ADDRESS", ingress.to_string())
            .env("RESTATE_ADMIN__BIND_ADDRESS", admin.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        std::fs::write(folder.join("restate.mjs"), SERVICE)?;
        let sdk = Command::new("node")
            .arg("restate.mjs")
            .arg(service.port().to_string())
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        register(admin, service).await?;
        let restate = Self { version, ingress, _processes: [server, sdk] };
        restate.answers().await?;
        Ok(restate)
    }

    /// Waits until the first call is answered.
    async fn answers(&self) -> Result<()> {
        let mut client = Client::new(self.ingress);
        for _ in 0..STARTING {
            if client.send(request().with_key(load::unique())).await.is_ok_and(|reply| reply.status == 200) {
                return Ok(());
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err("Restate does not answer its workflow".into())
    }

    pub(super) async fn drive(&self, pace: Pace) -> Result<Row> {
        let (keys, request) = (Keys::Unique, request());
        let load = Load { address: self.ingress, connections: pace.connections, keys, warm_up: pace.warm_up, request };
        let (driven, ()) = load::closed(&load, sleep(pace.measure), || Ok(())).await?;
        if let Some((status, count)) = driven.statuses.iter().find(|(status, _)| **status != 200) {
            return Err(format!("Restate answered {status} to {count} requests").into());
        }
        let latency = |share| percentile(&driven.latencies, share);
        Ok([driven.answers as f64 / driven.seconds, latency(0.5), latency(0.99)])
    }
}

fn request() -> Request {
    Request::to("/bench/workflow", Duration::ZERO)
}

/// Tells the server where the service is, as soon as it listens.
async fn register(admin: SocketAddr, service: SocketAddr) -> Result<()> {
    let body = format!(r#"{{"uri":"http://{service}"}}"#);
    let head = "POST /deployments HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length:";
    let request = format!("{head} {}\r\n\r\n{body}", body.len());
    let mut client = Client::new(admin);
    for _ in 0..STARTING {
        if client.send(request.as_bytes()).await.is_ok_and(|reply| reply.status < 300) {
            return Ok(());
        }
        sleep(Duration::from_millis(100)).await;
    }
    Err("Restate's server does not take the service".into())
}

fn free() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
