//! Real processes of the example `payments`, over a database that they may share.

use std::{
    env,
    net::SocketAddr,
    ops::Deref,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use idem_runtime::Runtime;
use reqwest::RequestBuilder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, Command},
    time::timeout,
};

use super::{Backend, Place, Seen, eventually, seen};

/// One database, and what the processes over it have in common.
pub(crate) struct Disk {
    place: Place,
}

/// A running `payments`. Killed when dropped.
pub(crate) struct Payments {
    child: Child,
    addr: SocketAddr,
    log: Log,
    client: reqwest::Client,
}

/// All that a process wrote, on either stream.
pub(crate) type Log = Arc<Mutex<String>>;

/// The tokens of the two tenants.
pub(crate) const ACME: &str = "sk_test_acme";
pub(crate) const GLOBEX: &str = "sk_test_globex";

const LOCK_AND_LET_GO: &str = "begin immediate; rollback";
const WAIT_FOR_US: &str = "from pg_stat_activity where datname = current_database() and wait_event = 'advisory'";

impl Disk {
    /// By the backend of this run.
    pub(crate) async fn new() -> Self {
        Self { place: Place::for_programs().await }
    }

    pub(crate) fn over(place: Place) -> Self {
        Self { place }
    }

    /// A process with leases of 2 s, listening.
    pub(crate) async fn start(&self) -> Payments {
        self.start_with_leases_of(Duration::from_secs(2)).await
    }

    pub(crate) async fn start_with_leases_of(&self, lease: Duration) -> Payments {
        Payments::start(self, lease).await
    }

    /// What an operator has: a runtime of the same namespace in another process, this one.
    pub(crate) async fn operator(&self) -> Runtime {
        let store = self.connect().await;
        Runtime::builder(store).namespace("payments").serve_only(|_| false).build().await.unwrap()
    }

    /// What the gateway did, for everybody.
    pub(crate) async fn effects(&self) -> i64 {
        self.count("select count(*) from gateway_effects").await
    }

    /// Waits until the only record is in this state: see `State::code`.
    pub(crate) async fn reaches(&self, state: i64) {
        let sql = format!("select count(*) from idem_key where state = {state}");
        eventually(async || self.count(&sql).await == 1).await;
    }

    /// From now on whoever writes so (as a trigger names it: `insert on ..`) is held there, inside its transaction, for as long as it lives: on
    /// SQLite by a trigger that counts to 10^15, on Postgres by one that wants a lock of ours, for 5 s at most. Not for
    /// tables that the test writes.
    pub(crate) async fn hold(&self, write: &str) {
        self.sql(&match self.backend() {
            Backend::Sqlite => format!(
                "create table hold as with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000) select i from n;
                 create trigger held after {write} begin
                   select sum(a.i * b.i * c.i * d.i * e.i) from hold a, hold b, hold c, hold d, hold e;
                 end"
            ),
            Backend::Postgres | Backend::PgBouncer => format!(
                "create function held() returns trigger language plpgsql
                   as 'begin perform pg_advisory_xact_lock(1); return null; end';
                 create trigger held after {write} for each row execute function held();
                 select pg_advisory_lock(1)"
            ),
        })
        .await;
    }

    /// Waits until somebody is held.
    pub(crate) async fn somebody_is_held(&self) {
        eventually(async || match self.backend() {
            Backend::Sqlite => self.is_locked().await, // nobody else keeps the write lock that long
            Backend::Postgres | Backend::PgBouncer => self.count(&format!("select count(*) {WAIT_FOR_US}")).await > 0,
        })
        .await;
    }

    /// On SQLite: somebody keeps the write lock, for half a second at least.
    pub(crate) async fn is_locked(&self) -> bool {
        let mut connection = self.database().await.acquire().await.unwrap();
        sqlx::raw_sql("pragma busy_timeout = 500").execute(&mut *connection).await.unwrap();
        let locked = sqlx::raw_sql(LOCK_AND_LET_GO).execute(&mut *connection).await.is_err();
        connection.close().await.unwrap();
        locked
    }

    /// The killed are gone at once, as where the server looks after its clients (`client_connection_check_interval`).
    pub(crate) async fn hold_no_more(&self) {
        self.sql(&match self.backend() {
            Backend::Sqlite => "drop trigger held; drop table hold".to_owned(),
            Backend::Postgres | Backend::PgBouncer => format!(
                "select pg_terminate_backend(pid, 5000) {WAIT_FOR_US}; \
                 drop function held cascade; select pg_advisory_unlock(1)"
            ),
        })
        .await;
    }

    /// Waits until nothing is at work any more that the killed have sent.
    pub(crate) async fn the_killed_are_gone(&self) {
        if self.backend() != Backend::Sqlite {
            self.sql(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity \
                 where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()",
            )
            .await;
        }
    }

    /// Stops a process in the middle of its run; on SQLite not while it has the file locked.
    pub(crate) async fn freeze(&self, payments: &Payments) {
        if self.backend() == Backend::Sqlite {
            self.sql(LOCK_AND_LET_GO).await;
        }
        payments.signal(Signal::STOP);
    }
}

