//! Which arguments go together.

use proc_macro2::Ident;

use crate::{
    args::{Args, ClientErrors, InDoubt, InFlight, Payload, Scope},
    ctxt::Ctxt,
    item::HandlerFn,
};

pub(super) fn check(cx: &Ctxt, args: &Args, func: &HandlerFn) {
    check_request_arguments(cx, args, func);
    check_accepted(cx, args, func);
    check_function_arguments(cx, args, func);
    check_key_source(cx, args);
    check_refuse_late(cx, args);
    check_client_errors(cx, args);
    check_wait(cx, args);
    check_in_doubt(cx, args, func);
    check_input(cx, args, func);
    check_foreign_scope(cx, args, func);
    check_order(cx, args, func);
}

// A plain function has no request: what describes one says nothing there.
fn check_request_arguments(cx: &Ctxt, args: &Args, func: &HandlerFn) {
    if args.function.key().is_none() {
        return;
    }
    let payload = args.payload.key().filter(|_| !matches!(args.payload.get(), Some(Payload::None)));
    let of_requests = [
        args.header.key(),
        args.optional.key(),
        args.key_format.key(),
        args.client_errors.key(),
        args.webhook.key(),
        args.order.key(),
        args.state.key(),
        payload,
    ];
    for key in of_requests.into_iter().flatten() {
        let message = format_args!("`{key}` is about requests, the plain `function` `{}` has none", func.name());
        cx.error(key, message);
    }
}

// C-04: whoever calls a plain function has no place to be sent to; C-41: a 202 ends the deliveries of an event.
fn check_accepted(cx: &Ctxt, args: &Args, func: &HandlerFn) {
    if let Some(InFlight::Accepted(word)) = args.in_flight.get()
        && args.function.key().is_some()
    {
        let message = format_args!(
            "`accepted` is an answer to a request, the plain `function` `{}` has none\n\
             help: write `reject` or `wait(\"10s\")`",
            func.name(),
        );
        cx.error(word, message);
    } else if let Some(InFlight::Accepted(word)) = args.in_flight.get()
        && func.transactions().next().is_some()
    {
        let message = format_args!(
            "`accepted` names a place to fetch the result, but nobody sees anything of `{}` before its `Tx` is committed\n\
             help: write `reject` or `wait(\"10s\")`",
            func.name(),
        );
        cx.error(word, message);
    } else if let Some(InFlight::Accepted(word)) = args.in_flight.get()
        && args.webhook.key().is_some()
    {
        let message = format_args!(
            "`accepted` tells the sender of a `webhook` that its event was taken, while the run of `{}` can still fail\n\
             help: write `reject` or `wait(\"10s\")`",
            func.name(),
        );
        cx.error(word, message);
    }
}

// A handler finds the runtime in the router's state.
fn check_function_arguments(cx: &Ctxt, args: &Args, func: &HandlerFn) {
    if let Some(key) = args.runtime.key()
        && args.function.key().is_none()
    {
        let message = format_args!(
            "`runtime` goes with `function`, handler `{}` finds the runtime in the router's state\n\
             help: leave it out, or write `#[idempotent(function, ..)]` for a plain function",
            func.name(),
        );
        cx.error(key, message);
    }
}

// `key` replaces the header, so nothing can be said about that header.
fn check_key_source(cx: &Ctxt, args: &Args) {
    if args.key.key().is_none() || args.function.key().is_some() {
        return;
    }
    for about_header in [args.header.key(), args.optional.key(), args.key_format.key()].into_iter().flatten() {
        contradiction(cx, about_header);
    }
}

fn contradiction(cx: &Ctxt, about_header: &Ident) {
    let message = format_args!(
        "`{about_header}` is about the key's header, but `key` takes the key from an expression\n\
         help: leave out one of the two"
    );
    cx.error(about_header, message);
}

// C-12: a late retry is refused from the end of `ttl` on, so `refuse_late` cannot end before it.
fn check_refuse_late(cx: &Ctxt, args: &Args) {
    if let (Some(ttl), Some(refuse_late)) = (args.ttl.get(), args.refuse_late.get())
        && refuse_late.seconds < ttl.seconds
    {
        let message = format_args!(
            "`refuse_late` must not be shorter than `ttl`, found `{}` with a `ttl` of `{}`",
            refuse_late.lit.value(),
            ttl.lit.value(),
        );
        cx.error(&refuse_late.lit, message);
    }
}

