//! A handler that is not mounted, in a public module of a strict crate, is nobody's error and still an operation.
#![forbid(unsafe_code)]
#![deny(warnings)]

mod support;

pub mod handlers {
    use axum::extract::Path;
    use idem_runtime::idempotent;

    #[idempotent(scope = "tenant", op = "unused", ttl = "24h")]
    pub async fn unused(Path(tenant): Path<String>, body: String) -> String {
        tenant + &body
    }

    #[expect(dead_code, reason = "an unused private one is reported as any function")]
    #[idempotent(scope = "tenant", op = "unused-private", ttl = "24h")]
    async fn unused_private(Path(tenant): Path<String>, body: String) -> String {
        tenant + &body
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    support::runtime().await;
}
