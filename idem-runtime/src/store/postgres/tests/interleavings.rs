//! Pairs of verbs at one record: see `store::tests::interleavings`. Renewals, purges and recoveries go by what is locked
//! here; all else waits for the record.

use std::sync::Arc;

use super::*;
use crate::store::{
    Store,
    tests::interleavings::{Act, Said, Stage, interleavings},
};

interleavings!(Two::open);

/// A store whose one connection has a transaction open, and another.
struct Two {
    place: Place,
    first: PostgresStore,
    store: Arc<dyn Store>,
}

impl Two {
    async fn open() -> Self {
        let place = Place::new();
        let store = Arc::new(place.migrated().await);
        let first = place.store().with_connections(1);
        Self { place, first, store }
    }

    /// On the connections of the first: the one for purges, and the one for all else.
    async fn on_both(&self, sql: &'static str) {
        let verbs = self.first.verbs();
        for connections in [&verbs.connections, &verbs.purging] {
            let mut connection = connections.lend().await;
            sqlx::raw_sql(sql).execute(&mut *connection).await.unwrap();
            connection.give_back();
        }
    }
}

#[async_trait::async_trait]
impl Clock for Two {
    async fn pass(&self, by: Duration) {
        self.place.pass(by).await;
    }
}

#[async_trait::async_trait]
impl Stage for Two {
    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn goes_by(&self) -> bool {
        true
    }

    async fn hold(&self, act: &Act) -> Said {
        self.on_both("begin").await;
        act.by(&self.first).await
    }

    async fn until_it_waits(&self) {
        until_somebody_waits(&self.place).await;
    }

    async fn end(&self, commit: bool) {
        self.on_both(if commit { "commit" } else { "rollback" }).await;
    }
}
