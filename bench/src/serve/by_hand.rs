//! What careful people write without a library: a table of their own, few statements, each of them good SQL. Payloads are
//! compared, what is there already is replayed, and a lease that is over is taken.

pub(super) mod postgres;
pub(super) mod sqlite;
