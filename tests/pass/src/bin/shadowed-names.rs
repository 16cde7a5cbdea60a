//! C49: modules, types, macros and variants named like everything that an expansion could mention.
#![deny(warnings)]

mod support;

mod hostile {
    #![allow(dead_code, non_snake_case, non_camel_case_types, unused_macros, unused_imports)]

    use ::axum::extract::{Json as J, Path as P};

    mod std {}
    mod core {}
    mod axum {}
    mod idem_runtime {}
    mod idempotent {}
    mod tokio {}
    mod inventory {}
    mod private {}

    type Result<T> = ::core::result::Result<T, Failed>;
    pub struct Failed;
    impl ::axum::response::IntoResponse for Failed {
        fn into_response(self) -> ::axum::response::Response {
            ::axum::http::StatusCode::BAD_REQUEST.into_response()
        }
    }
    impl From<::idem_runtime::Error> for Failed {
        fn from(_: ::idem_runtime::Error) -> Self {
            Self
        }
    }
    use ::core::convert::From;

    enum Odd {
        Ok,
        Err,
        Some,
        None,
        Send,
        Sized,
    }
    use Odd::*;
    fn Box() {}
    fn drop() {}
    struct Vec;
    struct String;
    struct Option;
    struct Operation;
    struct Runtime;
    struct Response;
    struct Duration;
    struct u64_;
    trait Future {}
    trait FnOnce {}
    trait Sized {}
    trait Deref {}
    macro_rules! file {
        () => {
            1
        };
    }
    macro_rules! line {
        () => {
            "x"
        };
    }
    macro_rules! column {
        () => {
            "x"
        };
    }
    macro_rules! compile_error {
        () => {};
    }

    #[::idem_runtime::idempotent(scope = tenant, op = "hostile", ttl = "24h", in_flight = wait("3s"), payload = fields("/a"))]
    pub async fn charge(
        P(tenant): P<::std::string::String>,
        #[idem] exec: ::idem_runtime::Execution,
        J(amount): J<u32>,
    ) -> Result<::std::string::String> {
        ::core::result::Result::Ok(::std::format!("{tenant} {amount} {}", exec.attempts()))
    }

    #[::idem_runtime::idempotent(function, runtime = idem, scope = global, op = "hostile-function", key = id)]
    pub async fn capture(
        idem: &::idem_runtime::Runtime,
        id: u32,
        #[idem] exec: ::idem_runtime::Execution,
    ) -> Result<u32> {
        let _ = idem;
        ::core::result::Result::Ok(id + exec.attempts())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let idem = support::runtime().await;
    let router = axum::Router::new().route("/{tenant}", axum::routing::post(hostile::charge)).with_state(idem.clone());
    assert_eq!(support::post(&router, "/acme", "7").await, (200, "acme 7 1".to_owned()));
    assert!(matches!(hostile::capture(&idem, 2).await, Ok(3)));
}
