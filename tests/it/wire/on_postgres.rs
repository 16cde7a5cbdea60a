//! Postgres, and PgBouncer before it. The proxy stands between this process and either.

mod claims;
mod commits;
mod leaves;

use std::{sync::Arc, time::Duration};

use axum::routing::post;
use serde_json::{Value, json};
use sqlx::{
    PgPool, Row,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{
    support::{Backend, Place, Problem, Proxy, Seen, Shop, eventually, handler, problem, seen},
    transactions::shop::router,
};

/// No test here waits for its end.
const LEASE: Duration = Duration::from_secs(3600);

handler!(charge, op = "wire.charge");

/// A shop whose every word to its database goes through the proxy.
struct Wire {
    shop: Shop,
    proxy: Proxy,
    /// The user's, for bodies.
    pool: PgPool,
    /// By which the server knows our sessions.
    name: String,
}

impl Wire {
    /// With so many connections for bodies, and as many of the store's own.
    async fn open(backend: Backend, connections: u32) -> Self {
        let place = Place::of(backend);
        let proxy = Proxy::before(place.url()).await;
        let (place, name) = (Arc::new(place.through(&proxy)), format!("wire_{}", fastrand::u64(..)));
        let options: PgConnectOptions = place.url().parse().unwrap();
        let pool = PgPoolOptions::new().max_connections(connections);
        let pool = pool.connect_lazy_with(options.application_name(&name));
        let store = place.store_for(&pool).with_connections(connections);
        store.migrate().await.unwrap();
        let router = router(backend).route("/charge", post(charge));
        let shop = Shop::open_over(place, Arc::new(store), router, |builder| builder.lease(LEASE)).await;
        shop.sql(&format!("create table {} (sku text)", shop.place.table("orders"))).await;
        Self { shop, proxy, pool, name }
    }

    /// What a body that writes a book does, and that it started.
    fn steps(&self) -> [Value; 2] {
        [json!("gate"), self.shop.write("book")]
    }

    async fn order(&self, key: &str) -> reqwest::Response {
        self.shop.order("/orders", key, &self.steps()).await
    }

    async fn charge(&self, key: &str) -> reqwest::Response {
        self.shop.post("/charge", key).json(&json!({})).send().await.unwrap()
    }

    /// Sends it again while it is told to, and for no other reason.
    async fn insist(&self, send: impl AsyncFn() -> reqwest::Response) -> Seen {
        let last = std::sync::Mutex::new(None);
        eventually(async || {
            let answer = send().await;
            if answer.status() == 409 {
                assert_eq!(problem(answer).await.slug, "idempotency-in-progress");
                return false;
            }
            *last.lock().unwrap() = Some(seen(answer).await);
            true
        })
        .await;
        last.into_inner().unwrap().unwrap()
    }

    /// How many of our sessions have a transaction open.
    async fn open_transactions(&self) -> i64 {
        let open = "select count(*) from pg_stat_activity where state like 'idle in transaction%'";
        self.shop.count(&format!("{open} and application_name = '{}'", self.name)).await
    }

    /// Nothing is left of whatever happened: no open transaction, and either pool serves.
    async fn is_sound(&self) {
        eventually(async || self.open_transactions().await == 0).await;
        let key = format!("sound-{}", fastrand::u64(..));
        assert!(seen(self.order(&key).await).await.ran());
        assert!(seen(self.charge(&key).await).await.ran());
        assert_eq!(self.open_transactions().await, 0);
        let idle = "select pg_current_xact_id_if_assigned() is null"; // one message: behind a pooler, nothing is prepared
        let clean: bool = sqlx::raw_sql(idle).fetch_one(&self.pool).await.unwrap().get(0);
        assert!(clean);
    }
}

async fn unavailable(answer: reqwest::Response) -> Problem {
    let told = problem(answer).await;
    assert_eq!((told.status, told.slug.as_str()), (503, "idempotency-store-unavailable"), "{:?}", told.body);
    assert_eq!((&told.body["retry"], &told.body["safe_new_key"]), (&json!("same-key"), &json!(false)));
    told
}

/// Each test once as it is and once behind the pooler.
macro_rules! on_both {
    ($($(#[$about:meta])* $test:ident, $pooled:ident: $body:ident($($arg:expr)?);)*) => {$(
        $(#[$about])*
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            $body(crate::support::Backend::Postgres $(, $arg)?).await;
        }

        $(#[$about])*
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $pooled() {
            $body(crate::support::Backend::PgBouncer $(, $arg)?).await;
        }
    )*};
}
use on_both;
