//! Plain functions, clause 16a; calls from inside of a body; stores that have no transactions.

use std::{sync::Arc, time::Duration};

use axum::{Router, extract::State, response::IntoResponse, routing::post};
use idem_runtime::{Error, ErrorKind, Execution, MemoryStore, Runtime, Tx, idempotent};
use sqlx::{Postgres, Sqlite};

use super::shop::{Books, open, router};
use crate::support::{App, Backend, Place, Shop, Tenant, problem, refusal};

/// What a worker has at hand.
struct Desk {
    idem: Runtime,
    sql: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Plan {
    Succeed,
    Fail,
    FailFinal,
    Panic,
    Wait,
}

#[derive(Debug)]
enum Trouble {
    Planned,
    Idempotency(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Idempotency(error)
    }
}

#[idempotent(function, runtime = desk.idem, scope = "tenant", op = "tx.capture", key = key)]
async fn capture<Db: Books>(
    desk: &Desk,
    tenant: &str,
    key: &str,
    plan: Plan,
    #[idem] mut tx: Tx<Db>,
    #[idem] exec: Execution,
) -> Result<u64, Trouble> {
    Db::run(&mut tx, &desk.sql).await.unwrap();
    match plan {
        Plan::Succeed => Ok(fastrand::u64(..)),
        Plan::Fail => Err(Trouble::Planned),
        Plan::FailFinal => {
            exec.is_final();
            Err(Trouble::Planned)
        }
        Plan::Panic => panic!("the plan said so"),
        Plan::Wait => std::future::pending().await,
    }
}

async fn call(desk: &Desk, backend: Backend, key: &str, plan: Plan) -> Result<u64, Trouble> {
    match backend {
        Backend::Sqlite => capture::<Sqlite>(desk, "acme", key, plan).await,
        Backend::Postgres | Backend::PgBouncer => capture::<Postgres>(desk, "acme", key, plan).await,
    }
}

fn desk(shop: &Shop) -> Desk {
    let sql = format!("insert into {} (sku) values ('book')", shop.place.table("orders"));
    Desk { idem: shop.runtime.clone(), sql }
}

/// Calls until nobody else is at it: a session that was closed ends a moment later.
async fn succeeds(desk: &Desk, backend: Backend, key: &str) -> u64 {
    for _ in 0..500 {
        match call(desk, backend, key, Plan::Succeed).await {
            Ok(value) => return value,
            Err(Trouble::Idempotency(error)) if matches!(error.kind(), ErrorKind::InProgress { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("still in progress")
}

#[tokio::test]
async fn clause_16a_an_error_of_a_function_is_undone_and_a_success_is_replayed() {
    let shop = open().await;
    let (desk, backend) = (desk(&shop), shop.place.backend());
    assert!(matches!(call(&desk, backend, "k", Plan::Fail).await, Err(Trouble::Planned)));
    assert_eq!((shop.orders().await, shop.records().await), (0, 0));
    let value = call(&desk, backend, "k", Plan::Succeed).await.unwrap();
    assert_eq!(call(&desk, backend, "k", Plan::Succeed).await.unwrap(), value);
    assert_eq!(shop.orders().await, 1);
}

#[tokio::test]
async fn clause_16a_a_final_error_of_a_function_keeps_the_rows() {
    let shop = open().await;
    let (desk, backend) = (desk(&shop), shop.place.backend());
    assert!(matches!(call(&desk, backend, "k", Plan::FailFinal).await, Err(Trouble::Planned)));
    let again = call(&desk, backend, "k", Plan::Succeed).await;
    assert!(matches!(again, Err(Trouble::Idempotency(error)) if error.kind() == ErrorKind::ResultUnavailable));
    assert_eq!((shop.orders().await, shop.state().await), (1, 2));
}

#[tokio::test]
async fn clause_18_a_function_whose_caller_leaves_or_that_panics_is_undone() {
    let shop = open().await;
    let (desk, backend) = (Arc::new(desk(&shop)), shop.place.backend());
    let left = tokio::time::timeout(Duration::from_millis(200), call(&desk, backend, "left", Plan::Wait)).await;
    assert!(left.is_err());
    let panicking = Arc::clone(&desk);
    assert!(tokio::spawn(async move { call(&panicking, backend, "panic", Plan::Panic).await }).await.is_err());
    for key in ["left", "panic"] {
        succeeds(&desk, backend, key).await;
    }
    assert_eq!((shop.orders().await, shop.records().await), (2, 2));
}

#[idempotent(scope = "tenant", op = "tx.outer")]
async fn outer<Db: Books>(
    tenant: Tenant,
    State(idem): State<Runtime>,
    #[idem] tx: Tx<Db>,
    sql: String,
) -> axum::response::Response {
    let desk = Desk { idem, sql };
    let inner = capture::<Db>(&desk, &tenant.0, "inner", Plan::Succeed).await;
    drop(tx);
    match inner {
        Ok(_) => "done".into_response(),
        Err(Trouble::Idempotency(error)) => error.into_response(),
        Err(Trouble::Planned) => unreachable!(),
    }
}

/// On SQLite the inner call would wait for the outer one, and that for it. On Postgres they are two transactions.
#[tokio::test]
async fn clause_16_a_call_from_inside_of_a_transaction_does_not_wait_for_itself() {
    let place = Arc::new(Place::new());
    let backend = place.backend();
    let router: Router<App> = match backend {
        Backend::Sqlite => Router::new().route("/outer", post(outer::<Sqlite>)),
        Backend::Postgres | Backend::PgBouncer => Router::new().route("/outer", post(outer::<Postgres>)),
    };
    let shop = Shop::open_on(place, router, |builder| builder).await;
    shop.sql(&format!("create table {} (sku text)", shop.place.table("orders"))).await;
    let answer = shop.post("/outer", "k").body(desk(&shop).sql).send().await.unwrap();
    if backend == Backend::Sqlite {
        let told = problem(answer).await;
        assert_eq!((told.status, told.slug.as_str()), (500, "idempotency-transaction-failed"));
        assert_eq!(shop.orders().await, 0);
    } else {
        assert_eq!((answer.status().as_u16(), shop.orders().await), (200, 1));
    }
}

#[tokio::test]
async fn clause_16_a_store_without_these_transactions_says_so_at_the_first_call() {
    let place = Arc::new(Place::new());
    place.migrate().await;
    let wrong = if place.backend() == Backend::Sqlite { Backend::Postgres } else { Backend::Sqlite };
    let over_another = Shop::open_on(Arc::clone(&place), router(wrong), |builder| builder).await;
    let memory = Arc::new(MemoryStore::volatile());
    let over_none = Shop::open_over(place, memory, router(wrong), |builder| builder).await;
    for shop in [over_another, over_none] {
        let (status, slug) = refusal(shop.order("/orders", "k", &[]).await).await;
        assert_eq!((status, slug.as_str()), (500, "idempotency-transaction-failed"));
    }
}

/// Nothing serves it here; it is there to be found missing.
#[idempotent(function, runtime = runtime, scope = global, op = "faulty.named", key = key)]
async fn named(runtime: &Runtime, key: u64, #[idem] tx: Tx<Sqlite>) -> Result<(), Error> {
    drop(tx);
    Ok(())
}

#[tokio::test]
async fn clause_16_a_store_without_the_named_transactions_is_a_fault_of_the_build() {
    let _ = named;
    let build = Runtime::builder(MemoryStore::volatile()).namespace("shop").serve_only(|op| op == "faulty.named");
    let faults = build.build().await.unwrap_err().to_string();
    assert!(faults.contains("`faulty.named` at ") && faults.contains("`Tx` of sqlite"), "{faults}");
}
