//! Where the records of a test are, and the SQL by which it looks at them and moves their time.

use std::{
    env,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use idem_runtime::{PostgresStore, RecordId, SqliteStore, store::Store};
use sqlx::{AnyPool, AssertSqlSafe, PgPool, any::AnyPoolOptions};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use super::{bouncer::Bouncer, proxy::Proxy, server::Server};

/// The kind of database. Every test here runs on each: `tests/run` runs the binary once per backend. Tests in a module
/// `on_sqlite` or `on_postgres` are about one, choose it themselves and are run once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
    /// Postgres behind PgBouncer in transaction mode, without prepared statements.
    PgBouncer,
}

impl Backend {
    /// By `IDEM_TEST_BACKEND`; SQLite if it is not set.
    pub(crate) fn of_this_run() -> Self {
        match env::var("IDEM_TEST_BACKEND").as_deref() {
            Ok("sqlite") | Err(_) => Self::Sqlite,
            Ok("postgres") => Self::Postgres,
            Ok("pgbouncer") => Self::PgBouncer,
            Ok(other) => panic!("IDEM_TEST_BACKEND is `{other}`, not `sqlite`, `postgres` or `pgbouncer`"),
        }
    }

    /// The table with `headers` and `body` of answers; without headers there is none.
    pub(crate) fn answers(self) -> &'static str {
        match self {
            Self::Sqlite => "idem_response",
            Self::Postgres | Self::PgBouncer => "idem_key",
        }
    }

    /// What a trigger says for: a run ends, with its answer.
    pub(crate) fn answering(self) -> &'static str {
        match self {
            Self::Sqlite => "insert on idem_response",
            Self::Postgres | Self::PgBouncer => "update of headers on idem_key",
        }
    }
}

/// A database, or a schema in one, of the test's own. What is on the shared server stays until that goes.
pub(crate) struct Place {
    backend: Backend,
    folder: TempDir,
    /// For what is tested, and for the test.
    url: String,
    direct: String,
    schema: String,
    database: OnceCell<AnyPool>,
}

impl Place {
    /// For stores in this process. On a server, a schema in the database that all tests share.
    pub(crate) fn new() -> Self {
        Self::of(Backend::of_this_run())
    }

    /// As [`new`](Self::new), for a test that chooses.
    pub(crate) fn of(backend: Backend) -> Self {
        if backend == Backend::Sqlite { Self::sqlite() } else { Self::shared(backend, unique(), None) }
    }

    pub(crate) fn sqlite() -> Self {
        let folder = TempDir::new().unwrap();
        let url = format!("sqlite://{}/payments.db", folder.path().display());
        Self::made(Backend::Sqlite, folder, [url.clone(), url], String::new())
    }

    /// For programs, which choose the schema themselves. On a server, a database of its own.
    pub(crate) async fn for_programs() -> Self {
        Self::for_programs_on(Backend::of_this_run()).await
    }

    /// As [`for_programs`](Self::for_programs), for a test that chooses.
    pub(crate) async fn for_programs_on(backend: Backend) -> Self {
        if backend == Backend::Sqlite {
            return Self::sqlite();
        }
        let name = unique();
        let all = Self::shared(backend, "public".to_owned(), None);
        all.sql(&format!("create database {name}")).await;
        Self::shared(backend, "idem".to_owned(), Some(&name))
    }

    /// The only one on a server of the test's own, and behind this pooler if there is one.
    pub(crate) fn on(server: &Server, pooler: Option<&Bouncer>) -> Self {
        let backend = if pooler.is_some() { Backend::PgBouncer } else { Backend::Postgres };
        let urls = [pooler.map_or(&server.url, |pooler| &pooler.url), &server.url].map(String::clone);
        Self::made(backend, TempDir::new().unwrap(), urls, "idem".to_owned())
    }

    /// What is tested goes by way of this proxy; the test itself does not.
    pub(crate) fn through(mut self, proxy: &Proxy) -> Self {
        self.url = proxy.url(&self.url);
        self
    }

