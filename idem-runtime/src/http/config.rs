//! The builder's settings for HTTP.

use std::{collections::HashSet, sync::Arc, time::Duration};

use axum::response::Response;
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue, StatusCode, header, request::Parts};

use super::{problem::Problem, reply};
use crate::{key::RecordId, runtime::Builder};

/// A fault: `accepted` promises a place.
pub(crate) const NO_PLACE: &str = "`in_flight` is `accepted`, but there is no place where the result can be fetched: write `.operations_at(\"/operations/{id}\")`, and mount `Runtime::operation` there";

/// What stands for the record's id in [`Builder::operations_at`].
const ID: &str = "{id}";

pub(crate) struct HttpConfig {
    /// As configured; a fault at `build()` if it is no header name.
    header: Result<HeaderName, String>,
    /// For people, who write header names in capitals.
    pub(crate) header_as_written: String,
    pub(super) max_request: usize,
    pub(super) read_timeout: Duration,
    pub(super) problem_base: String,
    pub(super) mismatch_status: StatusCode,
    pub(super) problem_response: Option<Arc<dyn Fn(Problem) -> Response + Send + Sync>>,
    pub(super) authorize_replay: Option<Arc<dyn Fn(Replaying) -> BoxFuture<'static, bool> + Send + Sync>>,
    pub(super) kept: HashSet<HeaderName>,
    pub(super) omitted: HashSet<HeaderName>,
    /// Where an operation's result can be fetched, with [`ID`] for the record.
    operations_at: Option<String>,
    faults: Vec<String>,
}

pub(super) const PROBLEM_BASE: &str = "https://docs.rs/idem-runtime/latest/idem_runtime/problems/#";

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            header: Ok(HeaderName::from_static("idempotency-key")),
            header_as_written: "Idempotency-Key".to_owned(),
            max_request: 1024 * 1024,
            read_timeout: Duration::from_secs(60),
            problem_base: PROBLEM_BASE.to_owned(),
            mismatch_status: StatusCode::UNPROCESSABLE_ENTITY,
            problem_response: None,
            authorize_replay: None,
            kept: HashSet::new(),
            omitted: HashSet::new(),
            operations_at: None,
            faults: Vec::new(),
        }
    }
}

impl HttpConfig {
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = self.faults.clone();
        faults.extend(self.header.as_ref().err().map(|name| format!("`header(\"{name}\")` is no header name")));
        if ![400, 409, 422].contains(&self.mismatch_status.as_u16()) {
            faults.push("`mismatch_status` must be 422, 409 or 400".to_owned());
        }
        if self.read_timeout.is_zero() {
            faults.push("`read_timeout` must be more than zero".to_owned());
        }
        if let Some(template) = &self.operations_at
            && !is_place(template)
        {
            faults.push(format!(
                "`operations_at({template:?})` must be a path that begins with `/`, or an `http://` or `https://` URL, that \
                 has `{ID}` in the record's place"
            ));
        }
        faults
    }

    pub(crate) fn shows_operations(&self) -> bool {
        self.operations_at.is_some()
    }

    /// The `Location` of an operation.
    pub(super) fn location(&self, record: RecordId) -> Option<HeaderValue> {
        let template = self.operations_at.as_ref()?;
        HeaderValue::try_from(template.replace(ID, &record.to_string())).ok() // a faulty one never gets past `build()`
    }

    /// The default header of the key.
    pub(super) fn header(&self) -> HeaderName {
        self.header.clone().unwrap_or(HeaderName::from_static("idempotency-key")) // a faulty name never gets past `build()`
    }

    fn name(&mut self, name: &str) -> Option<HeaderName> {
        let parsed = HeaderName::try_from(name).ok();
        if parsed.is_none() {
            self.faults.push(format!("`{name}` is no header name"));
        }
        parsed
    }
}

/// Whether a `Location` made of it means the same wherever it is read: a relative one would depend on the request's path.
fn is_place(template: &str) -> bool {
    let is_whole = ["/", "http://", "https://"].iter().any(|start| template.starts_with(start));
    is_whole && template.contains(ID) && HeaderValue::try_from(template).is_ok()
}

/// A stored answer that is about to be shown again: what `authorize_replay` decides on.
#[non_exhaustive]
pub struct Replaying {
    /// The operation.
    pub op: &'static str,
    /// The record.
    pub record: RecordId,
    /// The request that asks for it, without its body: headers, URI, and the extensions that layers have added.
    pub request: Parts,
}

/// Without the request, whose headers carry credentials and the key.
impl std::fmt::Debug for Replaying {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replaying").field("op", &self.op).field("record", &self.record).finish_non_exhaustive()
    }
}

/// Settings of the `axum` feature.
impl Builder {
    /// The header that carries the key, where the annotation does not say. Default `Idempotency-Key`.
    pub fn header(mut self, name: &str) -> Self {
        self.config.http.header = HeaderName::try_from(name).map_err(|_| name.to_owned());
        self.config.http.header_as_written = name.to_owned();
        self
    }

