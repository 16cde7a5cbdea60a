use idem_runtime::{Error, Runtime, idempotent};

trait Consumer {
    #[idempotent(function, runtime = idem, scope = global, op = "handle", key = id)]
    async fn handle(&self, idem: &Runtime, id: u64) -> Result<u64, Error>;
}

impl Consumer for () {
    async fn handle(&self, _idem: &Runtime, id: u64) -> Result<u64, Error> {
        Ok(id)
    }
}

fn main() {
    let _ = <() as Consumer>::handle;
}
