//! What the arguments add to a handler.

use expect_test::expect;

use super::{check, expand};

#[test]
fn every_setting() {
    check(
        r#"
        op = "pay.v2", scope = (tenant.id, account), ttl = "1h", refuse_late = "2h", header = "X-Key", optional,
        key_format = uuid, payload = fields("/amount", "/currency"), in_flight = wait("5s"),
        client_errors = keep("30s"), in_doubt = rerun_deduped, timeout = "10s", foreign_scope = reject, webhook, crate = ::platform::idem,
        "#,
        "async fn pay(tenant: Tenant, Path((ref account, mut _n)): Path<(String, u8)>, body: String) { body() }",
        &expect![[r#"
            async fn pay(
                tenant: Tenant,
                __idem_1: Path<(String, u8)>,
                __idem_last: ::platform::idem::private::Payload<String>,
            ) -> ::platform::idem::private::Response {
                let __idem_operation = {
                    static OPERATION: ::platform::idem::private::Operation = ::platform::idem::private::Operation::new(
                            "pay.v2",
                            ::platform::idem::private::Kind::Handler,
                            ::platform::idem::private::Place {
                                file: ::core::file!(),
                                line: ::core::line!(),
                                column: ::core::column!(),
                                function: "pay",
                            },
                        )
                        .scope(::core::stringify!(tenant.id, account))
                        .ttl(3600u64)
                        .refuse_late(7200u64)
                        .header("X-Key")
                        .optional()
                        .key_format(::platform::idem::private::KeyFormat::Uuid)
                        .payload(
                            ::platform::idem::private::PayloadRule::Fields(&["/amount", "/currency"]),
                        )
                        .in_flight(
                            ::platform::idem::private::InFlight::Wait(
                                ::core::time::Duration::from_secs(5u64),
                            ),
                        )
                        .client_errors(
                            ::platform::idem::private::ClientErrors::Keep(
                                ::core::time::Duration::from_secs(30u64),
                            ),
                        )
                        .in_doubt(::platform::idem::private::InDoubt::RerunDeduped)
                        .timeout(10u64)
                        .foreign_scope(::platform::idem::private::ForeignScope::Reject)
                        .webhook();
                    ::platform::idem::private::inventory::submit! {
                        ::platform::idem::private::Registered(& OPERATION)
                    }
                    &OPERATION
                };
                let _ = || {
                    ::platform::idem::private::parameter::<Tenant>().comes_from_the_request();
                    ::platform::idem::private::parameter::<Tenant>().leaves_the_body_to_the_last();
                    ::platform::idem::private::parameter::<Path<(String, u8)>>()
                        .comes_from_the_request();
                    ::platform::idem::private::parameter::<Path<(String, u8)>>()
                        .leaves_the_body_to_the_last();
                    ::platform::idem::private::parameter::<String>().comes_from_the_request();
                };
                let __idem_witness = ::platform::idem::private::replayable::<()>();
                let (__idem_incoming, __idem_value) = __idem_last.open();
                let __idem_scope = ::platform::idem::private::scope(|__idem_out| {
                    #[allow(unused_variables, clippy::pattern_type_mismatch)]
                    let Path((account, _n)) = &__idem_1;
                    ::platform::idem::private::scope_part(&(tenant.id), __idem_out);
                    ::platform::idem::private::scope_part(&(account), __idem_out);
                });
                let __idem_key = ::platform::idem::private::header_key();
                let body = match __idem_value {
                    ::core::result::Result::Ok(__idem_value) => __idem_value,
                    ::core::result::Result::Err(__idem_rejection) => {
                        return ::platform::idem::private::rejected(
                                __idem_operation,
                                __idem_incoming,
                                __idem_scope,
                                __idem_key,
                                __idem_rejection,
                            )
                            .await;
                    }
                };
                let __idem_body = ::platform::idem::private::body_runs_on_its_own_task(
                    __idem_witness,
                    move |__idem_supply: &mut ::platform::idem::private::Supply| {
                        ::core::result::Result::Ok(async move {
                            #[allow(
                                unreachable_code,
                                clippy::diverging_sub_expression,
                                clippy::empty_loop,
                                clippy::let_unit_value
                            )]
                            if false {
                                let __idem_return: () = loop {};
                                return __idem_return;
                            }
                            #[allow(clippy::shadow_same)]
                            let tenant = tenant;
                            let _ = &tenant;
                            let __idem_1 = __idem_1;
                            let Path((ref account, mut _n)) = __idem_1;
                            let _ = &account;
                            #[allow(clippy::shadow_same)]
                            let body = body;
                            { body() }
                        })
                    },
                );
                ::platform::idem::private::handle(
                        __idem_operation,
                        __idem_incoming,
                        __idem_scope,
                        __idem_key,
                        __idem_body,
                    )
                    .await
            }
        "#]],
    );
}