    fn shared(backend: Backend, schema: String, database: Option<&str>) -> Self {
        let urls = ["IDEM_TEST_PGBOUNCER", "IDEM_TEST_POSTGRES"].map(|name| {
            let url = env::var(name).unwrap_or_else(|_| panic!("no {name}: run `tests/postgres run cargo …`"));
            database.map_or(url.clone(), |database| url.replace("/postgres?", &format!("/{database}?")))
        });
        let [pooler, direct] = urls;
        let url = if backend == Backend::PgBouncer { pooler } else { direct.clone() };
        Self::made(backend, TempDir::new().unwrap(), [url, direct], schema)
    }

    fn made(backend: Backend, folder: TempDir, [url, direct]: [String; 2], schema: String) -> Self {
        Self { backend, folder, url, direct, schema, database: OnceCell::new() }
    }

    pub(crate) fn backend(&self) -> Backend {
        self.backend
    }

    /// For a program under test.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// In a folder of the test's own.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A store as another process would make it; the tables may be missing.
    pub(crate) async fn connect(&self) -> Arc<dyn Store> {
        if self.backend == Backend::Sqlite { Arc::new(self.in_file().await) } else { Arc::new(self.on_server()) }
    }

    pub(crate) async fn migrate(&self) {
        if self.backend == Backend::Sqlite {
            self.in_file().await.migrate().await.unwrap();
        } else {
            self.on_server().migrate().await.unwrap();
        }
    }

    async fn in_file(&self) -> SqliteStore {
        SqliteStore::connect(&self.url).await.unwrap()
    }

    fn on_server(&self) -> PostgresStore {
        self.store_for(&PgPool::connect_lazy(&self.url).unwrap())
    }

    /// A store of this place for bodies that use this pool.
    pub(crate) fn store_for(&self, pool: &PgPool) -> PostgresStore {
        let store = PostgresStore::new(pool).with_schema(&self.schema).unwrap();
        if self.backend == Backend::PgBouncer { store.with_simple_protocol() } else { store }
    }

    /// Lets `by` pass for every record, by the database's clock.
    pub(crate) async fn pass(&self, by: Duration) {
        let by = self.span(by);
        self.sql(&records_back(&by)).await;
        if self.backend != Backend::Sqlite {
            self.sql(&format!(
                "update idem_meta set noted_until = noted_until - {by}, looked_back = looked_back - {by}"
            ))
            .await;
        }
    }

    /// Moves the database's clock ahead by so many hours at once, or back: as [`pass`](Self::pass), and the last purge is
    /// longer ago too.
    pub(crate) async fn jump(&self, hours: i64) {
        let by = self.hours(hours);
        let (begin, commit) = if self.backend == Backend::Sqlite { ("begin immediate;", "; commit") } else { ("", "") };
        let meta = format!("update idem_meta set purged_at = purged_at - {by}");
        self.sql(&format!("{begin} {}; {meta}{commit}", records_back(&by))).await;
    }

    /// Records in this state whose windows end so many seconds from now.
    pub(crate) async fn fill(&self, op: &str, records: u32, state: u8, seconds: i64) {
        let (id, digest, day) = match self.backend {
            Backend::Sqlite => ("randomblob(16)", "zeroblob(32)", "86400000"),
            Backend::Postgres | Backend::PgBouncer => {
                ("gen_random_uuid()", "decode(repeat('00', 32), 'hex')", "interval '1 day'")
            }
        };
        let at = match self.backend {
            Backend::Sqlite => format!("unixepoch() * 1000 + {seconds} * 1000"),
            Backend::Postgres | Backend::PgBouncer => format!("now() + {seconds} * interval '1 second'"),
        };
        self.sql(&format!(
            "with recursive n (n) as (select 1 union all select n + 1 from n where n < {records})
             insert into idem_key (kid, scope, op, state, reason, fence, attempt, attempts, epoch, fp_alg, fp,
                                   lease_until, created_at, expires_at, guard_until)
             select {id}, 'acme', '{op}', {state}, 0, 1, {id}, 1, 0, 1, {digest}, at, at - {day}, at, at
               from n, (select {at} as at) as t"
        ))
        .await;
    }

    /// Gives every lease this much more.
    pub(crate) async fn prolong_leases(&self, by: Duration) {
        self.sql(&format!("update idem_key set lease_until = lease_until + {}", self.span(by))).await;
    }

    pub(crate) async fn sql(&self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(self.database().await).await.unwrap();
    }

    /// One integer.
    pub(crate) async fn count(&self, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(self.database().await).await.unwrap()
    }

