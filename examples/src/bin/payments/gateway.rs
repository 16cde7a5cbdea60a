//! A small payment gateway, standing in for a provider: it keeps its own books, and dedupes by the key it is given.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::{AnyPool, any::AnyPoolOptions};
use uuid::Uuid;

use crate::tenant::Tenant;

#[derive(Clone)]
pub(crate) struct Gateway {
    books: AnyPool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Charge,
    Payout,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Payment {
    amount: i64,
    currency: String,
    card: String,
    #[serde(default)]
    delay_ms: u64,
}

#[derive(Debug, Serialize, sqlx::FromRow)]
pub(crate) struct Receipt {
    pub(crate) id: String,
    amount: i64,
    currency: String,
    status: String,
}

#[derive(Debug)]
pub(crate) enum Trouble {
    Invalid(&'static str),
    Declined,
    DeclinedForGood,
    Unreachable,
    NoReply,
    Database(sqlx::Error),
}

impl From<sqlx::Error> for Trouble {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

const CURRENCIES: [&str; 4] = ["EUR", "USD", "GBP", "CHF"];
const LONGEST_DELAY: Duration = Duration::from_secs(60);

const SQLITE: &str = "create table if not exists gateway_effects (
   seq integer primary key, id text not null, kind text not null, tenant text not null,
   provider_key text not null unique, amount integer not null, currency text not null, status text not null
 ) strict";

/// The lock is for processes that start together: `if not exists` lets two through, and one fails.
const POSTGRES: &str = "select pg_advisory_xact_lock(hashtext('gateway_effects'));
 create table if not exists gateway_effects (
   seq bigint generated always as identity primary key, id text not null, kind text not null, tenant text not null,
   provider_key text not null unique, amount bigint not null, currency text not null, status text not null
 )";

impl Gateway {
    /// What has been asked for is done within this time, or never.
    pub(crate) const LIMIT: Duration = LONGEST_DELAY.saturating_mul(2);

    /// In the same database as the records, but the gateway knows nothing of those.
    pub(crate) async fn connect(url: &str) -> Result<Self, sqlx::Error> {
        sqlx::any::install_default_drivers();
        let books = AnyPoolOptions::new().max_connections(4).connect(url).await?;
        sqlx::raw_sql(if url.starts_with("sqlite:") { SQLITE } else { POSTGRES }).execute(&books).await?;
        Ok(Self { books })
    }

    /// Moves the money. The same `key` moves it once, however often it comes.
    pub(crate) async fn pay(
        &self,
        kind: Kind,
        tenant: Tenant,
        key: &str,
        payment: &Payment,
    ) -> Result<Receipt, Trouble> {
        if payment.amount < 1 {
            return Err(Trouble::Invalid("amount must be at least 1"));
        }
        if !CURRENCIES.contains(&payment.currency.as_str()) {
            return Err(Trouble::Invalid("unknown currency"));
        }
        tokio::time::sleep(Duration::from_millis(payment.delay_ms).min(LONGEST_DELAY)).await;
        match payment.card.as_str() {
            "tok_visa" => self.book(kind, tenant, key, payment, "succeeded").await,
            "tok_declined" => Err(Trouble::Declined),
            "tok_declined_final" => {
                self.book(kind, tenant, key, payment, "declined").await?;
                Err(Trouble::DeclinedForGood)
            }
            "tok_gateway_down" => Err(Trouble::Unreachable),
            "tok_fail_after_charge" => {
                self.book(kind, tenant, key, payment, "succeeded").await?;
                Err(Trouble::NoReply)
            }
            "tok_panic" => {
                self.book(kind, tenant, key, payment, "succeeded").await?;
                panic!("the card asked for it")
            }
            _ => Err(Trouble::Invalid("unknown card")),
        }
    }

    /// What the gateway has done by this key, if anything: for whoever did not get its reply.
    pub(crate) async fn find(&self, key: &str) -> Result<Option<Receipt>, Trouble> {
        let find = "select id, amount, currency, status from gateway_effects where provider_key = $1";
        let find = sqlx::query_as(find).persistent(false).bind(key);
        let mut connection = self.books.begin().await?;
        Ok(find.fetch_optional(&mut *connection).await?)
    }

    /// Everything that ever happened for a tenant, in order.
    pub(crate) async fn effects(&self, kind: Kind, tenant: Tenant) -> Result<Vec<Receipt>, Trouble> {
        let effects =
            "select id, amount, currency, status from gateway_effects where kind = $1 and tenant = $2 order by seq";
        let effects = sqlx::query_as(effects).persistent(false).bind(kind.name()).bind(tenant.0);
        let mut connection = self.books.begin().await?;
        Ok(effects.fetch_all(&mut *connection).await?)
    }

    /// One statement, in a transaction and not kept as a prepared one, so that a pooler may stand between.
    async fn book(
        &self,
        kind: Kind,
        tenant: Tenant,
        key: &str,
        payment: &Payment,
        status: &str,
    ) -> Result<Receipt, Trouble> {
        let book = "insert into gateway_effects (id, kind, tenant, provider_key, amount, currency, status)
                    values ($1, $2, $3, $4, $5, $6, $7)
                    on conflict (provider_key) do update set provider_key = excluded.provider_key
                    returning id, amount, currency, status";
        let receipt = sqlx::query_as(book)
            .persistent(false)
            .bind(format!("{}_{}", kind.prefix(), Uuid::new_v4().simple()))
            .bind(kind.name())
            .bind(tenant.0)
            .bind(key)
            .bind(payment.amount)
            .bind(&payment.currency)
            .bind(status);
        let mut transaction = self.books.begin().await?;
        let receipt = receipt.fetch_one(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(receipt)
    }
}

impl Receipt {
    pub(crate) fn is_declined(&self) -> bool {
        self.status == "declined"
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Charge => "charge",
            Self::Payout => "payout",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Charge => "ch",
            Self::Payout => "po",
        }
    }
}
