//! The HTTP side: what comes in, what goes out. Knows axum, never SQL.

mod config;
mod handler;
mod header;
pub mod measured;
#[cfg(feature = "utoipa")]
pub mod openapi;
mod operations;
mod order;
mod payload;
mod problem;
mod replayable;
mod reply;
#[cfg(feature = "webhook")]
pub mod webhook;

pub(crate) use self::config::{HttpConfig, NO_PLACE};
pub use self::{
    config::Replaying,
    handler::{Body, Witness, body_runs_on_its_own_task, handle, rejected, unidentified},
    payload::{Incoming, Payload},
    problem::{Problem, ProviderLink},
    replayable::{Final, NotApplied, Replayable},
};
