//! A server of the test's own that restarts, is away, is full or may not write. What it confirmed is on its disk.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use sqlx::{ConnectOptions, PgConnection, postgres::PgConnectOptions};
use tokio::{task::JoinSet, time::Instant};

use super::refused;
use crate::support::{
    Place, Seen,
    bouncer::Bouncer,
    eventually,
    process::{Disk, Payments, card},
    seen,
    server::Server,
};

const CLIENTS: usize = 8;

/// The test's own, and what stands before it.
struct Machine {
    server: Server,
    pooler: Option<Bouncer>,
}

impl Machine {
    fn start(settings: &[&str], pooled: bool) -> Self {
        let server = Server::start(settings);
        let pooler = pooled.then(|| Bouncer::start(&server));
        Self { server, pooler }
    }
}

/// The amount tells the effects of one key from those of another.
fn charge(amount: usize) -> Value {
    json!({"amount": amount, "currency": "EUR", "card": "tok_visa"})
}

/// What became of a charge: its receipt, or nothing that anybody knows.
type Told = Option<Seen>;

/// Sends the charge until its client knows what became of it; fails after 30 s.
async fn insist(payments: &Payments, key: &str, charge: &Value) -> Told {
    let started = Instant::now();
    loop {
        let told = payments.post("/charges", key, charge).send().await.unwrap();
        let recorded = told.headers().get("idempotency-status").is_none();
        let told = seen(told).await;
        match told.status {
            201 => return recorded.then_some(told), // if not, the server was away for longer than a lease
            409 if told.body.contains("#idempotency-outcome-unknown") => return None,
            // The gateway's books were away: the next try says that the outcome is unknown.
            500 | 503 => {}
            409 if told.body.contains("#idempotency-in-progress") => {}
            _ => panic!("{told:?}"),
        }
        assert!(started.elapsed() < Duration::from_secs(30), "not back: {told:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_02_a_server_that_restarts_under_load_loses_and_doubles_nothing() {
    restarts_under_load(&Machine::start(&[], false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_02_a_server_that_restarts_behind_pgbouncer_loses_and_doubles_nothing() {
    restarts_under_load(&Machine::start(&[], true)).await;
}

/// Two processes, eight clients, two crashes of the server.
async fn restarts_under_load(Machine { server, pooler }: &Machine) {
    let disk = Disk::over(Place::on(server, pooler.as_ref()));
    // So long that an outcome can wait for the server: the longest that it was away counts.
    let lease = Duration::from_secs(15);
    let both = Arc::new([disk.start_with_leases_of(lease).await, disk.start_with_leases_of(lease).await]);
    let (told, go_on) = (Arc::new(std::sync::Mutex::new(HashMap::new())), Arc::new(()));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (both, told, until) = (Arc::clone(&both), Arc::clone(&told), Arc::downgrade(&go_on));
        clients.spawn(async move {
            let mut amount = 1 + client;
            while until.strong_count() > 0 {
                let answer = insist(&both[client % 2], &format!("k{amount}"), &charge(amount)).await;
                told.lock().unwrap().insert(amount, answer);
                amount += CLIENTS;
            }
        });
    }
    let paid = || told.lock().unwrap().values().flatten().count();
    for _ in 0..2 {
        let before = paid();
        eventually(async || paid() > before + 40).await;
        tokio::task::block_in_place(|| server.restart());
    }
    let before = paid();
    eventually(async || paid() > before + 40).await; // within 10 s, all by itself
    drop(go_on);
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }

    let told = std::mem::take(&mut *told.lock().unwrap());
    for (amount, first) in &told {
        let effects = disk.count(&format!("select count(*) from gateway_effects where amount = {amount}")).await;
        if let Some(first) = first {
            let retry = both[(amount + 1) % 2].pay("/charges", &format!("k{amount}"), &charge(*amount)).await;
            assert_eq!((effects, retry.replayed, &retry.body), (1, true, &first.body), "{amount}");
        } else {
            assert!(effects <= 1, "{amount}");
        }
    }
    println!("{} charges, {} in doubt", told.len(), told.values().filter(|told| told.is_none()).count());
}

/// Refused without having run, and told when to come again.
async fn is_refused(payments: &Payments, key: &str) {
    let told = refused(payments, "/charges", key, &card("tok_visa")).await;
    assert_eq!((told.status, told.slug.as_str()), (503, "idempotency-store-unavailable"));
    assert!((1..=5).contains(&told.retry_after.unwrap()), "{:?}", told.retry_after);
    assert_eq!(told.body["retry"], "same-key");
}

async fn comes_back(disk: &Disk, payments: &Payments, key: &str) {
    let answer = insist(payments, key, &card("tok_visa")).await.expect("nothing had run");
    assert!(!answer.replayed);
    let effects = disk.count("select count(*) from gateway_effects").await;
    assert_eq!(effects, 1, "once, and not before");
}

async fn open(machine: &Machine) -> (Disk, Payments) {
    let disk = Disk::over(Place::on(&machine.server, machine.pooler.as_ref()));
    let payments = disk.start().await;
    assert_eq!(disk.records().await, 0); // the test has its connection
    (disk, payments)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_50_a_server_that_is_away_stops_everything_before_it_starts() {
    is_away(&Machine::start(&[], false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_50_a_server_that_is_away_behind_pgbouncer_stops_everything_before_it_starts() {
    is_away(&Machine::start(&[], true)).await;
}

async fn is_away(machine: &Machine) {
    let (disk, payments) = open(machine).await;
    tokio::task::block_in_place(|| machine.server.stop());
    is_refused(&payments, "k1").await;
    tokio::task::block_in_place(|| machine.server.start_again());
    comes_back(&disk, &payments, "k1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_50_a_server_that_may_not_write_stops_everything_before_it_starts() {
    may_not_write(&Machine::start(&[], false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_50_a_server_that_may_not_write_behind_pgbouncer_stops_everything_before_it_starts() {
    may_not_write(&Machine::start(&[], true)).await;
}

/// As after a fail-over to a standby.
async fn may_not_write(machine: &Machine) {
    let (disk, payments) = open(machine).await;
    disk.sql("alter system set default_transaction_read_only = on").await;
    disk.sql("select pg_reload_conf()").await;
    eventually(async || disk.count("select (current_setting('transaction_read_only') = 'on')::int").await == 1).await;
    eventually(async || payments.pay("/charges", "first", &card("tok_declined")).await.status == 503).await;
    for _ in 0..2 {
        is_refused(&payments, "k1").await;
    }
    assert_eq!(disk.effects().await, 0);
    disk.sql("alter system reset default_transaction_read_only").await;
    disk.sql("select pg_reload_conf()").await;
    comes_back(&disk, &payments, "k1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_50_a_server_without_a_connection_left_stops_everything_before_it_starts() {
    has_no_connection_left(&Machine::start(&["max_connections=20"], false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_50_a_server_without_a_connection_left_for_pgbouncer_stops_everything_before_it_starts() {
    has_no_connection_left(&Machine::start(&["max_connections=20"], true)).await;
}

async fn has_no_connection_left(machine: &Machine) {
    let (disk, payments) = open(machine).await;
    let others = take_all(&machine.server, &disk).await;
    is_refused(&payments, "k1").await;
    assert_eq!(disk.effects().await, 0);
    drop(others);
    comes_back(&disk, &payments, "k1").await;
}

/// Others hold all connections but the test's own.
async fn take_all(server: &Server, disk: &Disk) -> Vec<PgConnection> {
    let options = server.url.parse::<PgConnectOptions>().unwrap().application_name("others");
    let mut others = Vec::new();
    for _ in 0..2 {
        while let Ok(other) = options.connect().await {
            others.push(other);
        }
        disk.sql(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity
             where backend_type = 'client backend' and application_name <> 'others' and pid <> pg_backend_pid()",
        )
        .await;
    }
    while let Ok(other) = options.connect().await {
        others.push(other);
    }
    others
}
