//! See `store/postgres/tests/load.rs`.

use std::sync::Arc;

use super::*;
use crate::batching::tests::load::{fill, load};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a while, and wants the machine for itself"]
async fn load_of_a_file() {
    let place = Place::new();
    let store = place.migrated().await;
    fill(&store).await;
    load("SQLite", Arc::new(store)).await;
}
