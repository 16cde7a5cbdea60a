use idem_runtime::idempotent;

#[idempotent(scope = global, op = "charge")]
struct Charge {
    amount: u64,
}

fn main() {
    let _ = Charge { amount: 1 }.amount;
}
