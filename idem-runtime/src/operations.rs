//! Which operations a runtime serves, and by which rules: for those who call them, and for whoever checks a deploy.
//!
//! [`Runtime::operations`] is the list. It is JSON as it is, `Json(runtime.operations())` for instance, one object per
//! operation:
//!
//! ```json
//! {
//!   "op": "charge",
//!   "kind": "handler",
//!   "function": "charge",
//!   "scope": "tenant",
//!   "foreign_scope": { "rule": "isolate" },
//!   "key": { "from": "header", "name": "Idempotency-Key", "required": true, "format": "any" },
//!   "payload": { "rule": "whole" },
//!   "ttl_seconds": 86400,
//!   "refuse_late_seconds": 86400,
//!   "in_flight": { "rule": "wait", "wait_seconds": 10 },
//!   "client_errors": { "rule": "release" },
//!   "in_doubt": { "rule": "hold" },
//!   "provider_window_seconds": null,
//!   "timeout_seconds": null,
//!   "webhook": false,
//!   "order": null
//! }
//! ```
//!
//! All members are always there. Durations are whole seconds: what is promised (`ttl_seconds`, `refuse_late_seconds`,
//! `provider_window_seconds`) is rounded down, what is a limit (`wait_seconds`, `timeout_seconds`) up; annotations are whole seconds anyway. Members
//! and rules may be added; none is renamed or changes its meaning.
//!
//! | member | values |
//! |---|---|
//! | `kind` | `handler`, `function` |
//! | `key.from` | `header`, with `name`, `required` and `format` (`any`: 1 to 255 visible ASCII characters; `uuid`: hyphenated) · `expression`, with `expression` as it is annotated |
//! | `payload.rule` | `whole` · `raw` · `fields`, with `fields`, JSON pointers · `none` |
//! | `foreign_scope.rule` | `isolate`: another scope's key is another key · `reject`: it is refused as another payload is |
//! | `in_flight.rule` | `reject` · `wait`, with `wait_seconds` · `accepted` |
//! | `client_errors.rule` | `release` · `keep`, with `keep_seconds` · `store` |
//! | `in_doubt.rule` | `hold`: never run again by itself · `rerun_deduped`: run again by the next retry, for `provider_window_seconds` · `continued`: its steps are continued by the next retry, each begun again for `provider_window_seconds` |
//! | `order` | `null` · JSON pointers: `object`, and `sequence` |
//!
//! They mean what the arguments of [`idempotent`](crate::idempotent) of the same names mean.

use std::time::Duration;

use serde::{Serialize, Serializer, ser::SerializeStruct};

pub use crate::operation::{ClientErrors, ForeignScope, InDoubt, InFlight, KeyFormat, Kind, OrderRule, PayloadRule};
use crate::{Runtime, operation::Operation};

/// One operation: its annotation, with the builder's defaults where that says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OperationInfo {
    /// The operation.
    pub op: &'static str,
    /// What carries the annotation.
    pub kind: Kind,
    /// The function's name.
    pub function: &'static str,
    /// Whose keys they are, as the annotation has it: a parameter, an expression's text, or `global`.
    pub scope: &'static str,
    /// What the key of another scope is.
    pub foreign_scope: ForeignScope,
    /// Where the key comes from.
    pub key: KeyRule,
    /// What "the same payload" means.
    pub payload: PayloadRule,
    /// How long an answer is replayed, from the first request on.
    #[serde(rename = "ttl_seconds", serialize_with = "rounded_down")]
    pub ttl: Duration,
    /// How long a key is refused instead of run anew, from the first request on; at least `ttl`.
    #[serde(rename = "refuse_late_seconds", serialize_with = "rounded_down")]
    pub refuse_late: Duration,
    /// What a duplicate gets while the first run is under way.
    pub in_flight: InFlight,
    /// What becomes of a 4xx.
    pub client_errors: ClientErrors,
    /// What becomes of an operation whose outcome is unknown.
    pub in_doubt: InDoubt,
    /// How long it may be run again, from the first request on, if it may.
    #[serde(rename = "provider_window_seconds", serialize_with = "all_rounded_down")]
    pub provider_window: Option<Duration>,
    /// The body's deadline; past it, its outcome is unknown.
    #[serde(rename = "timeout_seconds", serialize_with = "rounded_up")]
    pub timeout: Option<Duration>,
    /// Its calls are events that a sender delivers again: no refusal of this crate is 409 or 410.
    pub webhook: bool,
    /// Where its events stand among those of their object, if they are applied in order.
    pub order: Option<OrderRule>,
}

