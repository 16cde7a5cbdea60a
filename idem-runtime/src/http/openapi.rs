//! Writes the idempotency of a service into its OpenAPI document (feature `utoipa`).
//!
//! [`Runtime::document`] adds to every annotated operation of a [`utoipa::openapi::OpenApi`]: the key's header as a
//! parameter, the problems as responses with their schema and `Retry-After`, `Idempotent-Replayed` and
//! `Idempotency-Status` on its successes, and an `x-idempotency` extension with the rules of
//! [`operations`](crate::operations) (without the function's name). The builder's `header`, `mismatch_status`,
//! `problem_base`, `authorize_replay` and `problem_response` are respected; with the last, whose format only you
//! know, the added responses have no content.
//!
//! What is there already stays as it is: a parameter of that name, a response of that status, a header, the
//! extension, a schema `IdempotencyProblem`. So it may be applied twice. A response that is a `$ref` is left alone.
//!
//! `#[utoipa::path]` stands above `#[idempotent]`, so that it sees the signature that you wrote:
//!
//! ```standalone_crate
//! # use axum::{Json, http::StatusCode, extract::{FromRef, FromRequestParts}, http::request::Parts};
//! # use idem_runtime::{MemoryStore, Runtime, ScopePart, ScopeWriter, idempotent};
//! # struct Tenant;
//! # impl ScopePart for Tenant { fn write_scope(&self, out: &mut ScopeWriter) { "acme".write_scope(out) } }
//! # impl<S: Sync> FromRequestParts<S> for Tenant { type Rejection = StatusCode;
//! #   async fn from_request_parts(_: &mut Parts, _: &S) -> Result<Self, StatusCode> { Ok(Self) } }
//! use utoipa::OpenApi;
//!
//! #[utoipa::path(post, path = "/charges", responses((status = 201, description = "Charged")))]
//! #[idempotent(scope = "tenant", op = "charge")]
//! async fn charge(tenant: Tenant) -> StatusCode {
//!     StatusCode::CREATED
//! }
//!
//! #[derive(OpenApi)]
//! #[openapi(paths(charge))]
//! struct Api;
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = Runtime::builder(MemoryStore::volatile()).namespace("payments").build().await?;
//! let mut api = Api::openapi();
//! let report = runtime.document(&mut api);
//! assert!(report.is_complete(), "{report:?}"); // better in a test than at start
//! assert!(api.to_json()?.contains("Idempotency-Key"));
//! # Ok(()) }
//! ```

mod describe;

use std::collections::BTreeSet;

use http::Method;
use utoipa::openapi::{
    OpenApi,
    path::{Operation, PathItem},
};

use self::describe::Description;
use crate::{
    Runtime,
    operations::{Kind, OperationInfo},
};

/// Where an annotated operation stands in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum At {
    /// Where `operationId` is this. utoipa's default is the function's name.
    Id(String),
    /// At this path, as the document has it, by this method: where ids are ambiguous.
    Path(String, Method),
    /// Nowhere, and nobody misses it.
    Nowhere,
}

/// What [`Runtime::document`] has found. Each operation stands in one of the lists, by its `op`; but for
/// [`At::Nowhere`] and plain functions, which stand in none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "says which operations the document does not tell of"]
pub struct Report {
    /// The document tells of these now.
    pub documented: Vec<&'static str>,
    /// These are mounted for GET, HEAD, OPTIONS or TRACE only, where keys are ignored: nothing is added.
    pub ignored: Vec<&'static str>,
    /// The document does not have these.
    pub not_found: Vec<&'static str>,
    /// These could be at several paths, or share a place with another one: nothing is added. Say where, by
    /// [`Runtime::document_with`].
    pub ambiguous: Vec<&'static str>,
}

impl Report {
    /// Every operation was found, once.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.not_found.is_empty() && self.ambiguous.is_empty()
    }
}