// C-13: a kept client error is forgotten before the key is.
fn check_client_errors(cx: &Ctxt, args: &Args) {
    if let (Some(ttl), Some(ClientErrors::Keep(keep))) = (args.ttl.get(), args.client_errors.get())
        && keep.seconds > ttl.seconds
    {
        let message = format_args!(
            "`keep` must not be longer than `ttl`, found `{}` with a `ttl` of `{}`",
            keep.lit.value(),
            ttl.lit.value(),
        );
        cx.error(&keep.lit, message);
    }
}

// C-04: a duplicate that may wait for as long as the first run may take would never get its 409.
fn check_wait(cx: &Ctxt, args: &Args) {
    if let (Some(timeout), Some(InFlight::Wait(wait))) = (args.timeout.get(), args.in_flight.get())
        && wait.seconds >= timeout.seconds
    {
        let message = format_args!(
            "`wait` must be shorter than `timeout`, found `{}` with a `timeout` of `{}`",
            wait.lit.value(),
            timeout.lit.value(),
        );
        cx.error(&wait.lit, message);
    }
}

// A transaction that fails is undone, and steps are continued: there is no doubt that anything could be said of.
fn check_in_doubt(cx: &Ctxt, args: &Args, func: &HandlerFn) {
    let Some(key) = args.in_doubt.key() else { return };
    let name = func.name();
    if func.transactions().next().is_some() {
        let message = format_args!(
            "`in_doubt` says nothing here: what `{name}` does is undone with its `Tx` if it fails\n\
             help: leave it out"
        );
        cx.error(key, message);
    } else if func.steps().next().is_some() {
        let message = format_args!(
            "`in_doubt` says nothing here: the next retry continues the `Steps` of `{name}`\n\
             help: leave it out, and write `steps.once(..)` for what must not run again"
        );
        cx.error(key, message);
    }
}

// C-25: kept for the completer, which calls a plain function again; what is never run again needs none.
fn check_input(cx: &Ctxt, args: &Args, func: &HandlerFn) {
    let Some(key) = args.input.key() else { return };
    let name = func.name();
    if args.function.key().is_none() {
        let message = format_args!(
            "`input` is kept to call a plain `function` again, handler `{name}` is called by its clients\n\
             help: leave it out, or move the work to a function that `{name}` calls"
        );
        cx.error(key, message);
    } else if func.transactions().next().is_some() {
        let message = format_args!(
            "`input` says nothing here: what `{name}` does is undone with its `Tx` if it fails\n\
             help: leave it out"
        );
        cx.error(key, message);
    } else if !matches!(args.in_doubt.get(), Some(InDoubt::RerunDeduped)) && func.steps().next().is_none() {
        let message = format_args!(
            "`input` is kept to run `{name}` again, which is never done\n\
             help: write `in_doubt = rerun_deduped` if all that it does outside dedupes by the provider key"
        );
        cx.error(key, message);
    }
}

// C-05: where all callers share their keys, no scope is foreign.
fn check_foreign_scope(cx: &Ctxt, args: &Args, func: &HandlerFn) {
    if let (Some(key), Some(Scope::Global)) = (args.foreign_scope.key(), args.scope.get()) {
        let message = format_args!(
            "`foreign_scope` needs a scope to tell callers apart, those of `{}` are all `global`\n\
             help: leave it out, or write `scope = ..` with the parameter that says who calls",
            func.name(),
        );
        cx.error(key, message);
    }
}

// C-42: what was applied last is compared and noted in the transaction of the effect; without a record nothing says that an
// event was passed over.
fn check_order(cx: &Ctxt, args: &Args, func: &HandlerFn) {
    let Some(key) = args.order.key().filter(|_| args.function.key().is_none()) else { return };
    let name = func.name();
    if func.transactions().next().is_none() {
        let message = format_args!(
            "`order` needs a `Tx`: the place of the event that `{name}` applies is committed with its effect\n\
             help: add `#[idem] tx: Tx<..>`, or leave it out and fetch the object's state from its sender"
        );
        cx.error(key, message);
    }
    if args.optional.key().is_some() {
        let message = format_args!(
            "`order` is kept with the key, which is `optional` for `{name}`\n\
             help: leave out one of the two"
        );
        cx.error(key, message);
    }
}
