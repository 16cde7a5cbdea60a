//! A wire to the database that is slow or is cut, seen from the callers' side. SQLite has no wire: there, the same is
//! shown by a store that fails as told (`store_faults`, `transactions/lost_replies`, `disconnects`).

mod on_postgres;
