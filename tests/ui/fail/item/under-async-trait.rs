use idem_runtime::{Error, Runtime, idempotent};

struct Billing {
    idem: Runtime,
}

#[async_trait::async_trait]
trait Consumer {
    async fn handle(&self, id: u64) -> Result<u64, Error>;
}

#[async_trait::async_trait]
impl Consumer for Billing {
    #[idempotent(function, runtime = self.idem, scope = global, op = "handle", key = id)]
    async fn handle(&self, id: u64) -> Result<u64, Error> {
        Ok(id)
    }
}

fn main() {
    let _ = <Billing as Consumer>::handle;
}