/// Where a key comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyRule {
    /// A request header.
    #[non_exhaustive]
    Header {
        /// As the annotation or the builder writes it.
        name: String,
        /// Whether a request without it is refused; else it runs unprotected.
        required: bool,
        /// What it must look like.
        format: KeyFormat,
    },
    /// An expression over the function's parameters.
    #[non_exhaustive]
    Expression {
        /// Its text.
        expression: &'static str,
    },
}

impl Runtime {
    /// The operations that this runtime serves, by `op`, with their rules. Fixed when it was built.
    ///
    /// Those of the whole program but for what [`Builder::serve_only`](crate::Builder::serve_only) leaves out. Neither
    /// keys nor callers are in it; the texts of annotated expressions are.
    #[must_use]
    pub fn operations(&self) -> &[OperationInfo] {
        self.config().served.get_or_init(|| {
            let mut all: Vec<_> = self.config().served().map(|operation| OperationInfo::new(operation, self)).collect();
            all.sort_unstable_by_key(|info| info.op);
            all
        })
    }
}

impl OperationInfo {
    fn new(operation: &Operation, runtime: &Runtime) -> Self {
        let (config, rules) = (runtime.config(), runtime.rules(operation));
        #[cfg(feature = "axum")]
        let header = operation.header.unwrap_or(&config.http.header_as_written);
        #[cfg(not(feature = "axum"))]
        let header = operation.header.unwrap_or_default(); // there are no handlers
        let header =
            || KeyRule::Header { name: header.to_owned(), required: !operation.optional, format: operation.key_format };
        Self {
            op: operation.op,
            kind: operation.kind,
            function: operation.place.function,
            scope: operation.scope,
            foreign_scope: operation.foreign_scope,
            key: operation.key.map_or_else(header, |expression| KeyRule::Expression { expression }),
            payload: operation.payload,
            ttl: rules.ttl,
            refuse_late: rules.guard,
            in_flight: operation.in_flight_or(config.in_flight),
            client_errors: operation.client_errors,
            in_doubt: operation.in_doubt,
            provider_window: operation.reruns().then_some(config.provider_window),
            timeout: operation.timeout,
            webhook: operation.webhook,
            order: operation.order,
        }
    }
}

/// A rule as JSON: its word, and what belongs to it.
fn rule<S: Serializer>(
    serializer: S,
    word: &'static str,
    more: Option<(&'static str, impl Serialize)>,
) -> Result<S::Ok, S::Error> {
    let mut object = serializer.serialize_struct("Rule", 1 + usize::from(more.is_some()))?;
    object.serialize_field("rule", word)?;
    if let Some((member, value)) = more {
        object.serialize_field(member, &value)?;
    }
    object.end()
}

/// What belongs to a rule that is a word alone.
const ALONE: Option<(&str, u64)> = None;

impl Serialize for InFlight {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Reject => rule(serializer, "reject", ALONE),
            Self::Accepted => rule(serializer, "accepted", ALONE),
            Self::Wait(limit) => rule(serializer, "wait", Some(("wait_seconds", up(*limit)))),
        }
    }
}

impl Serialize for ForeignScope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Isolate => rule(serializer, "isolate", ALONE),
            Self::Reject => rule(serializer, "reject", ALONE),
        }
    }
}

impl Serialize for ClientErrors {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Release => rule(serializer, "release", ALONE),
            Self::Keep(window) => rule(serializer, "keep", Some(("keep_seconds", window.as_secs()))),
            Self::Store => rule(serializer, "store", ALONE),
        }
    }
}

impl Serialize for PayloadRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Whole => rule(serializer, "whole", ALONE),
            Self::Raw => rule(serializer, "raw", ALONE),
            Self::Fields(pointers) => rule(serializer, "fields", Some(("fields", pointers))),
            Self::None => rule(serializer, "none", ALONE),
        }
    }
}

impl Serialize for InDoubt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Hold => rule(serializer, "hold", ALONE),
            Self::RerunDeduped => rule(serializer, "rerun_deduped", ALONE),
            Self::Continued => rule(serializer, "continued", ALONE),
        }
    }
}

fn up(duration: Duration) -> u64 {
    duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0))
}

fn rounded_down<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(duration.as_secs())
}

fn all_rounded_down<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs()).serialize(serializer)
}

fn rounded_up<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(up).serialize(serializer)
}
