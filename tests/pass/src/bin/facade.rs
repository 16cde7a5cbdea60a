//! C111: the runtime re-exported by a facade, by path and out of a `macro_rules` macro of that facade.
#![deny(warnings)]

mod support;

mod platform {
    pub use idem_runtime as idem;
    pub use idem_runtime::idempotent;

    #[macro_export]
    macro_rules! handler {
        ($name:ident, $op:literal) => {
            #[$crate::platform::idempotent(crate = $crate::platform::idem, scope = tenant.0, op = $op, ttl = "1h")]
            async fn $name(tenant: ::axum::extract::Path<String>, body: String) -> String {
                format!("{} {body}", tenant.0)
            }
        };
    }
}

#[platform::idempotent(crate = crate::platform::idem, scope = "tenant", op = "facade", in_flight = wait("2s"), client_errors = keep("1s"), payload = raw, key_format = uuid, state = platform::idem::Runtime)]
async fn by_path(
    axum::extract::Path(tenant): axum::extract::Path<String>,
    #[idem] exec: platform::idem::Execution,
    body: String,
) -> String {
    format!("{tenant} {body} {}", exec.attempts())
}

#[platform::idempotent(crate = crate::platform::idem, function, runtime = idem, scope = global, op = "facade-function", key = id)]
async fn function(idem: &platform::idem::Runtime, id: u64) -> Result<u64, platform::idem::Error> {
    let _ = idem;
    Ok(id)
}

handler!(by_macro, "by-macro");

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let idem = support::runtime().await;
    let router = axum::Router::new()
        .route("/path/{tenant}", axum::routing::put(by_path))
        .route("/macro/{tenant}", axum::routing::post(by_macro))
        .with_state(idem.clone());
    assert_eq!(support::post(&router, "/macro/acme", "x").await, (200, "acme x".to_owned()));
    assert_eq!(function(&idem, 3).await.unwrap(), 3);
}
