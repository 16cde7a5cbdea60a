use super::*;

fn size<A, B, C, D, E, F>(_of: fn(A, B, C, D, E) -> F) -> usize {
    size_of::<F>()
}

/// Bytes that each request has for as long as its body runs, whatever else could have become of it.
#[test]
fn a_body_that_runs_takes_little_memory() {
    let settle = |owner, ended, response, (), ()| engine::settle::<Response>(owner, ended, response);
    let (waiting, rejected, task) = (size(handle), size(rejected), size(settle));
    assert!(waiting < 2200 && rejected < 2200 && task < 1850, "{waiting}, {rejected} and {task} bytes");
}
