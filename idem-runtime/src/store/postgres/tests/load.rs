//! `cargo test --release -p idem-runtime --all-features --lib -- --ignored --nocapture load`

use std::sync::Arc;

use super::{server::Server, *};
use crate::batching::tests::load::{fill, load};

async fn of(what: &str, settings: &[&str]) {
    let server = Server::start(settings);
    let place = Place::on(&server.url);
    let connections = std::env::var("LOAD_CONNECTIONS").map_or(4, |connections| connections.parse().unwrap());
    let store = place.migrated().await.with_connections(connections);
    fill(&store).await;
    load(what, Arc::new(store)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a while, and wants the machine for itself"]
async fn load_with_quick_flushes() {
    of("Postgres", &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a while, and wants the machine for itself"]
async fn load_with_slow_flushes() {
    of("Postgres, 1 ms a flush", &["commit_delay=1000", "commit_siblings=0"]).await;
}
