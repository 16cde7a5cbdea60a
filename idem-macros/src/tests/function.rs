//! Plain functions and methods.

use expect_test::expect;

use super::check;

#[test]
fn a_plain_function() {
    check(
        r#"function, runtime = ctx.idem, scope = job.tenant, op = "capture", key = job.id, ttl = "7d""#,
        "async fn capture(ctx: &Ctx, job: CaptureJob, #[idem] steps: Steps) -> Result<Receipt, JobError> { body() }",
        &expect![[r#"
            async fn capture(ctx: &Ctx, job: CaptureJob) -> Result<Receipt, JobError> {
                let __idem_operation = {
                    static OPERATION: __p::Operation = __p::Operation::new(
                            "capture",
                            __p::Kind::Function,
                            __p::Place {
                                file: ::core::file!(),
                                line: ::core::line!(),
                                column: ::core::column!(),
                                function: "capture",
                            },
                        )
                        .scope(::core::stringify!(job.tenant))
                        .key(::core::stringify!(job.id))
                        .ttl(604800u64)
                        .payload(__p::PayloadRule::None)
                        .steps();
                    __p::inventory::submit! {
                        __p::Registered(& OPERATION)
                    }
                    &OPERATION
                };
                let __idem_recorder = __p::recordable::<Result<Receipt, JobError>>();
                let __idem_runtime = __p::runtime(&(ctx.idem));
                let __idem_scope = __p::scope(|__idem_out| {
                    __p::scope_part(&(job.tenant), __idem_out);
                });
                let __idem_key = __p::key(|| { __p::key_part(&(job.id)) });
                let __idem_body = move |__idem_supply: &mut __p::Supply| {
                    let __idem_s0 = __p::supply::<Steps>(__idem_supply)?;
                    ::core::result::Result::Ok(async move {
                        #[allow(
                            unreachable_code,
                            clippy::diverging_sub_expression,
                            clippy::empty_loop,
                            clippy::let_unit_value
                        )]
                        if false {
                            let __idem_return: Result<Receipt, JobError> = loop {};
                            return __idem_return;
                        }
                        let steps = __idem_s0;
                        { body() }
                    })
                };
                __p::function(
                        __idem_operation,
                        __idem_runtime,
                        __idem_scope,
                        __idem_key,
                        __idem_recorder,
                        __idem_body,
                    )
                    .await
            }
        "#]],
    );
}

#[test]
fn a_method() {
    check(
        r#"function, runtime = self.idem, scope = "tenant", op = "settle", key = self.key_of(&event)"#,
        "pub(crate) async fn settle(&mut self, Event { tenant, .. }: Event, event: Id) -> Result<(), E> where E: Clone { body() }",
        &expect![[r#"
            pub(crate) async fn settle(
                &mut self,
                Event { tenant, .. }: Event,
                event: Id,
            ) -> Result<(), E>
            where
                E: Clone,
            {
                let __idem_operation = {
                    static OPERATION: __p::Operation = __p::Operation::new(
                            "settle",
                            __p::Kind::Function,
                            __p::Place {
                                file: ::core::file!(),
                                line: ::core::line!(),
                                column: ::core::column!(),
                                function: "settle",
                            },
                        )
                        .scope(::core::stringify!(tenant))
                        .key(::core::stringify!(self.key_of(& event)))
                        .payload(__p::PayloadRule::None);
                    __p::inventory::submit! {
                        __p::Registered(& OPERATION)
                    }
                    &OPERATION
                };
                let __idem_recorder = __p::recordable::<Result<(), E>>();
                let __idem_runtime = __p::runtime(&(self.idem));
                let __idem_scope = __p::scope(|__idem_out| {
                    __p::scope_part(&(tenant), __idem_out);
                });
                let __idem_key = __p::key(|| { __p::key_part(&(self.key_of(&event))) });
                let __idem_body = move |__idem_supply: &mut __p::Supply| {
                    ::core::result::Result::Ok(async move {
                        #[allow(
                            unreachable_code,
                            clippy::diverging_sub_expression,
                            clippy::empty_loop,
                            clippy::let_unit_value
                        )]
                        if false {
                            let __idem_return: Result<(), E> = loop {};
                            return __idem_return;
                        }
                        { body() }
                    })
                };
                __p::function(
                        __idem_operation,
                        __idem_runtime,
                        __idem_scope,
                        __idem_key,
                        __idem_recorder,
                        __idem_body,
                    )
                    .await
            }
        "#]],
    );
}

/// `input` is evaluated by reference before the body can move it.
#[test]
fn a_function_whose_argument_is_kept() {
    check(
        r#"function, runtime = idem, scope = global, op = "provision", key = signup.id, in_doubt = rerun_deduped, input = "signup""#,
        "async fn provision(idem: &Runtime, signup: Signup) -> Result<(), E> { body() }",
        &expect![[r#"
            async fn provision(idem: &Runtime, signup: Signup) -> Result<(), E> {
                let __idem_operation = {
                    static OPERATION: __p::Operation = __p::Operation::new(
                            "provision",
                            __p::Kind::Function,
                            __p::Place {
                                file: ::core::file!(),
                                line: ::core::line!(),
                                column: ::core::column!(),
                                function: "provision",
                            },
                        )
                        .key(::core::stringify!(signup.id))
                        .payload(__p::PayloadRule::None)
                        .in_doubt(__p::InDoubt::RerunDeduped)
                        .input("signup");
                    __p::inventory::submit! {
                        __p::Registered(& OPERATION)
                    }
                    &OPERATION
                };
                let __idem_recorder = __p::recordable::<Result<(), E>>();
                let __idem_runtime = __p::runtime(&(idem));
                let __idem_scope = __p::scope(|_| {});
                let __idem_key = __p::key(|| { __p::key_part(&(signup.id)) });
                let __idem_input = __p::input(&(signup));
                let __idem_body = move |__idem_supply: &mut __p::Supply| {
                    ::core::result::Result::Ok(async move {
                        #[allow(
                            unreachable_code,
                            clippy::diverging_sub_expression,
                            clippy::empty_loop,
                            clippy::let_unit_value
                        )]
                        if false {
                            let __idem_return: Result<(), E> = loop {};
                            return __idem_return;
                        }
                        { body() }
                    })
                };
                __p::function_of(
                        __idem_operation,
                        __idem_runtime,
                        __idem_scope,
                        __idem_key,
                        __idem_input,
                        __idem_recorder,
                        __idem_body,
                    )
                    .await
            }
        "#]],
    );
}
