#![doc = include_str!("docs/crate.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(feature = "axum"), allow(dead_code, reason = "some of what all share is used by handlers only"))]

mod batch;
mod batching;
mod cache;
mod call;
#[cfg(any(test, feature = "conformance"))]
#[cfg_attr(docsrs, doc(cfg(feature = "conformance")))]
pub mod conformance;
#[cfg(feature = "axum")]
#[doc = include_str!("docs/consumers.md")]
pub mod consumers {}
mod engine;
mod error;
mod execution;
mod fingerprint;
mod function;
#[cfg(feature = "axum")]
mod http;
#[doc = include_str!("docs/in_doubt.md")]
pub mod in_doubt {}
mod input;
pub mod jobs;
mod key;
mod lease;
#[doc = include_str!("docs/modes.md")]
pub mod modes {}
mod observe;
#[doc = include_str!("docs/observing.md")]
pub mod observing {}
mod operation;
pub mod operations;
mod outcome;
mod owner;
#[doc(hidden)]
pub mod private;
#[cfg(feature = "axum")]
pub mod problems;
mod purge;
mod recovery;
mod resume;
mod runtime;
pub mod state;
mod steps;
pub mod store;
mod sweep;
mod transaction;
#[doc = include_str!("docs/tuning.md")]
pub mod tuning {}
mod uncut;
mod wait;

#[doc = include_str!("docs/idempotent.md")]
pub use idem_macros::idempotent;

pub use batch::Batch;
pub use error::{Error, ErrorKind};
pub use execution::Execution;
pub use fingerprint::Fingerprint;
#[cfg(feature = "utoipa")]
#[cfg_attr(docsrs, doc(cfg(feature = "utoipa")))]
pub use http::openapi;
#[cfg(feature = "webhook")]
#[cfg_attr(docsrs, doc(cfg(feature = "webhook")))]
pub use http::webhook;
#[cfg(feature = "axum")]
pub use http::{Final, NotApplied, Problem, ProviderLink, Replayable, Replaying};
pub use key::{Global, InvalidKey, InvalidRecordId, Key, KeyPart, OrderId, RecordId, Scope, ScopePart, ScopeWriter};
pub use operation::InFlight;
pub use operations::OperationInfo;
pub use recovery::{InDoubt, Recovery};
pub use resume::Interrupted;
pub use runtime::{BuildError, Builder, Drained, Fault, Runtime};
pub use steps::{Given, StepKey, Steps};
#[cfg(feature = "postgres")]
pub use store::PostgresStore;
#[cfg(feature = "sqlite")]
pub use store::SqliteStore;
pub use store::{
    Attempt, Audit, Fence, Filter, MemoryStore, Page, Record, Resolution, StepDecision, StepDecisions, StoredResponse,
};
pub use tokio_util::sync::CancellationToken;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "sqlite", feature = "postgres"))))]
pub use transaction::Tx;
