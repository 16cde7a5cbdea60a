//! One annotation with nothing wrong in it: all that the expansion needs to know.

use proc_macro2::Ident;
use syn::{Expr, LitStr, Path, Type, parse_quote};

use crate::{
    args::{Args, ClientErrors, ForeignScope, InDoubt, InFlight, KeyFormat, Order, Payload, Scope, Value},
    ctxt::{Attr, Ctxt},
    item::{HandlerFn, pattern},
};

pub(crate) struct Operation {
    pub(crate) krate: Path,
    pub(crate) func: HandlerFn,
    pub(crate) kind: Kind,
    pub(crate) scope: Vec<Expr>, // its parts; none for `global`
    pub(crate) facts: Facts,
}

pub(crate) enum Kind {
    Handler { key: Option<Expr>, state: Option<Type> },
    Function { key: Expr, runtime: Expr, input: Option<Expr> },
}

/// What the static says.
pub(crate) struct Facts {
    pub(crate) op: LitStr,
    pub(crate) ttl: Option<u64>,
    pub(crate) refuse_late: Option<u64>,
    pub(crate) header: Option<LitStr>,
    pub(crate) optional: bool,
    pub(crate) key_format: Option<KeyFormat>,
    pub(crate) payload: Option<Payload>,
    pub(crate) in_flight: Option<InFlight>,
    pub(crate) client_errors: Option<ClientErrors>,
    pub(crate) in_doubt: Option<InDoubt>,
    pub(crate) input: Option<LitStr>,
    pub(crate) timeout: Option<u64>,
    pub(crate) foreign_scope: Option<ForeignScope>,
    pub(crate) webhook: bool,
    pub(crate) order: Option<Order>,
}

impl Operation {
    /// Reports in `cx` what is missing; `None` if a needed value is missing or was bad.
    pub(crate) fn new(cx: &Ctxt, args: Args, func: HandlerFn) -> Option<Self> {
        let is_function = args.function.key().is_some();
        let default_payload = args.key.get().map(|_| Payload::None); // the key already says what it is about
        let op = required(cx, args.op, || missing_op(&func));
        let scope = required(cx, args.scope, || missing_scope(&func));
        let kind = if is_function {
            let missing = |what, why, example| missing_in_function(&func, what, why, example);
            let key = required(cx, args.key, || missing("key", "no request to take it from", "job.id"));
            let no_state = "no router state to find it in";
            let runtime = required(cx, args.runtime, || missing("runtime", no_state, "ctx.idem"));
            let input = args.input.get().and_then(|name| expr(Value::Named(name.clone()), &func));
            let needed = key.and_then(|key| expr(key, &func)).zip(runtime);
            needed.map(|(key, runtime)| Kind::Function { key, runtime, input })
        } else {
            let key = args.key.into_value().and_then(|key| expr(key, &func));
            Some(Kind::Handler { key, state: args.state.into_value() })
        };
        let facts = Facts {
            op: op?,
            ttl: args.ttl.into_value().map(|ttl| ttl.seconds),
            refuse_late: args.refuse_late.into_value().map(|refuse_late| refuse_late.seconds),
            header: args.header.into_value(),
            optional: args.optional.get().is_some(),
            key_format: args.key_format.into_value(),
            payload: args.payload.into_value().or(default_payload),
            in_flight: args.in_flight.into_value(),
            client_errors: args.client_errors.into_value(),
            in_doubt: args.in_doubt.into_value(),
            input: args.input.into_value(),
            timeout: args.timeout.into_value().map(|timeout| timeout.seconds),
            foreign_scope: args.foreign_scope.into_value(),
            webhook: args.webhook.get().is_some(),
            order: args.order.into_value(),
        };
        let scope = match scope? {
            Scope::Global => Vec::new(),
            Scope::Of(value) => parts(&expr(value, &func)?).into_iter().cloned().collect(),
        };
        let krate = args.krate.into_value().unwrap_or_else(|| parse_quote!(::idem_runtime));
        Some(Self { krate, kind: kind?, scope, facts, func })
    }
}

fn required<T>(cx: &Ctxt, attr: Attr<T>, missing: impl FnOnce() -> String) -> Option<T> {
    if attr.key().is_none() {
        cx.missing(missing());
    }
    attr.into_value()
}

fn missing_op(func: &HandlerFn) -> String {
    let name = func.name();
    format!(
        "missing `op`, the stable name of the operation that `{name}` performs\n\
         help: write `#[idempotent(op = \"{}\", ..)]`",
        name.to_string().trim_start_matches("r#").to_lowercase().replace('_', "-"),
    )
}

fn missing_scope(func: &HandlerFn) -> String {
    format!(
        "missing `scope`, the caller that the keys of `{}` belong to\n\
         help: write `scope = \"tenant\"` with the parameter that says who calls, or `scope = global` if all callers share their keys",
        func.name(),
    )
}

fn missing_in_function(func: &HandlerFn, what: &str, why: &str, example: &str) -> String {
    format!(
        "missing `{what}`: `{}` is a plain `function`, there is {why}\n\
         help: write `{what} = ..`, as in `{what} = {example}`",
        func.name(),
    )
}

/// The expression that a value stands for; a name becomes the parameter, at the place where it was written. `None` for
/// an unknown name, which `check` has reported.
fn expr(value: Value, func: &HandlerFn) -> Option<Expr> {
    match value {
        Value::Expr(expr) => Some(expr),
        Value::Named(lit) => {
            let names = func.caller_params().flat_map(|param| pattern::names(&param.pat));
            let mut name = names.into_iter().find(|name| is_named(name, &lit))?;
            name.set_span(lit.span().resolved_at(name.span()));
            Some(parse_quote!(#name))
        }
    }
}

/// Whether `lit` names `name`; a raw identifier is named without its `r#`.
pub(crate) fn is_named(name: &Ident, lit: &LitStr) -> bool {
    use syn::ext::IdentExt;
    name.unraw() == lit.value().trim_start_matches("r#")
}

/// A tuple is its parts. Each is borrowed on its own, so that fields of a borrowed parameter can stand in it.
pub(crate) fn parts(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Tuple(tuple) => tuple.elems.iter().flat_map(parts).collect(),
        Expr::Paren(inner) => parts(&inner.expr),
        Expr::Group(inner) => parts(&inner.expr),
        other => vec![other],
    }
}
