//! A shop to test against: a real server on a real socket over a real store, and a probe that counts effects.

pub(crate) mod bouncer;
mod faulty;
mod forwarding;
mod logs;
mod meters;
pub(crate) mod place;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod raw;
#[path = "../../idem-runtime/src/store/postgres/tests/server.rs"]
#[allow(dead_code, reason = "the store's own tests need more of it, and less")]
pub(crate) mod server;
pub(crate) mod worker;

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{FromRef, FromRequestParts},
    http::{HeaderName, StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use idem_runtime::{Builder, Execution, Record, Runtime, ScopePart, ScopeWriter, store::Store};
use reqwest::RequestBuilder;
use serde::Deserialize;

pub(crate) use faulty::{Fault, Faulty};
pub(crate) use forwarding::Verb;
pub(crate) use logs::Logs;
pub(crate) use meters::Meters;
pub(crate) use place::{Backend, Place};
pub(crate) use proxy::{Cut, Proxy};

/// A server over one database, with a client. Stops when dropped.
pub(crate) struct Shop {
    pub(crate) runtime: Runtime,
    pub(crate) probe: Probe,
    pub(crate) store: Faulty,
    pub(crate) place: Arc<Place>,
    pub(crate) client: reqwest::Client,
    addr: SocketAddr,
    server: tokio::task::JoinHandle<()>,
}

#[derive(Clone, FromRef)]
pub(crate) struct App {
    pub(crate) idem: Runtime,
    pub(crate) probe: Probe,
}

impl Shop {
    pub(crate) async fn open(router: Router<App>) -> Self {
        Self::open_with(router, |builder| builder).await
    }

    /// Leases of 2 s, no local cache and no purge, unless `configure` says otherwise: tests look at the store.
    pub(crate) async fn open_with(router: Router<App>, configure: impl FnOnce(Builder) -> Builder) -> Self {
        Self::open_on(Arc::new(Place::new()), router, configure).await
    }

    /// A second process, as far as the database can tell.
    pub(crate) async fn open_on(
        place: Arc<Place>,
        router: Router<App>,
        configure: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        place.migrate().await;
        let store = place.connect().await;
        Self::open_over(place, store, router, configure).await
    }

    /// Over a store of the test's own making; `place` is what `sql` and `count` look at.
    pub(crate) async fn open_over(
        place: Arc<Place>,
        store: Arc<dyn Store>,
        router: Router<App>,
        configure: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let faults = Faulty::default();
        let builder = Runtime::builder(faults.around(store))
            .namespace("shop")
            .lease(Duration::from_secs(2))
            .cache_bytes(0)
            .operations_at("/operations/{id}")
            .purge_every(Duration::ZERO)
            .serve_only(|op| !op.starts_with("faulty.") && op != "tx.short"); // which is too long for this lease
        let runtime = configure(builder).build().await.unwrap();
        let probe = Probe::default();
        let app = App { idem: runtime.clone(), probe: probe.clone() };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let router = router.with_state(app);
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        // A time limit, so that what hangs fails.
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(20))
            .build()
            .unwrap();
        Self { runtime, probe, store: faults, place, client, addr, server }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// A POST of tenant `acme` with this key.
    pub(crate) fn post(&self, path: &str, key: &str) -> RequestBuilder {
        self.client.post(self.url(path)).bearer_auth("acme").header("idempotency-key", key)
    }

    /// The same service without the socket, for tests that must decide when a request goes on or is dropped.
    pub(crate) fn service(&self, router: Router<App>) -> Router {
        router.with_state(App { idem: self.runtime.clone(), probe: self.probe.clone() })
    }

    /// The record of acme's key.
    pub(crate) async fn record(&self, op: &str, key: &str) -> Record {
        self.runtime.find(op, "acme", key).await.unwrap().expect("there is a record")
    }

    /// What a frozen process looks like from outside: no renewal arrives any more, and the leases have ended.
    pub(crate) async fn freeze(&self) {
        self.store.tell(Verb::Renew, Fault::Down);
        self.pass(Duration::from_secs(5)).await;
    }

    /// Lets `by` pass for every record, by the database's clock. Not since the last purge: that would be a clock that
    /// jumped.
    pub(crate) async fn pass(&self, by: Duration) {
        self.place.pass(by).await;
    }

    pub(crate) async fn sql(&self, sql: &str) {
        self.place.sql(sql).await;
    }

    /// One integer.
    pub(crate) async fn count(&self, sql: &str) -> i64 {
        self.place.count(sql).await
    }

    /// How many records there are.
    pub(crate) async fn records(&self) -> i64 {
        self.place.records().await
    }

    /// The state of the only record: see `State::code`.
    pub(crate) async fn state(&self) -> i64 {
        self.count("select state from idem_key").await
    }

    /// How often the store was asked for anything on behalf of a request.
    pub(crate) fn asked(&self) -> usize {
        use Verb::{Claim, Find, Finish, Link, Peek};
        [Claim, Peek, Finish, Link, Find].into_iter().map(|verb| self.store.calls(verb)).sum()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Waits until `what` holds; fails after 10 s. For what happens on other tasks: never for time that must pass.
pub(crate) async fn eventually(what: impl AsyncFn() -> bool) {
    for _ in 0..1000 {
        if what().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("did not happen within 10 s");
}

/// The oracle: what has happened, append-only, and a gate at which bodies can be held.
#[derive(Clone, Default)]
pub(crate) struct Probe {
    effects: Arc<Mutex<Vec<String>>>,
    started: Arc<AtomicUsize>,
    gate: Arc<tokio::sync::RwLock<()>>,
}

impl Probe {
    pub(crate) fn effect(&self, what: impl Into<String>) {
        self.effects.lock().unwrap().push(what.into());
    }

    pub(crate) fn effects(&self) -> usize {
        self.effects.lock().unwrap().len()
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.effects.lock().unwrap().clone()
    }

    /// Bodies that have started.
    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    /// Holds every body before its effect until the guard is dropped.
    pub(crate) async fn hold(&self) -> tokio::sync::OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.gate).write_owned().await
    }

    /// Counts as started, and waits while bodies are held.
    pub(crate) async fn pass(&self) {
        self.started.fetch_add(1, Ordering::SeqCst);
        drop(self.gate.read().await);
    }

    /// What the tests' bodies do: pass the gate, have the effect, answer as planned. The answer names the effect, so
    /// that two runs cannot look like one.
    pub(crate) async fn perform(&self, plan: &Plan) -> Response {
        self.pass().await;
        let n = self.effects() + 1;
        self.effect(format!("effect {n}"));
        assert!(!plan.panic, "the plan said so");
        let status = StatusCode::from_u16(plan.status.unwrap_or(201)).unwrap();
        (status, [(HeaderName::from_static("location"), format!("/things/{n}"))], format!("effect {n}")).into_response()
    }
}

/// What a body is to do, as JSON; anything else in the payload only makes it another payload.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Plan {
    pub(crate) status: Option<u16>,
    pub(crate) panic: bool,
}

/// The bearer token is the tenant; `x:rotated` acts for `x`.
#[derive(Debug, Clone)]
pub(crate) struct Tenant(pub(crate) String);

impl ScopePart for Tenant {
    fn write_scope(&self, out: &mut ScopeWriter) {
        self.0.write_scope(out);
    }
}

impl<S: Sync> FromRequestParts<S> for Tenant {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        let token = parts.headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let tenant = token.and_then(|token| token.split(':').next()).filter(|tenant| !tenant.is_empty());
        tenant.map(|tenant| Self(tenant.to_owned())).ok_or(StatusCode::UNAUTHORIZED)
    }
}