impl Deref for Disk {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

impl Payments {
    async fn start(disk: &Disk, lease: Duration) -> Self {
        let lease = lease.as_secs().to_string();
        let (child, addr, log) = spawn("payments", disk, &[("LEASE_SECONDS", &lease)]).await;
        Self { child, addr, log, client: reqwest::Client::builder().no_proxy().build().unwrap() }
    }

    /// What it says when it refuses to start over this.
    pub(crate) async fn refuses(url: &str, set: &[(&str, &str)]) -> String {
        let mut command = Command::new(binary("payments"));
        command.env("ADDR", "127.0.0.1:0").env("DATABASE_URL", url).envs(set.iter().copied()).kill_on_drop(true);
        let output = timeout(Duration::from_secs(20), command.output()).await.expect("it runs").unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// A POST of tenant `acme`.
    pub(crate) fn post(&self, path: &str, key: &str, payment: &Value) -> RequestBuilder {
        self.post_with(&self.client, path, key, payment)
    }

    /// As [`post`](Self::post), over the connections of this client.
    pub(crate) fn post_with(&self, client: &reqwest::Client, path: &str, key: &str, payment: &Value) -> RequestBuilder {
        client.post(self.url(path)).bearer_auth(ACME).header("idempotency-key", key).json(payment)
    }

    /// As [`post`](Self::post), and its answer.
    pub(crate) async fn pay(&self, path: &str, key: &str, payment: &Value) -> Seen {
        seen(self.post(path, key, payment).send().await.unwrap()).await
    }

    /// As [`pay`](Self::pay), by the tenant of this token.
    pub(crate) async fn pay_as(&self, token: &str, path: &str, key: &str, payment: &Value) -> Seen {
        let post = self.client.post(self.url(path)).bearer_auth(token).header("idempotency-key", key).json(payment);
        seen(post.send().await.unwrap()).await
    }

    /// As [`pay`](Self::pay), on a task of its own.
    pub(crate) fn pay_meanwhile(
        &self,
        path: &str,
        key: &str,
        payment: &Value,
    ) -> tokio::task::JoinHandle<Option<Seen>> {
        let post = self.post(path, key, payment);
        tokio::spawn(async move { Some(seen(post.send().await.ok()?).await) })
    }

    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Every effect that the API lists for a tenant.
    pub(crate) async fn listing(&self, path: &str, token: &str) -> Vec<Value> {
        let response = self.client.get(self.url(path)).bearer_auth(token).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let mut listing: Value = response.json().await.unwrap();
        serde_json::from_value(listing["items"].take()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = self.child.id().expect("still running");
        kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), signal).unwrap();
    }

    /// `kill -9`; returns when it is dead.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// How it ended by itself; fails after 20 s.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        timeout(Duration::from_secs(20), self.child.wait()).await.expect("still running").unwrap()
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }
}

/// A process of the example `name` over the disk, listening: with its address, and what it writes.
pub(crate) async fn spawn(name: &str, disk: &Disk, set: &[(&str, &str)]) -> (Child, SocketAddr, Log) {
    let mut command = Command::new(binary(name));
    if disk.backend() == Backend::PgBouncer {
        command.env("DATABASE_POOLER", "transaction");
    }
    let mut child = command
        .env("ADDR", "127.0.0.1:0")
        .env("DATABASE_URL", disk.url())
        .envs(set.iter().copied())
        .current_dir(disk.file("."))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (log, listens) = (Log::default(), format!("{name} listens on http://"));
    keep(child.stdout.take().unwrap(), &log);
    keep(child.stderr.take().unwrap(), &log);
    let started = async {
        while !log.lock().unwrap().contains(&listens) && child.try_wait().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), started).await.unwrap_or_else(|_| panic!("{name} does not listen"));
    let addr = {
        let log = log.lock().unwrap();
        let line = log.lines().find_map(|line| line.strip_prefix(&*listens));
        line.unwrap_or_else(|| panic!("{name} did not start:\n{log}")).parse().unwrap()
    };
    (child, addr, log)
}

fn keep(stream: impl AsyncRead + Unpin + Send + 'static, log: &Log) {
    let log = Arc::clone(log);
    tokio::spawn(async move {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let mut log = log.lock().unwrap();
            log.push_str(&line);
            log.push('\n');
        }
    });
}

/// Where cargo puts it: beside the folder of this test's own binary.
pub(crate) fn binary(name: &str) -> PathBuf {
    let deps = env::current_exe().unwrap();
    let binary = deps.ancestors().nth(2).unwrap().join(name);
    assert!(binary.exists(), "no {}: run `tests/run`, or `cargo build -p idem-examples` first", binary.display());
    binary
}

/// 19.99 EUR on this card.
pub(crate) fn card(card: &str) -> Value {
    json!({"amount": 1999, "currency": "EUR", "card": card})
}

/// As [`card`], for `tok_visa`; the gateway takes this long before it acts.
pub(crate) fn slow(delay: Duration) -> Value {
    json!({"amount": 1999, "currency": "EUR", "card": "tok_visa", "delay_ms": u64::try_from(delay.as_millis()).unwrap()})
}
