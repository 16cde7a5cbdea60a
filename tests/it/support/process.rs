//! Real processes of the example `payments`, over a file that they may share.

use std::{
    env,
    net::SocketAddr,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use idem_runtime::{Runtime, SqliteStore};
use reqwest::RequestBuilder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, Command},
    sync::OnceCell,
    time::timeout,
};

use super::{Seen, eventually, seen};

/// A folder with one database, and what the processes over it have in common.
pub(crate) struct Disk {
    folder: TempDir,
    database: OnceCell<SqlitePool>,
}

/// A running `payments`. Killed when dropped.
pub(crate) struct Payments {
    child: Child,
    addr: SocketAddr,
    log: Log,
    client: reqwest::Client,
}

/// All that a process wrote, on either stream.
type Log = Arc<Mutex<String>>;

/// The tokens of the two tenants.
pub(crate) const ACME: &str = "sk_test_acme";
pub(crate) const GLOBEX: &str = "sk_test_globex";

const LISTENS: &str = "payments listens on http://";
const LOCK_AND_LET_GO: &str = "begin immediate; rollback";

impl Disk {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().unwrap(), database: OnceCell::new() }
    }

    /// A process with leases of 2 s, listening.
    pub(crate) async fn start(&self) -> Payments {
        Payments::start(&self.folder, &self.url()).await
    }

    /// What an operator has: a runtime of the same namespace in another process, this one.
    pub(crate) async fn operator(&self) -> Runtime {
        let store = SqliteStore::connect(&self.url()).await.unwrap();
        Runtime::builder(store).namespace("payments").serve_only(|_| false).build().await.unwrap()
    }

    /// Lets `by` pass for every record, by the database's clock.
    pub(crate) async fn pass(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap();
        self.sql(&format!(
            "update idem_key set lease_until = lease_until - {by}, created_at = created_at - {by}, \
             expires_at = expires_at - {by}, guard_until = guard_until - {by}"
        ))
        .await;
    }

    pub(crate) async fn sql(&self, sql: &str) {
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(self.database().await).await.unwrap();
    }

    /// One integer.
    pub(crate) async fn count(&self, sql: &str) -> i64 {
        sqlx::query_scalar(sqlx::AssertSqlSafe(sql.to_owned())).fetch_one(self.database().await).await.unwrap()
    }

    /// What the gateway did, for everybody.
    pub(crate) async fn effects(&self) -> i64 {
        self.count("select count(*) from gateway_effects").await
    }

    pub(crate) async fn records(&self) -> i64 {
        self.count("select count(*) from idem_key").await
    }

    /// Waits until the only record is in this state: see `State::code`.
    pub(crate) async fn reaches(&self, state: i64) {
        let sql = format!("select count(*) from idem_key where state = {state}");
        eventually(async || self.count(&sql).await == 1).await;
    }

    /// From now on whoever inserts into this table is held there, inside its transaction, for as long as it lives:
    /// a trigger that counts to 10^15. Not for tables that the test writes.
    pub(crate) async fn hold_inserts_into(&self, table: &str) {
        self.sql(&format!(
            "create table hold as with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000) select i from n;
             create trigger held after insert on {table} begin
               select sum(a.i * b.i * c.i * d.i * e.i) from hold a, hold b, hold c, hold d, hold e;
             end"
        ))
        .await;
    }

    /// Waits until somebody is held: nobody else keeps the write lock that long.
    pub(crate) async fn somebody_is_held(&self) {
        eventually(async || {
            let mut connection = self.database().await.acquire().await.unwrap();
            sqlx::raw_sql("pragma busy_timeout = 500").execute(&mut *connection).await.unwrap();
            let locked = sqlx::raw_sql(LOCK_AND_LET_GO).execute(&mut *connection).await.is_err();
            connection.close().await.unwrap();
            locked
        })
        .await;
    }

    pub(crate) async fn hold_no_more(&self) {
        self.sql("drop trigger held; drop table hold").await;
    }

    /// Gives every lease this much more, so that a slow machine does not end it before the test has looked.
    pub(crate) async fn prolong_leases(&self, by: Duration) {
        self.sql(&format!("update idem_key set lease_until = lease_until + {}", by.as_millis())).await;
    }

    /// Stops a process in the middle of its run, but not while it has the file locked.
    pub(crate) async fn freeze(&self, payments: &Payments) {
        self.sql(LOCK_AND_LET_GO).await;
        payments.signal(Signal::STOP);
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn url(&self) -> String {
        format!("sqlite://{}", self.file("payments.db").display())
    }

    async fn database(&self) -> &SqlitePool {
        let connect = || SqlitePool::connect_with(self.url().parse::<SqliteConnectOptions>().unwrap());
        self.database.get_or_try_init(connect).await.unwrap()
    }
}

impl Payments {
    async fn start(folder: &TempDir, url: &str) -> Self {
        let mut child = Command::new(binary())
            .env("ADDR", "127.0.0.1:0")
            .env("DATABASE_URL", url)
            .env("LEASE_SECONDS", "2")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let log = Log::default();
        keep(child.stdout.take().unwrap(), &log);
        keep(child.stderr.take().unwrap(), &log);
        let started = async {
            while !log.lock().unwrap().contains(LISTENS) && child.try_wait().unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(20), started).await.expect("payments does not listen");
        let addr = {
            let log = log.lock().unwrap();
            let line = log.lines().find_map(|line| line.strip_prefix(LISTENS));
            line.unwrap_or_else(|| panic!("payments did not start:\n{log}")).parse().unwrap()
        };
        Self { child, addr, log, client: reqwest::Client::builder().no_proxy().build().unwrap() }
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
fn binary() -> PathBuf {
    let deps = env::current_exe().unwrap();
    let binary = deps.ancestors().nth(2).unwrap().join("payments");
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
