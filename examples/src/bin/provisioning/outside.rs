//! A mail service and a billing service, standing in for providers: they keep their own books, and dedupe by the key they are
//! given.

use serde::Serialize;
use sqlx::{AnyPool, any::AnyPoolOptions};
use uuid::Uuid;

use crate::tenant::Tenant;

#[derive(Clone)]
pub(crate) struct Outside {
    books: AnyPool,
}

/// Something that has happened, here or outside.
#[derive(Debug, Serialize, sqlx::FromRow)]
pub(crate) struct Effect {
    step: String,
    id: String,
    subject: String,
}

/// Append-only. Only what came from outside has a key.
const SQLITE: &str = "create table if not exists provisioning_effects (
   seq integer primary key, id text not null, step text not null, tenant text not null, subject text not null,
   provider_key text unique
 ) strict";

/// The lock is for processes that start together: `if not exists` lets two through, and one fails.
const POSTGRES: &str = "select pg_advisory_xact_lock(hashtext('provisioning_effects'));
 create table if not exists provisioning_effects (
   seq bigint generated always as identity primary key, id text not null, step text not null, tenant text not null,
   subject text not null, provider_key text unique
 )";

impl Outside {
    pub(crate) async fn connect(url: &str) -> Result<Self, sqlx::Error> {
        sqlx::any::install_default_drivers();
        let books = AnyPoolOptions::new().max_connections(4).connect(url).await?;
        sqlx::raw_sql(if url.starts_with("sqlite:") { SQLITE } else { POSTGRES }).execute(&books).await?;
        Ok(Self { books })
    }

    /// Does what the step says for this subject; once per `key`, however often it comes. Gives the id that it has there.
    pub(crate) async fn ask(
        &self,
        step: &'static str,
        tenant: Tenant,
        key: &str,
        subject: &str,
    ) -> Result<String, sqlx::Error> {
        let ask =
            "insert into provisioning_effects (id, step, tenant, subject, provider_key) values ($1, $2, $3, $4, $5)
                   on conflict (provider_key) do update set provider_key = excluded.provider_key
                   returning id";
        let ask = sqlx::query_scalar(ask)
            .persistent(false)
            .bind(format!("{step}_{}", Uuid::new_v4().simple()))
            .bind(step)
            .bind(tenant.0)
            .bind(subject)
            .bind(key);
        let mut transaction = self.books.begin().await?;
        let id = ask.fetch_one(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(id)
    }

    /// Everything that ever happened for a tenant, in order.
    pub(crate) async fn effects(&self, tenant: Tenant) -> Result<Vec<Effect>, sqlx::Error> {
        let effects = "select step, id, subject from provisioning_effects where tenant = $1 order by seq";
        let effects = sqlx::query_as(effects).persistent(false).bind(tenant.0);
        let mut connection = self.books.begin().await?;
        effects.fetch_all(&mut *connection).await
    }
}
