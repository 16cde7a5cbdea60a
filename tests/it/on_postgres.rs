//! What is to be seen on Postgres only: whose connections are whose.

use std::{sync::Arc, time::Duration};

use axum::{Extension, Json, Router, extract::State, http::StatusCode, response::Response, routing::post};
use idem_runtime::{Error, Execution, PostgresStore, idempotent};
use serde_json::json;
use sqlx::{PgPool, postgres::PgPoolOptions};

use crate::support::{Backend, Place, Plan, Probe, Shop, Tenant, bouncer::Bouncer, eventually, seen, server::Server};

/// Needs nothing of the user's database, and passes no gate.
#[idempotent(scope = "tenant", op = "on_postgres.plain")]
async fn plain(tenant: Tenant, State(probe): State<Probe>, Json(_): Json<Plan>) -> (StatusCode, &'static str) {
    probe.effect("plain");
    (StatusCode::CREATED, "done")
}

/// Holds the only connection of the user's pool all the while.
#[idempotent(scope = "tenant", op = "on_postgres.greedy")]
async fn greedy(
    tenant: Tenant,
    State(probe): State<Probe>,
    Extension(pool): Extension<PgPool>,
    #[idem] exec: Execution,
    Json(plan): Json<Plan>,
) -> Result<Response, Error> {
    let mut only = pool.acquire().await.unwrap();
    exec.link("gateway", "ch_1").await?;
    let answer = probe.perform(&plan).await;
    sqlx::raw_sql("select 1").execute(&mut *only).await.unwrap();
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_101_bodies_that_hold_the_only_connection_keep_no_completion_waiting() {
    let server = Server::start(&[]);
    hold_the_only_connection(Place::on(&server, None)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_101_bodies_that_hold_the_only_connection_to_pgbouncer_keep_no_completion_waiting() {
    let server = Server::start(&[]);
    let pooler = Bouncer::start(&server);
    hold_the_only_connection(Place::on(&server, Some(&pooler))).await;
}

async fn hold_the_only_connection(place: Place) {
    let patience = Duration::from_secs(15);
    let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(patience).connect(place.url()).await.unwrap();
    let store = match place.backend() {
        Backend::PgBouncer => PostgresStore::new(&pool).with_simple_protocol(),
        _ => PostgresStore::new(&pool),
    };
    store.migrate().await.unwrap();
    let router =
        Router::new().route("/greedy", post(greedy)).route("/plain", post(plain)).layer(Extension(pool.clone()));
    // Leases that the bodies outlive: renewals need connections too.
    let shop =
        Shop::open_over(Arc::new(place), Arc::new(store), router, |builder| builder.lease(Duration::from_secs(1)))
            .await;
    let held = shop.probe.hold().await;
    let greedy: Vec<_> =
        (0..8).map(|n| tokio::spawn(shop.post("/greedy", &format!("g{n}")).json(&json!({})).send())).collect();
    eventually(async || shop.records().await == 8 && shop.probe.started() == 1).await;
    assert_eq!(pool.num_idle(), 0);

    for n in 0..8 {
        let first = seen(shop.post("/plain", &format!("p{n}")).json(&json!({})).send().await.unwrap()).await;
        let retry = seen(shop.post("/plain", &format!("p{n}")).json(&json!({})).send().await.unwrap()).await;
        assert_eq!((first.status, retry.replayed, &retry.body), (201, true, &first.body));
    }
    drop(held);
    for answer in greedy {
        assert_eq!(answer.await.unwrap().unwrap().status(), 201);
    }
    assert_eq!((shop.records().await, shop.probe.effects()), (16, 16));
    assert_eq!(shop.count("select count(*) from idem_key where state = 2 and attempts = 1").await, 16);
}
