use idem_runtime::{Error, Runtime, idempotent};

struct Billing {
    idem: Runtime,
}

impl Billing {
    #[idempotent(function, runtime = self.idem, scope = global, op = "capture", key = id)]
    async fn capture(#[idem] &self, id: u64) -> Result<u64, Error> {
        Ok(id)
    }
}

fn main() {
    let _ = Billing::capture;
}
