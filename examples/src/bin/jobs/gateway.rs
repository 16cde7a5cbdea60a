//! A small payment gateway, standing in for a provider: it keeps its own books, and dedupes by the key it is given.

use serde::{Deserialize, Serialize};
use sqlx::{AnyPool, any::AnyPoolOptions};
use uuid::Uuid;

#[derive(Clone)]
pub(crate) struct Gateway {
    books: AnyPool,
}

#[derive(Debug, Serialize, Deserialize, sqlx::FromRow)]
pub(crate) struct Charge {
    pub(crate) id: String,
    /// What the caller said that it is for.
    pub(crate) job: String,
}

const SQLITE: &str = "create table if not exists job_effects (
   seq integer primary key, id text not null, job text not null, provider_key text not null unique, amount integer not null
 ) strict";

/// The lock is for processes that start together: `if not exists` lets two through, and one fails.
const POSTGRES: &str = "select pg_advisory_xact_lock(hashtext('job_effects'));
 create table if not exists job_effects (
   seq bigint generated always as identity primary key, id text not null, job text not null,
   provider_key text not null unique, amount bigint not null
 )";

impl Gateway {
    /// In the same database as the records, but the gateway knows nothing of those.
    pub(crate) async fn connect(url: &str) -> Result<Self, sqlx::Error> {
        sqlx::any::install_default_drivers();
        let books = AnyPoolOptions::new().max_connections(4).connect(url).await?;
        sqlx::raw_sql(if url.starts_with("sqlite:") { SQLITE } else { POSTGRES }).execute(&books).await?;
        Ok(Self { books })
    }

    /// Moves the money. The same `key` moves it once, however often it comes.
    pub(crate) async fn charge(&self, key: &str, job: &str, amount: i64) -> Result<Charge, sqlx::Error> {
        let book = "insert into job_effects (id, job, provider_key, amount) values ($1, $2, $3, $4)
                    on conflict (provider_key) do update set provider_key = excluded.provider_key
                    returning id, job";
        let id = format!("ch_{}", Uuid::new_v4().simple());
        sqlx::query_as(book).bind(id).bind(job).bind(key).bind(amount).fetch_one(&self.books).await
    }

    /// Everything that ever happened, in order.
    pub(crate) async fn effects(&self) -> Result<Vec<Charge>, sqlx::Error> {
        sqlx::query_as("select id, job from job_effects order by seq").fetch_all(&self.books).await
    }
}
