//! The databases that are measured on, and what they say of themselves.

use std::time::Duration;

use idem_runtime::PostgresStore;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

use crate::{Result, load::key, machine, options::Database, postgres::Server};

/// One database, and a connection to look at it.
pub(crate) enum Place {
    Postgres {
        server: Server,
        look: PgConnection,
    },
    /// Files that are made anew for each server.
    Sqlite {
        folder: TempDir,
    },
}

/// What Postgres has written and flushed so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wal {
    pub(crate) bytes: f64,
    pub(crate) flushes: f64,
}

/// The tables of what is written by hand. As many indexes as there must be: none that a purge would need.
const POSTGRES: &str = "
create table charges (
  id bigint generated always as identity primary key, tenant text not null, reference text not null,
  amount bigint not null, currency text not null, created_at timestamptz not null default now());
create table answers (id text primary key, body bytea not null);
create table by_hand_transaction (
  tenant text not null, op text not null, key text not null, fingerprint bytea not null,
  status int, body bytea, expires_at timestamptz not null, primary key (tenant, op, key));
create table by_hand_lease (
  tenant text not null, op text not null, key text not null, fingerprint bytea not null, owner uuid not null,
  lease_until timestamptz not null, status int, body bytea, expires_at timestamptz not null,
  primary key (tenant, op, key));
create table by_hand_step (
  tenant text not null, op text not null, key text not null, step text not null, result text not null,
  primary key (tenant, op, key, step));";

const CHARGES: &str = "
create table charges (
  id integer primary key, tenant text not null, reference text not null, amount integer not null,
  currency text not null, created_at integer not null default (unixepoch())) strict;";

const SQLITE: &str = "
create table answers (id text primary key, body blob not null) strict, without rowid;
create table by_hand_lease (
  tenant text not null, op text not null, key text not null, fingerprint blob not null, owner blob not null,
  lease_until integer not null, status integer, body blob, expires_at integer not null,
  primary key (tenant, op, key)) strict, without rowid;";

impl Place {
    pub(crate) async fn open(database: Database) -> Result<Self> {
        if database == Database::Sqlite {
            return Ok(Self::Sqlite { folder: TempDir::new()? });
        }
        let server = Server::start()?;
        let mut look = PgConnection::connect(server.url()).await?;
        sqlx::raw_sql(POSTGRES).execute(&mut look).await?;
        PostgresStore::new(&PgPool::connect_lazy(server.url())?).migrate().await?;
        Ok(Self::Postgres { server, look })
    }

    pub(crate) fn database(&self) -> Database {
        match self {
            Self::Postgres { .. } => Database::Postgres,
            Self::Sqlite { .. } => Database::Sqlite,
        }
    }

