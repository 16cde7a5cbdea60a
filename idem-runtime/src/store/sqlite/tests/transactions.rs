//! Bodies that write into the file of the records.

use sqlx::Sqlite;

use super::*;
use crate::{
    conformance::transactions::Body,
    store::{OpenTransaction, open::Open},
};

store_conformance!(bodies fresh_with_body);

async fn fresh_with_body() -> ((), SqliteStore, Place) {
    let place = Place::new();
    let store = place.migrated().await;
    place.execute("create table work (n integer)").await;
    ((), store, place)
}

async fn send(transaction: &mut OpenTransaction, sql: &'static str) -> Result<(), sqlx::Error> {
    let open = transaction.downcast_mut::<Open<Sqlite>>().unwrap();
    sqlx::query(sql).execute(&mut **open).await.map(drop)
}

#[async_trait::async_trait]
impl Body for Place {
    async fn write(&self, transaction: &mut OpenTransaction) {
        send(transaction, "insert into work values (1)").await.unwrap();
    }
    async fn written(&self) -> u64 {
        self.number("select count(*) from work").await.try_into().unwrap()
    }
    async fn commit(&self, transaction: &mut OpenTransaction) -> bool {
        send(transaction, "commit").await.is_ok()
    }
    async fn roll_back(&self, transaction: &mut OpenTransaction) {
        send(transaction, "rollback").await.unwrap();
    }
    async fn cut_off(&self, _: &mut OpenTransaction) -> bool {
        false // the database is this process
    }
}