#[test]
fn clause_04_a_place_to_fetch_the_result_is_a_word() {
    let item = "async fn export(t: T) -> String { body() }";
    let expanded = expand(r#"op = "export", scope = t, in_flight = accepted"#, item).to_string();
    assert!(expanded.contains(". in_flight (:: idem_runtime :: private :: InFlight :: Accepted)"), "{expanded}");
}

#[test]
fn readable_errors_for_a_known_state() {
    check(
        r#"scope = user, op = "rename", state = App<Db>"#,
        "async fn rename<Db>(user: User, #[cfg(feature = \"x\")] q: Query<Q>, f: impl Extract, form: Form<F>) -> String { body() }",
        &expect![[r#"
            async fn rename<Db>(
                user: User,
                #[cfg(feature = "x")]
                q: Query<Q>,
                f: impl Extract,
                __idem_last: __p::Payload<Form<F>>,
            ) -> __p::Response {
                let __idem_operation = {
                    static OPERATION: __p::Operation = __p::Operation::new(
                            "rename",
                            __p::Kind::Handler,
                            __p::Place {
                                file: ::core::file!(),
                                line: ::core::line!(),
                                column: ::core::column!(),
                                function: "rename",
                            },
                        )
                        .scope(::core::stringify!(user));
                    __p::inventory::submit! {
                        __p::Registered(& OPERATION)
                    }
                    &OPERATION
                };
                let _ = || {
                    __p::state_must_hold_the_runtime::<App<Db>>();
                    __p::must_be_a_head_extractor::<App<Db>, User>();
                    #[cfg(feature = "x")] __p::must_be_a_head_extractor::<App<Db>, Query<Q>>();
                    __p::must_be_an_extractor::<App<Db>, Form<F>, _>();
                };
                let __idem_witness = __p::replayable::<String>();
                let (__idem_incoming, __idem_value) = __idem_last.open();
                let __idem_scope = __p::scope(|__idem_out| {
                    __p::scope_part(&(user), __idem_out);
                });
                let __idem_key = __p::header_key();
                let form = match __idem_value {
                    ::core::result::Result::Ok(__idem_value) => __idem_value,
                    ::core::result::Result::Err(__idem_rejection) => {
                        return __p::rejected(
                                __idem_operation,
                                __idem_incoming,
                                __idem_scope,
                                __idem_key,
                                __idem_rejection,
                            )
                            .await;
                    }
                };
                let __idem_body = __p::body_runs_on_its_own_task(
                    __idem_witness,
                    move |__idem_supply: &mut __p::Supply| {
                        ::core::result::Result::Ok(async move {
                            #[allow(
                                unreachable_code,
                                clippy::diverging_sub_expression,
                                clippy::empty_loop,
                                clippy::let_unit_value
                            )]
                            if false {
                                let __idem_return: String = loop {};
                                return __idem_return;
                            }
                            #[allow(clippy::shadow_same)]
                            let user = user;
                            let _ = &user;
                            #[cfg(feature = "x")]
                            #[allow(clippy::shadow_same)]
                            let q = q;
                            #[allow(clippy::shadow_same)]
                            let f = f;
                            #[allow(clippy::shadow_same)]
                            let form = form;
                            { body() }
                        })
                    },
                );
                __p::handle(__idem_operation, __idem_incoming, __idem_scope, __idem_key, __idem_body)
                    .await
            }
        "#]],
    );
}

#[test]
fn a_transaction_of_a_type_parameter_is_known_when_it_is_called() {
    let expanded = |item: &str| expand(r#"op = "order", scope = global"#, item).to_string();
    for item in [
        "async fn order<Db: Orders>(#[idem] tx: Tx<Db>) -> String { body() }",
        "async fn order<Sqlite: Orders>(#[idem] tx: idem_runtime::Tx<Sqlite>) -> String { body() }",
    ] {
        let expanded = expanded(item);
        assert!(expanded.contains("Database :: Any"), "{expanded}");
    }
    let named = expanded("async fn order(#[idem] tx: idem_runtime::Tx<sqlx::Postgres>) -> String { body() }");
    assert!(named.contains("Named (\"postgres\")"), "{named}");
}

#[test]
fn steps_are_known_by_their_name() {
    let expanded = |item: &str| expand(r#"op = "provision", scope = global"#, item).to_string();
    for item in [
        "async fn provision(#[idem] steps: Steps) -> String { body() }",
        "async fn provision(#[idem] steps: idem_runtime::Steps, form: String) -> String { body() }",
    ] {
        assert!(expanded(item).contains(". steps ()"), "{item}");
    }
    let of_the_request = expanded("async fn provision(steps: Steps) -> String { body() }");
    assert!(!of_the_request.contains(". steps ()"), "{of_the_request}");
}

#[test]
fn an_order_is_two_pointers() {
    let attr = r#"op = "stripe", scope = global, key = body, webhook, order = ("/data/object/id", "/a~1b",)"#;
    let expanded =
        expand(attr, "async fn stripe(#[idem] tx: Tx<Sqlite>, body: String) -> String { body() }").to_string();
    assert!(expanded.contains(r#". order ("/data/object/id" , "/a~1b")"#), "{expanded}");
    assert!(!expanded.contains("compile_error"), "{expanded}");
}
