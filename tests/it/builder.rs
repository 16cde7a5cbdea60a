//! What `build()` refuses, all at once, and which operations a runtime serves.

use std::time::Duration;

use axum::{Router, routing::post};
use idem_runtime::{
    BuildError, Builder, Error, ErrorKind, InFlight, MemoryStore, Runtime, idempotent,
    store::{Store, StoreError},
};
use serde_json::json;

use crate::support::{App, Logs, Place, Shop, handler, problem};

handler!(charge, op = "builder.charge");

/// Ops that begin with `faulty.` are served by no other test's runtime.
mod first {
    use crate::support::handler;
    handler!(twice, op = "faulty.twice");
}
mod second {
    use crate::support::handler;
    handler!(twice, op = "faulty.twice");
}
handler!(keeps, op = "faulty.keeps", client_errors = keep("2h"));
handler!(refuses, op = "faulty.refuses", refuse_late = "2h");
handler!(waits, op = "faulty.waits", timeout = "10s");
handler!(accepts, op = "faulty.accepts", in_flight = accepted);

#[idempotent(function, runtime = runtime, scope = "acme", op = "builder.job", key = id)]
async fn job(runtime: &Runtime, acme: &str, id: &str) -> Result<u32, Error> {
    Ok(1)
}

fn router() -> Router<App> {
    Router::new()
        .route("/charge", post(charge))
        .route("/twice/1", post(first::twice))
        .route("/twice/2", post(second::twice))
        .route("/rules", post(keeps).put(refuses).patch(waits).delete(accepts))
}

/// One that serves what this binary's annotations leave healthy.
fn builder(store: impl Store) -> Builder {
    let builder = Runtime::builder(store).namespace("shop").operations_at("/operations/{id}");
    builder.serve_only(|op| !op.starts_with("faulty."))
}

fn faults(built: Result<Runtime, BuildError>) -> Vec<String> {
    built.map_or_else(|error| error.faults().iter().map(ToString::to_string).collect(), |_| Vec::new())
}

#[tokio::test]
async fn every_fault_is_told_at_once_and_in_words() {
    let place = Place::new(); // not migrated
    let _mounted = router();
    let built = Runtime::builder(place.connect().await)
        .ttl(Duration::from_secs(3600))
        .lease(Duration::from_millis(999))
        .quarantine(Duration::MAX)
        .provider_window(Duration::from_millis(1))
        .in_flight(InFlight::Wait(Duration::from_secs(10)))
        .store_timeout(Duration::ZERO)
        .header("no header")
        .mismatch_status(418)
        .read_timeout(Duration::ZERO)
        .keep_header("Date")
        .keep_header("no name")
        .omit_header("")
        .serve_only(|op| op.starts_with("faulty.") && op != "faulty.named") // which is a fault on some databases only
        .build()
        .await;
    let error = built.unwrap_err();
    let told = error.to_string();
    for expected in [
        "`namespace` is missing or longer than 64 bytes: write `.namespace(\"payments\")`",
        "`lease` must be at least 1 s",
        "`quarantine` must be at most 3650 days",
        "`provider_window` must be at least `lease`, and at most 3650 days",
        "`store_timeout` must be more than zero",
        "`header(\"no header\")` is no header name",
        "`mismatch_status` must be 422, 409 or 400",
        "`read_timeout` must be more than zero",
        "`date` belongs to one message and cannot be replayed",
        "`no name` is no header name",
        "`` is no header name",
        "`op = \"faulty.twice\"` stands at tests/it/builder.rs:",
        "two operations cannot share their keys",
        "`faulty.keeps` at tests/it/builder.rs:",
        "`client_errors = keep(..)` is longer than `ttl`",
        "a duplicate would wait as long as `timeout` or longer",
        "`faulty.accepts` at tests/it/builder.rs:",
        "there is no place where the result can be fetched: write `.operations_at(\"/operations/{id}\")`",
        "the tables are missing or out of date; call `store.migrate().await?` first",
    ] {
        assert!(told.contains(expected), "{expected}\n\nin {told}");
    }
    assert!(!told.contains("faulty.refuses"), "2 h are more than 1 h: no fault");
    assert_eq!(error.faults().len(), 16, "{told}");
    assert_eq!(told.lines().count(), 17, "a line each, under a heading");
}

#[tokio::test]
async fn a_default_that_contradicts_an_annotation_is_a_fault() {
    let built = |ttl: u64| {
        let builder = builder(MemoryStore::volatile()).ttl(Duration::from_secs(ttl));
        builder.serve_only(|op| op == "faulty.refuses").build()
    };
    let told = faults(built(3 * 3600).await);
    assert!(told.len() == 1 && told[0].contains("`refuse_late` is shorter than `ttl`"), "{told:?}");
    assert_eq!(faults(built(2 * 3600).await), [""; 0]);
    for ttl in [0, 3650 * 24 * 3600 + 1] {
        assert!(faults(built(ttl).await).contains(&"`ttl` must be 1 s to 3650 days".to_owned()), "{ttl}");
    }
}

#[tokio::test]
async fn clause_04_a_result_that_is_promised_has_a_place() {
    let told = async |in_flight, at: Option<&str>| {
        let store = MemoryStore::volatile();
        let builder = Runtime::builder(store).namespace("shop").serve_only(|op| op == "faulty.accepts");
        let builder = builder.in_flight(in_flight);
        faults(at.into_iter().fold(builder, Builder::operations_at).build().await)
    };
    let missing = told(InFlight::Reject, None).await;
    assert!(missing.len() == 1 && missing[0].starts_with("`faulty.accepts` at tests/it/builder.rs:"), "{missing:?}");
    assert!(missing[0].contains("write `.operations_at("), "{missing:?}");
    let default = told(InFlight::Accepted, None).await;
    assert!(default.len() == 2 && default.iter().any(|fault| fault.starts_with("`in_flight` is `accepted`")));
    for template in
        ["/operations", "/operations/{Id}", "", "/operations/{id}\n", "operations/{id}", "{id}", "ftp://a/{id}"]
    {
        let faulty = told(InFlight::Accepted, Some(template)).await;
        assert!(faulty.len() == 1 && faulty[0].contains("must be a path that begins with `/`"), "{faulty:?}");
    }
    for template in ["/operations/{id}", "https://api.example.com/operations/{id}/result"] {
        assert_eq!(told(InFlight::Accepted, Some(template)).await, [""; 0]);
    }
}

