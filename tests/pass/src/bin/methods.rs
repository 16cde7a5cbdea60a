//! Methods with `self` in `runtime`, `scope` and `key`: by reference, by value, by `Arc`; in a generic `impl`, in a native
//! async trait, and behind `#[async_trait]` (C113).
#![deny(warnings)]

mod support;

use std::sync::Arc;

use idem_runtime::{Error, Execution, Runtime, idempotent};

struct Event {
    id: u64,
    tenant: String,
}

struct Billing<T> {
    idem: Runtime,
    region: String,
    rate: T,
    seen: u64,
}

impl<T> Billing<T>
where
    T: Copy + Into<u64>,
{
    fn key_of(&self, event: &Event) -> String {
        format!("{}-{}", self.region, event.id)
    }

    #[idempotent(function, runtime = self.idem, scope = (self.region, event.tenant), op = "settle", key = self.key_of(&event))]
    async fn settle(&self, event: Event, #[idem] exec: Execution) -> Result<u64, Error> {
        Ok(event.id * self.rate.into() + u64::from(exec.attempts()))
    }

    #[idempotent(function, runtime = self.idem, scope = global, op = "count", key = id)]
    async fn count(&mut self, id: u64) -> Result<u64, Error> {
        self.seen += id;
        Ok(self.seen)
    }

    #[idempotent(function, runtime = self.idem, scope = self.region, op = "close", key = 1_u8)]
    async fn close(mut self) -> Result<String, Error> {
        self.region.push('!');
        Ok(self.region)
    }

    #[idempotent(function, runtime = self.idem, scope = global, op = "shared", key = self.seen)]
    async fn shared(self: Arc<Self>) -> Result<u64, Error> {
        Ok(self.seen)
    }
}

trait Consumer {
    fn handle(&self, event: Event) -> impl Future<Output = Result<u64, Error>> + Send;
}

impl<T: Copy + Into<u64> + Sync> Consumer for Billing<T> {
    #[idempotent(function, runtime = self.idem, scope = event.tenant, op = "native-trait", key = self.key_of(&event))]
    async fn handle(&self, event: Event) -> Result<u64, Error> {
        Ok(event.id + self.rate.into())
    }
}

#[async_trait::async_trait]
trait BoxedConsumer {
    async fn boxed(&self, event: Event) -> Result<u64, Error>;
}

#[async_trait::async_trait]
impl BoxedConsumer for Billing<u8> {
    async fn boxed(&self, event: Event) -> Result<u64, Error> {
        self.settle(event).await
    }
}

trait WithDefault: Sync {
    fn idem(&self) -> &Runtime;

    #[idempotent(function, runtime = self.idem(), scope = global, op = "default-method", key = id)]
    async fn run(&self, id: u64) -> Result<u64, Error> {
        Ok(id)
    }
}

impl<T: Sync> WithDefault for Billing<T> {
    fn idem(&self) -> &Runtime {
        &self.idem
    }
}

fn event() -> Event {
    Event { id: 3, tenant: "acme".to_owned() }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut billing = Billing { idem: support::runtime().await, region: "eu".to_owned(), rate: 2_u8, seen: 0 };
    assert_eq!(billing.settle(event()).await.unwrap(), 7);
    assert_eq!(BoxedConsumer::boxed(&billing, event()).await.unwrap(), 7, "the same operation: a replay");
    assert_eq!(Consumer::handle(&billing, event()).await.unwrap(), 5);
    assert_eq!(billing.run(9).await.unwrap(), 9);
    assert_eq!([billing.count(1).await.unwrap(), billing.count(1).await.unwrap(), billing.seen], [1, 1, 1]);
    let shared = Arc::new(Billing { idem: billing.idem.clone(), region: String::new(), rate: 1_u8, seen: 4 });
    assert_eq!(shared.shared().await.unwrap(), 4);
    assert_eq!(billing.close().await.unwrap(), "eu!");
}
