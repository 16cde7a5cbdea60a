//! The server under test, a process of its own: one variant over one database.

mod annotated;
mod by_hand;
mod charge;
mod writer;

use std::{
    io::Read,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{FromRef, State},
    response::Response,
    routing::{MethodRouter, get, post},
    serve::ListenerExt,
};
use idem_runtime::{PostgresStore, Runtime, SqliteStore};
use sqlx::{Postgres, Sqlite, postgres::PgPoolOptions};
use tokio::net::TcpListener;

use self::{
    charge::{Effects, Failed, Order, Tenant, created},
    writer::Writer,
};
use crate::{Result, variant::Variant};

/// How many connections handlers have, and bodies with a `Tx`.
const POOL: u32 = 20;

/// What a server is started with.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) variant: Variant,
    /// `postgres://…`, or `sqlite://` and a folder.
    pub(crate) url: String,
    /// How often the runtime purges; never, if it is not said.
    pub(crate) purge_every: Duration,
    /// As `Builder::store_timeout` and `Builder::store_queue`.
    pub(crate) store_timeout: Duration,
    pub(crate) store_queue: usize,
}

impl Setting {
    pub(crate) fn new(variant: Variant, url: String) -> Self {
        Self { variant, url, purge_every: Duration::ZERO, store_timeout: Duration::from_secs(5), store_queue: 10_000 }
    }
}

/// What it says when it listens, before its address.
pub(crate) const LISTENS: &str = "listens on ";

/// Serves until its standard input ends, which it does with the process that started it, whatever ended that.
pub(crate) async fn serve(setting: &Setting) -> Result<()> {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let asleep = Asleep::default();
    let router = match setting.url.strip_prefix("sqlite://") {
        Some(folder) => on_sqlite(setting, folder, asleep.clone()).await?,
        None => on_postgres(setting, asleep.clone()).await?,
    };
    let router = router.route("/asleep", get(async move || asleep.0.load(Ordering::Relaxed).to_string()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{LISTENS}{}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true); // slower without, and no less right
    });
    Ok(axum::serve(listener, router).await?)
}

/// How many bodies sleep.
#[derive(Debug, Clone, Default)]
struct Asleep(Arc<AtomicUsize>);

impl Asleep {
    async fn nap(&self, order: &Order) {
        self.0.fetch_add(1, Ordering::Relaxed);
        order.pause().await;
    }
}

/// The state of annotated handlers.
#[derive(Clone, FromRef)]
struct App {
    idem: Runtime,
    effects: Effects,
    asleep: Asleep,
}

async fn on_postgres(setting: &Setting, asleep: Asleep) -> Result<Router> {
    let pool = PgPoolOptions::new().max_connections(POOL).test_before_acquire(false).connect(&setting.url).await?;
    let effects = Effects::Postgres(pool.clone());
    let by_hand = match setting.variant {
        Variant::Read => post(by_hand::postgres::read),
        Variant::ByHandTransaction => post(by_hand::postgres::transaction),
        Variant::ByHandLease => post(by_hand::postgres::lease),
        Variant::StepsByHand => post(by_hand::postgres::steps),
        _ => return without_keys_or_annotated(setting, effects, asleep, PostgresStore::new(&pool)).await,
    };
    Ok(Router::new().route("/", by_hand).with_state(pool))
}

async fn on_sqlite(setting: &Setting, folder: &str, asleep: Asleep) -> Result<Router> {
    let file = format!("sqlite://{folder}/charges.db");
    let writer = Writer::open(writer::options(&file)?).await?;
    let files = by_hand::sqlite::Files { writer: writer.clone(), readers: writer::readers(&file).await? };
    let by_hand = match setting.variant {
        Variant::Read => post(by_hand::sqlite::read),
        Variant::ByHandTransaction => post(by_hand::sqlite::transaction),
        Variant::ByHandLease => post(by_hand::sqlite::lease),
        // What is done elsewhere is done in a file of its own; what is done in the transaction, in that of the keys.
        _ => {
            let store = SqliteStore::connect(&format!("sqlite://{folder}/keys.db")).await?;
            return without_keys_or_annotated(setting, Effects::Sqlite(writer), asleep, store).await;
        }
    };
    Ok(Router::new().route("/", by_hand).with_state(files))
}

/// A store that knows the database of its transactions.
trait Transactions: idem_runtime::store::Store {
    type Database: charge::Charges;
}

impl Transactions for PostgresStore {
    type Database = Postgres;
}

impl Transactions for SqliteStore {
    type Database = Sqlite;
}

async fn without_keys_or_annotated<S: Transactions>(
    setting: &Setting,
    effects: Effects,
    asleep: Asleep,
    store: S,
) -> Result<Router> {
    let (op, annotated): (_, MethodRouter<App>) = match setting.variant {
        Variant::Held | Variant::HeldCold => ("charge", post(annotated::charge)),
        Variant::Transactional | Variant::TransactionalCold => ("place", post(annotated::place::<S::Database>)),
        Variant::Steps => ("workflow", post(annotated::workflow)),
        Variant::NapHeld => ("nap", post(annotated::nap)),
        Variant::Bare => return Ok(Router::new().route("/", without_keys(effects))),
        Variant::Nap => return Ok(Router::new().route("/", asleep_without_keys(asleep))),
        Variant::Read | Variant::ByHandTransaction | Variant::ByHandLease | Variant::StepsByHand => {
            return Err(format!("`{}` is not written for this database", setting.variant.name()).into());
        }
    };
    let builder = Runtime::builder(store).namespace("bench").purge_every(setting.purge_every);
    let builder = builder.store_timeout(setting.store_timeout).store_queue(setting.store_queue);
    let builder = builder.serve_only(move |served| served == op);
    let builder = if setting.variant.keeps_answers() { builder } else { builder.cache_bytes(0) };
    let idem = builder.build().await?;
    Ok(Router::new().route("/", annotated).with_state(App { idem, effects, asleep }))
}

fn without_keys(effects: Effects) -> MethodRouter {
    post(bare).with_state(effects)
}

fn asleep_without_keys(asleep: Asleep) -> MethodRouter {
    post(nap).with_state(asleep)
}

async fn bare(State(effects): State<Effects>, tenant: Tenant, Json(order): Json<Order>) -> Result<Response, Failed> {
    order.pause().await;
    effects.insert(&tenant.0, &order).await?;
    Ok(created(&order))
}

async fn nap(State(asleep): State<Asleep>, _tenant: Tenant, Json(order): Json<Order>) -> Response {
    asleep.nap(&order).await;
    created(&order)
}