    /// The full name of a table of the test's own.
    pub(crate) fn table(&self, name: &str) -> String {
        if self.backend == Backend::Sqlite { name.to_owned() } else { format!("{}.{name}", self.schema) }
    }

    /// How many records there are.
    pub(crate) async fn records(&self) -> i64 {
        self.count("select count(*) from idem_key").await
    }

    /// Changes with every write to the records by anybody else, even one that changes nothing or only locks a row.
    pub(crate) async fn version(&self) -> i64 {
        self.count(match self.backend {
            Backend::Sqlite => "select data_version from pragma_data_version",
            Backend::Postgres | Backend::PgBouncer => {
                "select hashtext(string_agg(at, ' ' order by at) || (select last_value from idem_fence)) from (
                   select concat(ctid, xmin, ' ', xmax) at from idem_key
                   union all select concat(ctid, xmin, ' ', xmax) from idem_step
                   union all select concat(ctid, xmin, ' ', xmax) from idem_order) as row"
            }
        })
        .await
    }

    /// All that is stored, as bytes in which printable ASCII stands as it is.
    pub(crate) async fn dump(&self) -> Vec<u8> {
        if self.backend == Backend::Sqlite {
            let files = std::fs::read_dir(self.folder.path()).unwrap();
            return files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
        }
        let dump = "select string_agg(line, ' ') from (
            select concat(k, encode(k.fp, 'escape'), encode(k.headers, 'escape'), encode(k.body, 'escape')) line from idem_key k
            union all select concat(s, encode(s.input, 'escape'), encode(s.result, 'escape')) from idem_step s
            union all select o::text from idem_order o union all select l::text from idem_link l union all select a::text from idem_audit a) as lines";
        sqlx::query_scalar::<_, String>(dump).fetch_one(self.database().await).await.unwrap().into_bytes()
    }

    /// A length of time, as SQL that can be added to a column of time.
    pub(crate) fn span(&self, by: Duration) -> String {
        match self.backend {
            Backend::Sqlite => by.as_millis().to_string(),
            Backend::Postgres | Backend::PgBouncer => format!("interval '{} milliseconds'", by.as_millis()),
        }
    }

    /// As [`span`](Self::span), of either sign.
    pub(crate) fn hours(&self, hours: i64) -> String {
        match self.backend {
            Backend::Sqlite => format!("({})", hours * 3_600_000),
            Backend::Postgres | Backend::PgBouncer => format!("interval '{hours} hours'"),
        }
    }

    /// A record's id, as SQL.
    pub(crate) fn id(&self, id: RecordId) -> String {
        let quoted = format!("'{id}'");
        if self.backend == Backend::Sqlite { format!("x{quoted}") } else { quoted }
    }

    /// Bytes, as SQL.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> String {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        if self.backend == Backend::Sqlite { format!("x'{hex}'") } else { format!("'\\x{hex}'::bytea") }
    }

    /// An expression of bytes and more bytes, as SQL.
    pub(crate) fn joined(&self, first: &str, then: &[u8]) -> String {
        let both = format!("{first} || {}", self.bytes(then));
        if self.backend == Backend::Sqlite { format!("cast({both} as blob)") } else { both }
    }

    /// One connection, which is none of the store's.
    pub(crate) async fn database(&self) -> &AnyPool {
        let connect = async || {
            sqlx::any::install_default_drivers();
            let path = if self.backend == Backend::Sqlite {
                String::new()
            } else {
                format!("&options=-c%20search_path%3D{},public", self.schema)
            };
            AnyPoolOptions::new().max_connections(1).connect(&format!("{}{path}", self.direct)).await
        };
        self.database.get_or_try_init(connect).await.unwrap()
    }
}

/// Moves the time of every record, its steps and the notes of orders back by this span.
fn records_back(by: &str) -> String {
    let shift = ["lease_until", "created_at", "expires_at", "guard_until", "recover_at", "rerun_until"]
        .map(|at| format!("{at} = {at} - {by}"));
    format!(
        "update idem_key set {}; update idem_step set started_at = started_at - {by};
         update idem_order set guard_until = guard_until - {by}",
        shift.join(", ")
    )
}

fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("t{}_{count}_{}", std::process::id(), fastrand::u32(..))
}
