//! What `scope`, `key`, `input` and `runtime` may refer to.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Expr, LitStr};

use crate::{
    args::{Args, Scope, Value},
    ctxt::Ctxt,
    item::{HandlerFn, Param, Source, pattern},
    mention::Mentions,
    operation::{is_named, parts},
};

pub(super) fn check(cx: &Ctxt, args: &Args, func: &HandlerFn) {
    match args.scope.get() {
        Some(Scope::Of(value)) => {
            check_value(cx, "scope", value, func);
            check_scope_has_parts(cx, value, func);
        }
        Some(Scope::Global) | None => {}
    }
    if let Some(value) = args.key.get() {
        check_value(cx, "key", value, func);
    }
    if let Some(lit) = args.input.get() {
        check_name(cx, "input", lit, func);
    }
    if let Some(expr) = args.runtime.get() {
        check_not_supplied(cx, "runtime", expr, func);
    }
}

fn check_value(cx: &Ctxt, argument: &str, value: &Value, func: &HandlerFn) {
    match value {
        Value::Named(lit) => check_name(cx, argument, lit, func),
        Value::Expr(expr) => {
            check_not_supplied(cx, argument, expr, func);
            check_stays(cx, argument, expr.to_token_stream(), func);
        }
    }
}

// A string names a parameter, one that is there before the body runs.
fn check_name(cx: &Ctxt, argument: &str, lit: &LitStr, func: &HandlerFn) {
    let named = |param: &&Param| pattern::names(&param.pat).iter().any(|name| is_named(name, lit));
    let Some(param) = func.params.iter().find(named) else {
        let text = lit.value();
        let message = format!(
            "`{argument}` must name a parameter of `{}`, found `{text}`\nhelp: {}",
            func.name(),
            help_for_name(argument, &text, func)
        );
        cx.error(lit, message);
        return;
    };
    if param.source == Source::Runtime {
        cx.error(lit, supplied_message(argument, &lit.value(), func));
    }
}

fn help_for_name(argument: &str, text: &str, func: &HandlerFn) -> String {
    if argument == "scope" && text == "global" {
        return "write the word without quotes if all callers share their keys: `scope = global`".to_owned();
    }
    let is_word = text.chars().all(|c| c.is_alphanumeric() || c == '_');
    let may_be_expr = argument != "input";
    if may_be_expr && !is_word && syn::parse_str::<Expr>(text).is_ok() {
        return format!("write an expression without quotes: `{argument} = {text}`");
    }
    let names: Vec<_> =
        func.caller_params().flat_map(|param| pattern::names(&param.pat)).map(|name| format!("`{name}`")).collect();
    let name = func.name();
    match &names[..] {
        [] if may_be_expr => {
            format!("`{name}` takes no parameters; write an expression without quotes: `{argument} = ..`")
        }
        [] => format!("`{name}` takes no parameters"),
        names => format!("`{name}` takes {}", names.join(", ")),
    }
}

// A `#[idem]` parameter exists only once it is decided that the body runs; scope and key are needed to decide it.
fn check_not_supplied(cx: &Ctxt, argument: &str, expr: &Expr, func: &HandlerFn) {
    let mentions = Mentions::of(expr.to_token_stream());
    let supplied = func.params.iter().filter(|param| param.source == Source::Runtime);
    for name in supplied.flat_map(|param| pattern::names(&param.pat)).filter(|name| mentions.contains(name)) {
        cx.error(expr, supplied_message(argument, &name.to_string(), func));
    }
}

fn supplied_message(argument: &str, name: &str, func: &HandlerFn) -> String {
    format!(
        "`{argument}` cannot use `{name}`: the runtime supplies it to `{}` only after `{argument}` is known",
        func.name()
    )
}

// Scope and key are closures in the expansion: nothing can leave the function from there. Braces can hold a closure or
// an async block of the user's own, where all of this is fine.
fn check_stays(cx: &Ctxt, argument: &str, tokens: TokenStream, func: &HandlerFn) {
    for token in tokens {
        let found = match &token {
            TokenTree::Group(group) if group.delimiter() != Delimiter::Brace => {
                check_stays(cx, argument, group.stream(), func);
                continue;
            }
            TokenTree::Punct(punct) if punct.as_char() == '?' => "?",
            TokenTree::Ident(word) if word == "await" => ".await",
            TokenTree::Ident(word) if word == "return" => "return",
            _ => continue,
        };
        let message = format_args!(
            "`{argument}` cannot use `{found}`: it is evaluated before the body of `{}` runs\n\
             help: do that work in an extractor, or before the call, and name its result here",
            func.name(),
        );
        cx.error(&token, message);
    }
}

// `()` has no parts, as `global` has none; only the word says that this is meant.
fn check_scope_has_parts(cx: &Ctxt, value: &Value, func: &HandlerFn) {
    if let Value::Expr(expr) = value
        && parts(expr).is_empty()
    {
        let message = format_args!(
            "`scope` names nobody, so all callers of `{}` would share their keys\n\
             help: write `scope = global` if they do",
            func.name(),
        );
        cx.error(expr, message);
    }
}