    /// For a server under test.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Postgres { server, .. } => server.url().to_owned(),
            Self::Sqlite { folder } => format!("sqlite://{}", folder.path().display()),
        }
    }

    /// Empty tables, and nothing that still has to be written back.
    pub(crate) async fn clear(&mut self) -> Result<()> {
        match self {
            Self::Postgres { look, .. } => {
                // All of the library's, whatever they are, but its note of what has been migrated and purged.
                let tables = "select string_agg(format('%I.%I', schemaname, tablename), ', ') from pg_catalog.pg_tables
                               where schemaname in ('public', 'idem') and tablename not in ('idem_meta', 'answers')";
                let tables: String = sqlx::query_scalar(tables).fetch_one(&mut *look).await?;
                let statement = format!("truncate {tables}; update idem.idem_meta set purged_at = now(); checkpoint");
                sqlx::raw_sql(AssertSqlSafe(statement)).execute(look).await?;
            }
            Self::Sqlite { folder } => {
                *folder = TempDir::new()?;
                for (file, schema) in [("charges.db", &[CHARGES, SQLITE][..]), ("keys.db", &[CHARGES][..])] {
                    let mut file = open(folder, file).await?;
                    for statements in schema {
                        sqlx::raw_sql(AssertSqlSafe(*statements)).execute(&mut file).await?;
                    }
                    file.close().await?;
                }
                let url = format!("sqlite://{}/keys.db", folder.path().display());
                idem_runtime::SqliteStore::connect(&url).await?.migrate().await?;
            }
        }
        Ok(())
    }

    /// Writes back what has been written, so that no checkpoint falls into what is measured next.
    pub(crate) async fn checkpoint(&mut self) -> Result<()> {
        if let Self::Postgres { look, .. } = self {
            sqlx::raw_sql("checkpoint").execute(look).await?;
        }
        Ok(())
    }

    /// Answers of 300 bytes for the bare read, under the keys that hot loads send.
    pub(crate) async fn fill_answers(&mut self, count: u64) -> Result<()> {
        let keys: Vec<String> = (0..count).map(|nr| String::from_utf8_lossy(&key(nr)).into_owned()).collect();
        let body = vec![b'7'; 300];
        match self {
            Self::Postgres { look, .. } => {
                let fill = "insert into answers select key, $2 from unnest($1::text[]) as key on conflict do nothing";
                sqlx::query(fill).bind(keys).bind(body).execute(look).await?;
            }
            Self::Sqlite { folder } => {
                let mut file = open(folder, "charges.db").await?;
                let mut transaction = file.begin().await?;
                for key in keys {
                    let fill = sqlx::query("insert into answers (id, body) values (?1, ?2)").bind(key).bind(&body);
                    fill.execute(&mut *transaction).await?;
                }
                transaction.commit().await?;
                file.close().await?;
            }
        }
        Ok(())
    }

    /// How many effects there are, for how many keys, and the most of one key.
    pub(crate) async fn effects(&mut self) -> Result<(i64, i64, i64)> {
        const COUNT: &str = "select coalesce(sum(n), 0), count(*), coalesce(max(n), 0)
                              from (select cast(count(*) as bigint) as n from charges group by reference) as per_key";
        match self {
            Self::Postgres { look, .. } => {
                let count = COUNT.replace("sum(n)", "sum(n)::bigint");
                Ok(sqlx::query_as(AssertSqlSafe(count)).fetch_one(look).await?)
            }
            Self::Sqlite { folder } => {
                let mut sum = (0, 0, 0);
                for file in ["charges.db", "keys.db"] {
                    let mut file = open(folder, file).await?;
                    let (effects, keys, most): (i64, i64, i64) = sqlx::query_as(COUNT).fetch_one(&mut file).await?;
                    sum = (sum.0 + effects, sum.1 + keys, sum.2.max(most));
                    file.close().await?;
                }
                Ok(sum)
            }
        }
    }

    /// CPU that the database has used in processes of its own.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        match self {
            Self::Postgres { server, .. } => machine::cpu_of_all(server.pid()?),
            Self::Sqlite { .. } => Ok(Duration::ZERO),
        }
    }

    /// When nobody but us is connected, and all that sessions count has been reported; that is when they end.
    pub(crate) async fn wal(&mut self) -> Result<Wal> {
        let Self::Postgres { look, .. } = self else { return Ok(Wal::default()) };
        let others =
            "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()";
        for _ in 0..500 {
            if sqlx::query_scalar::<_, i64>(others).fetch_one(&mut *look).await? == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let version: i32 =
            sqlx::query_scalar("select current_setting('server_version_num')::int").fetch_one(&mut *look).await?;
        let flushes = match version {
            180_000.. => "(select coalesce(sum(fsyncs), 0) from pg_stat_io where object = 'wal')",
            _ => "(select wal_sync from pg_stat_wal)",
        };
        let wal = format!("select (pg_current_wal_insert_lsn() - '0/0')::float8, {flushes}::float8");
        let (bytes, flushes) = sqlx::query_as(AssertSqlSafe(wal)).fetch_one(look).await?;
        Ok(Wal { bytes, flushes })
    }

    /// Each flush waits so long first, as on a slower disk.
    pub(crate) async fn delay_flushes(&mut self, by: Duration) -> Result<()> {
        let Self::Postgres { look, .. } = self else { return Ok(()) };
        for setting in [format!("commit_delay = {}", by.as_micros()), "commit_siblings = 0".to_owned()] {
            sqlx::raw_sql(AssertSqlSafe(format!("alter system set {setting}"))).execute(&mut *look).await?;
        }
        sqlx::raw_sql("select pg_reload_conf()").execute(look).await?;
        Ok(())
    }

    pub(crate) async fn version(&mut self) -> Result<String> {
        match self {
            Self::Postgres { look, .. } => {
                let version: String =
                    sqlx::query_scalar("select current_setting('server_version')").fetch_one(look).await?;
                Ok(format!("Postgres {version}"))
            }
            Self::Sqlite { .. } => {
                let mut memory = SqliteConnection::connect("sqlite::memory:").await?;
                let version: String = sqlx::query_scalar("select sqlite_version()").fetch_one(&mut memory).await?;
                Ok(format!("SQLite {version}"))
            }
        }
    }
}

async fn open(folder: &TempDir, file: &str) -> Result<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join(file))
        .create_if_missing(true)
        .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal);
    Ok(SqliteConnection::connect_with(&options).await?)
}

/// In UTC, by SQLite's clock: this project's own code asks for no other.
pub(crate) async fn today() -> Result<String> {
    let mut memory = SqliteConnection::connect("sqlite::memory:").await?;
    Ok(sqlx::query_scalar("select date('now')").fetch_one(&mut memory).await?)
}