#[tokio::test]
async fn a_namespace_is_required_and_not_too_long() {
    for (namespace, count) in [("", 1), (&"n".repeat(65) as &str, 1), (&"n".repeat(64), 0), ("n", 0)] {
        assert_eq!(faults(builder(MemoryStore::volatile()).namespace(namespace).build().await).len(), count);
    }
}

#[tokio::test]
async fn a_store_must_be_migrated_unless_it_is_volatile() {
    let place = Place::new();
    let store = place.connect().await;
    let told = faults(builder(store.clone()).build().await);
    assert_eq!(told, ["the tables are missing or out of date; call `store.migrate().await?` first"]);
    place.migrate().await;
    assert_eq!(faults(builder(store).build().await), [""; 0]);
    assert_eq!(faults(builder(MemoryStore::volatile()).build().await), [""; 0]);
}

/// A store that has no connection yet.
struct Unreachable;

#[async_trait::async_trait]
impl Store for Unreachable {
    async fn claim(&self, _: &[idem_runtime::store::Claim]) -> Result<Vec<idem_runtime::store::Claimed>, StoreError> {
        unreachable!()
    }
    async fn peek(
        &self,
        _: &[idem_runtime::store::Peek],
    ) -> Result<Vec<Option<idem_runtime::store::Found>>, StoreError> {
        unreachable!()
    }
    async fn finish(
        &self,
        _: &[idem_runtime::store::Finish],
    ) -> Result<Vec<idem_runtime::store::Finished>, StoreError> {
        unreachable!()
    }
    async fn renew(
        &self,
        _: &[idem_runtime::store::Renewal],
        _: Duration,
    ) -> Result<Vec<idem_runtime::store::Renewed>, StoreError> {
        unreachable!()
    }
    async fn link(&self, _: &[idem_runtime::store::Link]) -> Result<(), StoreError> {
        unreachable!()
    }
    async fn find(&self, _: idem_runtime::RecordId) -> Result<Option<idem_runtime::Record>, StoreError> {
        unreachable!()
    }
    async fn list(
        &self,
        _: &idem_runtime::Filter,
        _: idem_runtime::Page,
    ) -> Result<Vec<idem_runtime::Record>, StoreError> {
        unreachable!()
    }
    async fn linked(&self, _: &str, _: &str) -> Result<Vec<idem_runtime::Record>, StoreError> {
        unreachable!()
    }
    async fn resolve(&self, _: &idem_runtime::store::Resolve) -> Result<bool, StoreError> {
        unreachable!()
    }
    async fn recover(
        &self,
        _: &idem_runtime::store::Recover,
    ) -> Result<Vec<idem_runtime::store::Recovering>, StoreError> {
        unreachable!()
    }
    async fn put_off(&self, _: &idem_runtime::store::PutOff) -> Result<bool, StoreError> {
        unreachable!()
    }
    async fn survey(&self) -> Result<idem_runtime::store::Survey, StoreError> {
        unreachable!()
    }
    async fn due(&self) -> Result<idem_runtime::store::Due, StoreError> {
        unreachable!()
    }
    async fn purge(&self, _: &idem_runtime::store::Purge) -> Result<idem_runtime::store::Purged, StoreError> {
        unreachable!()
    }
    async fn strip(&self, _: &idem_runtime::store::Strip) -> Result<idem_runtime::store::Stripped, StoreError> {
        unreachable!()
    }
    fn keeps_steps(&self) -> bool {
        true
    }
    async fn check(&self) -> Result<Vec<String>, StoreError> {
        Err(StoreError::unavailable("connection refused"))
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_reached_is_a_fault_with_its_cause() {
    let told = faults(builder(Unreachable).build().await);
    assert_eq!(told, ["the store cannot be used: the store is unavailable: connection refused"]);
}

/// Two runtimes in one program: each serves its own, and neither minds that an `op` stands twice elsewhere.
#[tokio::test]
async fn an_operation_that_is_not_served_is_named_and_so_is_the_runtime() {
    let shop =
        Shop::open_with(router(), |builder| builder.namespace("refunds").serve_only(|op| op == "builder.job")).await;
    let logs = Logs::collect();
    let refused = problem(shop.post("/charge", "k1").json(&json!({})).send().await.unwrap()).await;
    assert_eq!((refused.status, refused.slug.as_str()), (500, "idempotency-not-served"));
    assert_eq!((&refused.body["op"], &refused.body["retry"]), (&json!("builder.charge"), &json!("never")));
    let line = logs.alarming().into_iter().next().expect("a line for whoever configured it");
    assert!(line.text.contains("builder.charge") && line.text.contains("refunds"), "{}", line.text);
    assert_eq!((shop.probe.started(), shop.records().await), (0, 0));
    assert_eq!(job(&shop.runtime, "acme", "j1").await.unwrap(), 1, "what is served, is");

    let other = Shop::open_with(router(), |builder| builder.serve_only(|op| op == "builder.charge")).await;
    let error = job(&other.runtime, "acme", "j1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotServed);
    assert_eq!(other.post("/charge", "k1").json(&json!({})).send().await.unwrap().status(), 201);
}
