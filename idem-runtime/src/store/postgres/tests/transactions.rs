//! Bodies that write into the database of the records, over the user's pool.

use sqlx::Postgres;

use super::*;
use crate::{
    conformance::transactions::Body,
    store::{OpenTransaction, open::Open},
};

mod prepared {
    use super::*;
    store_conformance!(bodies fresh);

    async fn fresh() -> ((), PostgresStore, Place) {
        let place = place().await;
        ((), place.store(), place)
    }
}

mod simple {
    use super::*;
    store_conformance!(bodies fresh);

    async fn fresh() -> ((), PostgresStore, Place) {
        let place = place().await;
        ((), place.store().with_simple_protocol(), place)
    }
}

async fn place() -> Place {
    let place = Place::new();
    place.migrated().await;
    place.execute("create table work (n integer)").await;
    place
}

async fn send(transaction: &mut OpenTransaction, sql: String) -> Result<(), sqlx::Error> {
    let open = transaction.downcast_mut::<Open<Postgres>>().unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut **open).await.map(drop)
}

#[async_trait::async_trait]
impl Body for Place {
    async fn write(&self, transaction: &mut OpenTransaction) {
        send(transaction, format!("insert into {}.work values (1)", self.schema)).await.unwrap();
    }
    async fn written(&self) -> u64 {
        self.number("select count(*) from work").await.try_into().unwrap()
    }
    async fn commit(&self, transaction: &mut OpenTransaction) -> bool {
        send(transaction, "commit".into()).await.is_ok()
    }
    async fn roll_back(&self, transaction: &mut OpenTransaction) {
        send(transaction, "rollback".into()).await.unwrap();
    }
    async fn cut_off(&self, transaction: &mut OpenTransaction) -> bool {
        let open = transaction.downcast_mut::<Open<Postgres>>().unwrap();
        let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut **open).await.unwrap();
        let cut = sqlx::query_scalar("select pg_terminate_backend($1, 5000)").bind(pid);
        cut.fetch_one(&mut self.raw().await).await.unwrap()
    }
}