impl Runtime {
    /// Adds what a client must know to every operation of `api` whose `operationId` is the name of a function that this
    /// runtime serves; see [`openapi`](crate::openapi).
    pub fn document(&self, api: &mut OpenApi) -> Report {
        self.document_with(api, |info| At::Id(info.function.to_owned()))
    }

    /// As [`document`](Self::document); `at` says where an operation stands.
    ///
    /// ```
    /// # fn example(runtime: &idem_runtime::Runtime, api: &mut utoipa::openapi::OpenApi) {
    /// use idem_runtime::openapi::At;
    ///
    /// let report = runtime.document_with(api, |info| match info.op {
    ///     "charge" => At::Id("createCharge".to_owned()),
    ///     "refund" => At::Path("/charges/{id}/refund".to_owned(), http::Method::POST),
    ///     "internal.sweep" => At::Nowhere,
    ///     _ => At::Id(info.function.to_owned()),
    /// });
    /// # let _ = report;
    /// # }
    /// ```
    pub fn document_with(&self, api: &mut OpenApi, at: impl Fn(&OperationInfo) -> At) -> Report {
        let sites = sites(api);
        let mut report = Report::default();
        let mut found: Vec<(&OperationInfo, Vec<&Site>)> = Vec::new();
        for info in self.operations().iter().filter(|info| info.kind == Kind::Handler) {
            let at = at(info);
            if at == At::Nowhere {
                continue;
            }
            let here: Vec<_> = sites.iter().filter(|site| site.is(&at)).collect();
            let paths: BTreeSet<_> = here.iter().map(|site| &site.path).collect();
            let keyed: Vec<_> = here.into_iter().filter(|site| site.takes_a_key()).collect();
            match (paths.len(), keyed.is_empty()) {
                (0, _) => report.not_found.push(info.op),
                (1, true) => report.ignored.push(info.op),
                (1, false) => found.push((info, keyed)),
                _ => report.ambiguous.push(info.op),
            }
        }
        let shared = |info: &OperationInfo, site: &Site| {
            found.iter().any(|(other, theirs)| other.op != info.op && theirs.contains(&site))
        };
        for (info, here) in &found {
            if here.iter().any(|site| shared(info, site)) {
                report.ambiguous.push(info.op);
                continue;
            }
            let description = Description::new(info, &self.config().http);
            here.iter().for_each(|site| description.add_to(api, &site.path, &site.method));
            report.documented.push(info.op);
        }
        report.ambiguous.sort_unstable();
        report
    }
}

/// One operation of a document.
#[derive(PartialEq)]
struct Site {
    path: String,
    method: String,
    id: Option<String>,
}

impl Site {
    fn is(&self, at: &At) -> bool {
        match at {
            At::Id(id) => self.id.as_ref() == Some(id),
            At::Path(path, method) => self.path == *path && self.method == method.as_str(),
            At::Nowhere => false,
        }
    }

    /// Safe methods run as they are.
    fn takes_a_key(&self) -> bool {
        !["GET", "HEAD", "OPTIONS", "TRACE"].contains(&&*self.method)
    }
}

fn sites(api: &mut OpenApi) -> Vec<Site> {
    let mut sites = Vec::new();
    for (path, item) in &mut api.paths.paths {
        sites.extend(methods(item).map(|(method, operation)| Site {
            path: path.clone(),
            method: method.to_owned(),
            id: operation.operation_id.clone(),
        }));
    }
    sites
}

/// The operations of a path, by method.
fn methods(item: &mut PathItem) -> impl Iterator<Item = (&str, &mut Operation)> {
    let named = [
        ("GET", &mut item.get),
        ("PUT", &mut item.put),
        ("POST", &mut item.post),
        ("DELETE", &mut item.delete),
        ("OPTIONS", &mut item.options),
        ("HEAD", &mut item.head),
        ("PATCH", &mut item.patch),
        ("TRACE", &mut item.trace),
        ("QUERY", &mut item.query),
    ];
    let named = named.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)));
    named.chain(item.additional_operations.iter_mut().map(|(method, operation)| (&**method, operation)))
}