    /// The longest request body in bytes; a longer one gets 413 before anything is claimed. A smaller limit of a
    /// layer or of axum's `DefaultBodyLimit` holds as well. Default 1 MiB.
    pub fn max_request(mut self, bytes: usize) -> Self {
        self.config.http.max_request = bytes;
        self
    }

    /// How long a request's body may take to arrive; later it is 400 `idempotency-request-unreadable`. Default 60 s.
    pub fn read_timeout(mut self, limit: Duration) -> Self {
        self.config.http.read_timeout = limit;
        self
    }

    /// Where problem types are explained: `type` is this text and the slug. Default: this crate's documentation.
    pub fn problem_base(mut self, base: impl Into<String>) -> Self {
        self.config.http.problem_base = base.into();
        self
    }

    /// The status for a key that was used with another payload: 422 (the IETF draft's choice and the default), 409
    /// or 400.
    pub fn mismatch_status(mut self, status: u16) -> Self {
        self.config.http.mismatch_status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
        self
    }

    /// Turns problems into the house's own format, or those of some operations: `problem.into_response()` is what they are
    /// without this. `Retry-After`, `Cache-Control` and `Link` are added where the response does not set them.
    pub fn problem_response(mut self, format: impl Fn(Problem) -> Response + Send + Sync + 'static) -> Self {
        self.config.http.problem_response = Some(Arc::new(format));
        self
    }

    /// Where clients fetch the result of an operation that is under way: the `Location` of a 202, for operations with
    /// `in_flight = accepted`, with the record's id in the place of `{id}`. A path as clients see it, from the `/` on and nesting included, or a
    /// whole URL. Anything else is a fault at `build()`, also a template without `{id}`, and so is `accepted` without this.
    ///
    /// The program mounts [`Runtime::operation`](crate::Runtime::operation) there itself, since only it knows who asks:
    ///
    /// ```
    /// # use axum::{Router, extract::{FromRef, FromRequestParts, Path, State}, http::{StatusCode, request::Parts}, routing::{get, post}};
    /// # use idem_runtime::{InFlight, MemoryStore, RecordId, Runtime, idempotent};
    /// # #[derive(Clone, FromRef)] struct App { idem: Runtime }
    /// # struct Tenant(String);
    /// # impl idem_runtime::ScopePart for Tenant { fn write_scope(&self, out: &mut idem_runtime::ScopeWriter) { self.0.write_scope(out) } }
    /// # impl<S: Sync> FromRequestParts<S> for Tenant { type Rejection = StatusCode;
    /// #   async fn from_request_parts(_: &mut Parts, _: &S) -> Result<Self, StatusCode> { Ok(Self("acme".into())) } }
    /// #[idempotent(scope = "tenant", op = "export", ttl = "24h", in_flight = accepted)]
    /// async fn export(tenant: Tenant) -> String {
    ///     "a long report".to_owned()
    /// }
    ///
    /// # #[tokio::main] async fn main() -> Result<(), idem_runtime::BuildError> {
    /// # let store = MemoryStore::volatile();
    /// let idem = Runtime::builder(store)
    ///     .namespace("reports")
    ///     .operations_at("/operations/{id}")
    /// #   .serve_only(|op| op == "export")
    ///     .build()
    ///     .await?;
    /// let show = |tenant: Tenant, State(idem): State<Runtime>, Path(id): Path<RecordId>| async move {
    ///     idem.operation(id, &tenant).await
    /// };
    /// let app: Router = Router::new()
    ///     .route("/exports", post(export))
    ///     .route("/operations/{id}", get(show))
    ///     .with_state(App { idem });
    /// # Ok(()) }
    /// ```
    pub fn operations_at(mut self, template: impl Into<String>) -> Self {
        self.config.http.operations_at = Some(template.into());
        self
    }

    /// Asks before a stored answer is shown again, after the handler's own extractors have let the request in: for
    /// rights that may have been lowered since. `false` is 403 `idempotency-replay-forbidden`; of an operation with `webhook`,
    /// the first answer's status without all the rest of it, for its sender only has to know that it is done.
    pub fn authorize_replay<F>(mut self, ask: impl Fn(Replaying) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        self.config.http.authorize_replay = Some(Arc::new(move |replaying| Box::pin(ask(replaying))));
        self
    }

    /// Stores and replays this response header although it is left out by default, as `Set-Cookie` is.
    pub fn keep_header(mut self, name: &str) -> Self {
        if let Some(name) = self.config.http.name(name) {
            if name == header::CONTENT_LENGTH || name == header::DATE || reply::is_hop_by_hop(&name) {
                self.config.http.faults.push(format!("`{name}` belongs to one message and cannot be replayed"));
            }
            self.config.http.kept.insert(name);
        }
        self
    }

    /// Does not store this response header.
    pub fn omit_header(mut self, name: &str) -> Self {
        if let Some(name) = self.config.http.name(name) {
            self.config.http.omitted.insert(name);
        }
        self
    }
}
