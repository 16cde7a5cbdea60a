//! Rows of our own database: users, workspaces, permissions. Each insert is an effect, so it is kept in one table.

use idem_runtime::Tx;
use sqlx::{Database, PgConnection, Postgres, Sqlite, SqliteConnection};
use uuid::Uuid;

use crate::tenant::Tenant;

/// What differs between the databases; the statement does not.
pub(crate) trait Accounts: Database {
    fn insert(
        connection: &mut Self::Connection,
        tenant: Tenant,
        row: &Row<'_>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

/// One row: what it is, and whose.
pub(crate) struct Row<'a> {
    id: &'a str,
    step: &'static str,
    of: &'a str,
}

macro_rules! accounts {
    ($database:ty, $connection:ty) => {
        impl Accounts for $database {
            async fn insert(connection: &mut $connection, tenant: Tenant, row: &Row<'_>) -> Result<(), sqlx::Error> {
                sqlx::query("insert into provisioning_effects (id, step, tenant, subject) values ($1, $2, $3, $4)")
                    .persistent(false)
                    .bind(row.id)
                    .bind(row.step)
                    .bind(tenant.0)
                    .bind(row.of)
                    .execute(connection)
                    .await
                    .map(drop)
            }
        }
    };
}
accounts!(Sqlite, SqliteConnection);
accounts!(Postgres, PgConnection);

/// Inserts a row of this kind, and gives its new id back.
pub(crate) async fn insert<Db: Accounts>(
    tx: &mut Tx<Db>,
    tenant: Tenant,
    step: &'static str,
    of: &str,
) -> Result<String, sqlx::Error> {
    let id = format!("{step}_{}", Uuid::new_v4().simple());
    Db::insert(tx, tenant, &Row { id: &id, step, of }).await?;
    Ok(id)
}