/// A problem as a client reads it.
pub(crate) struct Problem {
    pub(crate) status: u16,
    pub(crate) slug: String,
    pub(crate) retry_after: Option<u64>,
    pub(crate) body: serde_json::Value,
}

/// Reads a problem, and checks what holds for all of them.
pub(crate) async fn problem(response: reqwest::Response) -> Problem {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.unwrap();
    assert_eq!(headers["content-type"], "application/problem+json", "{status} {text}");
    assert_eq!(headers["cache-control"], "no-store");
    assert!(!headers.contains_key("idempotent-replayed"));
    let body: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(body["status"], status);
    let type_uri = body["type"].as_str().unwrap();
    assert_eq!(headers["link"], format!("<{type_uri}>; rel=\"describedby\""));
    let slug = type_uri.rsplit('#').next().unwrap().to_owned();
    let retry_after = headers.get("retry-after").map(|value| value.to_str().unwrap().parse().unwrap());
    Problem { status, slug, retry_after, body }
}

/// An answer, whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) location: Option<String>,
    pub(crate) body: String,
    pub(crate) replayed: bool,
}

impl Seen {
    /// The body ran for it, and well.
    pub(crate) fn ran(&self) -> bool {
        !self.replayed && matches!(self.status, 200..=299)
    }
}

pub(crate) async fn seen(response: reqwest::Response) -> Seen {
    let headers = response.headers();
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let (location, replayed) = (text("location"), text("idempotent-replayed").as_deref() == Some("true"));
    Seen { status: response.status().as_u16(), location, replayed, body: response.text().await.unwrap() }
}

/// A refusal, as status and slug.
pub(crate) async fn refusal(response: reqwest::Response) -> (u16, String) {
    let problem = problem(response).await;
    (problem.status, problem.slug)
}

/// The usual handler of tests, as a macro since the annotation is what differs: `handler!(name, op = "..", ..)`.
macro_rules! handler {
    ($name:ident, $($annotation:tt)*) => {
        #[idem_runtime::idempotent(scope = "tenant", $($annotation)*)]
        pub(crate) async fn $name(
            tenant: crate::support::Tenant,
            axum::extract::State(probe): axum::extract::State<crate::support::Probe>,
            axum::Json(plan): axum::Json<crate::support::Plan>,
        ) -> axum::response::Response {
            probe.perform(&plan).await
        }
    };
}
pub(crate) use handler;

/// A run that records what its execution says.
#[allow(dead_code, reason = "used by some topics")]
pub(crate) fn describe(exec: &Execution) -> Json<serde_json::Value> {
    Json(serde_json::json!({
        "attempts": exec.attempts(), "fence": exec.fence().0, "provider_key": exec.provider_key(),
        "protected": exec.is_protected(), "attempt": exec.attempt().to_string(),
    }))
}
