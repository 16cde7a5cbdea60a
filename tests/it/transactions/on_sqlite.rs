//! What SQLite does by itself.

use std::sync::Arc;

use serde_json::json;

use super::{by_hand::needs_a_person, shop::router};
use crate::support::{Backend, Place, Shop, problem};

async fn open() -> Shop {
    let shop = Shop::open_on(Arc::new(Place::sqlite()), router(Backend::Sqlite), |builder| builder).await;
    shop.sql("create table orders (sku text); create table once (n integer primary key)").await;
    shop
}

#[tokio::test]
async fn clause_16_what_is_written_after_a_rollback_of_sqlites_own_is_reported() {
    let shop = open().await;
    let once = json!({ "sql": "insert or rollback into once values (1)" });
    let steps = [shop.write("undone"), once.clone(), once, shop.write("stays")];
    needs_a_person(&problem(shop.order("/orders", "k", &steps).await).await);
    assert_eq!((shop.orders().await, shop.records().await), (1, 0));
}
