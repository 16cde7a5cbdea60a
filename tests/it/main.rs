//! End to end.
#![allow(clippy::unwrap_used, reason = "in helpers too: a test ends where something is not as it must be")]

mod accepted;
mod access;
mod basic;
mod builder;
mod cache;
mod costs;
mod deploys;
mod disconnects;
mod expiry;
mod fingerprint;
mod foreign;
mod functions;
mod grafana;
mod interruptions;
mod keys;
mod listing;
mod observing;
mod operations;
mod operators;
mod outcomes;
mod problems;
mod processes;
mod quiet;
mod readme;
mod refusals;
mod replay;
mod requests;
mod results;
mod scope;
mod shutdown;
mod store_faults;
mod support;
mod sweeps;
mod values;
mod waiting;
