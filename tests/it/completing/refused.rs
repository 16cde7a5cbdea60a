//! What is refused: an argument that cannot be kept, and a completer that could not call.

use axum::http::StatusCode;
use idem_runtime::MemoryStore;

use super::*;

#[idempotent(function, runtime = idem, scope = global, op = "completing.held", key = id)]
async fn held(idem: &Runtime, id: &str) -> Result<(), Error> {
    let _ = idem;
    Ok(())
}

#[idempotent(function, runtime = idem, scope = global, op = "completing.bare", key = id, in_doubt = rerun_deduped)]
async fn bare(idem: &Runtime, id: &str) -> Result<(), Error> {
    let _ = idem;
    Ok(())
}

#[idempotent(scope = global, op = "completing.handler", in_doubt = rerun_deduped)]
async fn handler(body: String) -> StatusCode {
    drop(body);
    StatusCode::OK
}

#[tokio::test]
async fn clause_25_an_argument_that_is_too_long_is_refused_before_anything_runs() {
    let probe = Probe::default();
    let shop = Shop::open_with(Router::new(), |builder| builder.max_input(60)).await;
    let long = signup(&"x".repeat(40), 0);
    let refused = provision(&shop.runtime, &probe, long).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TooLarge);
    assert!(refused.to_string().contains("`max_input`"), "{refused}");
    assert_eq!((shop.records().await, probe.started()), (0, 0));
    assert_eq!(provision(&shop.runtime, &probe, signup("s1", 0)).await.unwrap(), "s1 by run 1");
    let late = Signup { tenant: "acme".into(), fails: 1_000_000_000, ..signup("s1", 0) };
    let tighter = Shop::open_on(Arc::clone(&shop.place), Router::new(), |builder| builder.max_input(40)).await;
    assert_eq!(provision(&tighter.runtime, &probe, late).await.unwrap(), "s1 by run 1", "what is due is replayed");
}

#[tokio::test]
async fn clause_25_a_completer_that_could_not_call_is_a_fault() {
    let nothing = |_: Interrupted| async { Ok::<(), Error>(()) };
    let named = |op: &str| op.starts_with("completing.") && op != "completing.killed";
    let builder = Runtime::builder(MemoryStore::volatile()).namespace("shop").serve_only(named);
    let built = builder
        .sweep_every(Duration::ZERO)
        .resume("completing.nowhere", nothing)
        .resume("completing.killed", nothing)
        .resume("completing.handler", nothing)
        .resume("completing.held", nothing)
        .resume("completing.bare", nothing)
        .resume("completing.bare", nothing)
        .build()
        .await;
    let told = built.unwrap_err().to_string();
    for expected in [
        "`resume(\"completing.nowhere\", ..)` names no operation of this program",
        "`resume(\"completing.killed\", ..)` names an operation that `serve_only` leaves out",
        "`resume(\"completing.handler\", ..)` names a handler",
        "`resume(\"completing.held\", ..)` names an operation that is never run again",
        "`resume(\"completing.bare\", ..)` needs the argument of the call",
        "`resume(\"completing.bare\", ..)` stands twice",
        "`sweep_every` must be more than zero",
    ] {
        assert!(told.contains(expected), "{expected}\n\nin {told}");
    }
    let _ = (held, bare, handler);
}
