//! Transactional mode, contract 3.5: claim, rows and outcome are one commit.

mod by_hand;
mod ends;
mod functions;
mod in_flight;
mod lost_replies;
mod on_postgres;
mod on_sqlite;
pub(crate) mod shop;
mod told;
