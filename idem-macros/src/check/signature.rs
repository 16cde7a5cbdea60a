//! What can be annotated.

use quote::ToTokens;
use syn::{ReturnType, Safety};

use crate::{
    args::Args,
    ctxt::Ctxt,
    item::{HandlerFn, pattern},
};

pub(super) fn check(cx: &Ctxt, args: &Args, func: &HandlerFn) {
    check_async(cx, func);
    check_qualifiers(cx, func);
    check_receiver(cx, args, func);
    check_last_parameter(cx, args, func);
    check_function_output(cx, args, func);
    check_transaction(cx, func);
    check_steps(cx, func);
}

// The body runs, or does not, behind a look-up of the key: that is asynchronous.
fn check_async(cx: &Ctxt, func: &HandlerFn) {
    if func.sig.asyncness.is_some() {
        return;
    }
    let output = func.sig.output.to_token_stream().to_string();
    let help = if output.contains("Pin") && output.contains("Future") {
        "an attribute such as `#[async_trait]` has already rewritten this method; annotate an inherent method and call it from the trait"
    } else {
        "write `async fn`"
    };
    let message = format_args!("`#[idempotent]` function `{}` must be `async`\nhelp: {help}", func.name());
    cx.error(func.sig.fn_token, message);
}

// No `const`, `unsafe`, `extern` or variadic functions: nobody calls those through a runtime.
fn check_qualifiers(cx: &Ctxt, func: &HandlerFn) {
    let name = func.name();
    let cannot_be = |what: &str| format!("`#[idempotent]` function `{name}` cannot be {what}");
    if let Some(token) = &func.sig.constness {
        cx.error(token, cannot_be("`const`"));
    }
    if let Safety::Unsafe(token) = &func.sig.safety {
        cx.error(token, cannot_be("`unsafe`"));
    }
    if let Some(token) = &func.sig.abi {
        cx.error(token, cannot_be("`extern`"));
    }
    if let Some(token) = &func.sig.variadic {
        cx.error(token, cannot_be("variadic"));
    }
}

// A handler has no receiver: axum calls it, and nobody else.
fn check_receiver(cx: &Ctxt, args: &Args, func: &HandlerFn) {
    if let Some(receiver) = &func.receiver
        && args.function.key().is_none()
    {
        let message = format_args!(
            "handler `{}` cannot take `self`\n\
             help: write `#[idempotent(function, ..)]` for a method that the program calls itself",
            func.name(),
        );
        cx.error(receiver.self_token, message);
    }
}

// The last parameter of a handler is replaced, so it must be known which one is the last.
fn check_last_parameter(cx: &Ctxt, args: &Args, func: &HandlerFn) {
    if args.function.key().is_some() {
        return;
    }
    let Some(last) = func.caller_params().next_back() else { return };
    for attr in last.attrs.iter().filter(|attr| attr.path().is_ident("cfg")) {
        let message = format_args!(
            "`#[cfg]` cannot be on the last parameter of `{}`\n\
             help: put it on the function, once for each variant",
            func.name(),
        );
        cx.error(attr, message);
    }
}

// The value of a plain function is stored and read back, so its type must be written.
fn check_function_output(cx: &Ctxt, args: &Args, func: &HandlerFn) {
    if args.function.key().is_none() {
        return;
    }
    let name = func.name();
    match &func.sig.output {
        ReturnType::Default => {
            cx.error(name, format_args!("`function` `{name}` must return `Result<T, E>`, it returns nothing"));
        }
        ReturnType::Type(_, ty) => {
            if let (_, Some(opaque)) = pattern::erase_impl_trait(ty) {
                let message = format_args!(
                    "`function` `{name}` must name the type that it returns, a retry reads it back from the store"
                );
                cx.error(opaque, message);
            }
            if let Some(reference) = pattern::first_argument(ty).and_then(pattern::reference) {
                let message = format_args!(
                    "`function` `{name}` must return an owned value, a retry reads it back from the store"
                );
                cx.error(reference, message);
            }
        }
    }
}

// A body runs in one transaction: that is what makes its rows and its outcome one commit.
fn check_transaction(cx: &Ctxt, func: &HandlerFn) {
    for second in func.transactions().skip(1) {
        cx.error(&second.ty, format_args!("`{}` runs in one transaction, so it takes one `Tx`", func.name()));
    }
}

// Steps are there because an operation cannot be one transaction; each can have one of its own.
fn check_steps(cx: &Ctxt, func: &HandlerFn) {
    let name = func.name();
    for second in func.steps().skip(1) {
        cx.error(&second.ty, format_args!("`{name}` has one set of steps, so it takes one `Steps`"));
    }
    if let (Some(steps), Some(_)) = (func.steps().next(), func.transactions().next()) {
        let message = format_args!(
            "`{name}` runs in one transaction, so it cannot have `Steps`\n\
             help: leave out the `Tx`, and write `steps.transaction(\"name\", async |tx| ..)` where rows are written"
        );
        cx.error(&steps.ty, message);
    }
}
