//! Handlers.

use expect_test::expect;

use super::check;

#[test]
fn a_handler() {
    check(
        r#"scope = "tenant", op = "charge", ttl = "24h""#,
        r#"
        /// Charges a card.
        pub async fn charge(
            tenant: Tenant,
            State(app): State<App>,
            #[idem] exec: Execution,
            Json(mut req): Json<ChargeRequest>,
        ) -> Result<(StatusCode, Json<Charge>), ApiError> {
            body()
        }
        "#,
        &expect![[r#"
            /// Charges a card.
            pub async fn charge(
                tenant: Tenant,
                __idem_1: State<App>,
                __idem_last: __p::Payload<Json<ChargeRequest>>,
            ) -> __p::Response {
                let __idem_operation = {
                    static OPERATION: __p::Operation = __p::Operation::new(
                            "charge",
                            __p::Kind::Handler,
                            __p::Place {
                                file: ::core::file!(),
                                line: ::core::line!(),
                                column: ::core::column!(),
                                function: "charge",
                            },
                        )
                        .scope(::core::stringify!(tenant))
                        .ttl(86400u64);
                    __p::inventory::submit! {
                        __p::Registered(& OPERATION)
                    }
                    &OPERATION
                };
                let _ = || {
                    __p::parameter::<Tenant>().comes_from_the_request();
                    __p::parameter::<Tenant>().leaves_the_body_to_the_last();
                    __p::parameter::<State<App>>().comes_from_the_request();
                    __p::parameter::<State<App>>().leaves_the_body_to_the_last();
                    __p::parameter::<Json<ChargeRequest>>().comes_from_the_request();
                };
                let __idem_witness = __p::replayable::<
                    Result<(StatusCode, Json<Charge>), ApiError>,
                >();
                let (__idem_incoming, __idem_value) = __idem_last.open();
                let __idem_scope = __p::scope(|__idem_out| {
                    __p::scope_part(&(tenant), __idem_out);
                });
                let __idem_key = __p::header_key();
                let __idem_value = match __idem_value {
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
                        let __idem_s0 = __p::supply::<Execution>(__idem_supply)?;
                        ::core::result::Result::Ok(async move {
                            #[allow(
                                unreachable_code,
                                clippy::diverging_sub_expression,
                                clippy::empty_loop,
                                clippy::let_unit_value
                            )]
                            if false {
                                let __idem_return: Result<(StatusCode, Json<Charge>), ApiError> = loop {};
                                return __idem_return;
                            }
                            #[allow(clippy::shadow_same)]
                            let tenant = tenant;
                            let _ = &tenant;
                            let __idem_1 = __idem_1;
                            let State(app) = __idem_1;
                            let exec = __idem_s0;
                            let __idem_value = __idem_value;
                            let Json(mut req) = __idem_value;
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
fn a_key_from_the_last_parameter_is_read_after_the_extraction() {
    check(
        r#"scope = global, op = "stripe-webhook", key = event.id, ttl = "35d""#,
        "async fn stripe_webhook<Db: Events>(#[idem] mut tx: Tx<Db>, event: Verified<Stripe>) -> StatusCode { body() }",
        &expect![[r#"
            async fn stripe_webhook<Db: Events>(
                __idem_last: __p::Payload<Verified<Stripe>>,
            ) -> __p::Response {
                let __idem_operation = {
                    static OPERATION: __p::Operation = __p::Operation::new(
                            "stripe-webhook",
                            __p::Kind::Handler,
                            __p::Place {
                                file: ::core::file!(),
                                line: ::core::line!(),
                                column: ::core::column!(),
                                function: "stripe_webhook",
                            },
                        )
                        .key(::core::stringify!(event.id))
                        .ttl(3024000u64)
                        .payload(__p::PayloadRule::None)
                        .transaction(__p::Database::Any);
                    __p::inventory::submit! {
                        __p::Registered(& OPERATION)
                    }
                    &OPERATION
                };
                let _ = || {
                    __p::parameter::<Verified<Stripe>>().comes_from_the_request();
                };
                let __idem_witness = __p::replayable::<StatusCode>();
                let (__idem_incoming, __idem_value) = __idem_last.open();
                let event = match __idem_value {
                    ::core::result::Result::Ok(__idem_value) => __idem_value,
                    ::core::result::Result::Err(__idem_rejection) => {
                        return __p::unidentified(
                            __idem_operation,
                            &__idem_incoming,
                            __idem_rejection,
                        );
                    }
                };
                let __idem_scope = __p::scope(|_| {});
                let __idem_key = __p::key(|| { __p::key_part(&(event.id)) });
                let __idem_body = __p::body_runs_on_its_own_task(
                    __idem_witness,
                    move |__idem_supply: &mut __p::Supply| {
                        let __idem_s0 = __p::supply::<Tx<Db>>(__idem_supply)?;
                        ::core::result::Result::Ok(async move {
                            #[allow(
                                unreachable_code,
                                clippy::diverging_sub_expression,
                                clippy::empty_loop,
                                clippy::let_unit_value
                            )]
                            if false {
                                let __idem_return: StatusCode = loop {};
                                return __idem_return;
                            }
                            let mut tx = __idem_s0;
                            #[allow(clippy::shadow_same)]
                            let event = event;
                            let _ = &event;
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
fn nothing_but_a_return_type_in_place() {
    check(
        r#"scope = global, op = "ping", key = "x".len()"#,
        "async fn ping() -> Result<(StatusCode, impl IntoResponse), ApiError> { body() }",
        &expect![[r#"
            async fn ping(__idem_last: __p::Payload<()>) -> __p::Response {
                let __idem_operation = {
                    static OPERATION: __p::Operation = __p::Operation::new(
                            "ping",
                            __p::Kind::Handler,
                            __p::Place {
                                file: ::core::file!(),
                                line: ::core::line!(),
                                column: ::core::column!(),
                                function: "ping",
                            },
                        )
                        .key(::core::stringify!("x".len()))
                        .payload(__p::PayloadRule::None);
                    __p::inventory::submit! {
                        __p::Registered(& OPERATION)
                    }
                    &OPERATION
                };
                {
                    #[allow(unused_imports)]
                    use IntoResponse as _;
                }
                let __idem_witness = __p::replayable::<Result<(StatusCode, _), ApiError>>();
                let (__idem_incoming, __idem_value) = __idem_last.open();
                let __idem_scope = __p::scope(|_| {});
                let __idem_key = __p::key(|| { __p::key_part(&("x".len())) });
                if let ::core::result::Result::Err(__idem_rejection) = __idem_value {
                    return __p::rejected(
                            __idem_operation,
                            __idem_incoming,
                            __idem_scope,
                            __idem_key,
                            __idem_rejection,
                        )
                        .await;
                }
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
                                let __idem_return: Result<(StatusCode, _), ApiError> = loop {};
                                return __idem_return;
                            }
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
fn a_transaction() {
    check(
        r#"op = "order", scope = global"#,
        "async fn order(#[idem] tx: Tx<Sqlite>, Json(sku): Json<String>) -> String { body() }",
        &expect![[r#"
            async fn order(__idem_last: __p::Payload<Json<String>>) -> __p::Response {
                let __idem_operation = {
                    static OPERATION: __p::Operation = __p::Operation::new(
                            "order",
                            __p::Kind::Handler,
                            __p::Place {
                                file: ::core::file!(),
                                line: ::core::line!(),
                                column: ::core::column!(),
                                function: "order",
                            },
                        )
                        .transaction(__p::Database::Named("sqlite"));
                    __p::inventory::submit! {
                        __p::Registered(& OPERATION)
                    }
                    &OPERATION
                };
                let _ = || {
                    __p::parameter::<Json<String>>().comes_from_the_request();
                };
                let __idem_witness = __p::replayable::<String>();
                let (__idem_incoming, __idem_value) = __idem_last.open();
                let __idem_scope = __p::scope(|_| {});
                let __idem_key = __p::header_key();
                let __idem_value = match __idem_value {
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
                        let __idem_s0 = __p::supply::<Tx<Sqlite>>(__idem_supply)?;
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
                            let tx = __idem_s0;
                            let __idem_value = __idem_value;
                            let Json(sku) = __idem_value;
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
