//! The arguments of the attribute. Each is read on its own: a bad one is reported and does not hide the next.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::{
    Expr, LitStr, Path, Token, Type,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

use self::{choice::Choice, value::Source};
use crate::ctxt::{Attr, Ctxt};

mod choice;
mod similar;
mod text;
mod value;

/// What the user wrote, value by value, with its tokens.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) op: Attr<LitStr>,
    pub(crate) scope: Attr<Scope>,
    pub(crate) ttl: Attr<Seconds>,
    pub(crate) refuse_late: Attr<Seconds>,
    pub(crate) key: Attr<Value>,
    pub(crate) header: Attr<LitStr>,
    pub(crate) optional: Attr<()>,
    pub(crate) key_format: Attr<KeyFormat>,
    pub(crate) payload: Attr<Payload>,
    pub(crate) in_flight: Attr<InFlight>,
    pub(crate) client_errors: Attr<ClientErrors>,
    pub(crate) in_doubt: Attr<InDoubt>,
    pub(crate) input: Attr<LitStr>,
    pub(crate) timeout: Attr<Seconds>,
    pub(crate) foreign_scope: Attr<ForeignScope>,
    pub(crate) webhook: Attr<()>,
    pub(crate) order: Attr<Order>,
    pub(crate) state: Attr<Type>,
    pub(crate) function: Attr<()>,
    pub(crate) runtime: Attr<Expr>,
    pub(crate) krate: Attr<Path>,
}

/// A duration, with the literal that says it.
pub(crate) struct Seconds {
    pub(crate) lit: LitStr,
    pub(crate) seconds: u64,
}

/// A string names a parameter; everything else is an expression over the parameters.
pub(crate) enum Value {
    Named(LitStr),
    Expr(Expr),
}

pub(crate) enum Scope {
    Global,
    Of(Value),
}

#[derive(Clone, Copy)]
pub(crate) enum KeyFormat {
    Uuid,
}

pub(crate) enum Payload {
    Fields(Vec<LitStr>),
    Raw,
    None,
}

/// Pointers to the object that an event is about, and to where the event stands among its others.
pub(crate) struct Order {
    pub(crate) object: LitStr,
    pub(crate) sequence: LitStr,
}

pub(crate) enum InFlight {
    Reject,
    Wait(Seconds),
    Accepted(Ident), // the word, where it stands
}

pub(crate) enum ClientErrors {
    Release,
    Keep(Seconds),
    Store,
}

#[derive(Clone, Copy)]
pub(crate) enum InDoubt {
    Hold,
    RerunDeduped,
}

#[derive(Clone, Copy)]
pub(crate) enum ForeignScope {
    Reject,
}

struct Argument {
    name: &'static str,
    example: &'static str,
    read: fn(&mut Args, &Source<'_>) -> syn::Result<()>,
}

/// Every argument: the parser looks names up here, and messages list them from here.
const ARGUMENTS: &[Argument] = &[
    // op = "charge"
    argument("op", r#"op = "charge""#, |args, from| args.op.set(from.key, from.string().and_then(text::op))),
    // scope = "tenant", scope = (tenant.id, account), scope = global
    argument("scope", r#"scope = "tenant""#, |args, from| args.scope.set(from.key, from.scope())),
    // ttl = "24h"
    argument("ttl", r#"ttl = "24h""#, |args, from| args.ttl.set(from.key, from.duration())),
    // refuse_late = "7d"
    argument("refuse_late", r#"refuse_late = "7d""#, |args, from| args.refuse_late.set(from.key, from.duration())),
    // key = event.id
    argument("key", "key = event.id", |args, from| args.key.set(from.key, from.value())),
    // header = "Idempotency-Key"
    argument("header", r#"header = "Idempotency-Key""#, |args, from| {
        args.header.set(from.key, from.string().and_then(text::header))
    }),
    // optional
    argument("optional", "optional", |args, from| args.optional.set(from.key, from.flag())),
    // key_format = uuid
    argument("key_format", "key_format = uuid", |args, from| {
        args.key_format.set(from.key, from.choice(&[Choice::word("uuid", || KeyFormat::Uuid)]))
    }),
    // payload = fields("/amount"), payload = raw, payload = none
    argument("payload", "payload = raw", |args, from| {
        let choices = [
            Choice::with(r#"fields("/amount", "/currency")"#, |inner| text::pointers(inner).map(Payload::Fields)),
            Choice::word("raw", || Payload::Raw),
            Choice::word("none", || Payload::None),
        ];
        args.payload.set(from.key, from.choice(&choices))
    }),
    // in_flight = reject, in_flight = wait("10s"), in_flight = accepted
    argument("in_flight", r#"in_flight = wait("10s")"#, |args, from| {
        let choices = [
            Choice::word("reject", || InFlight::Reject),
            Choice::with(r#"wait("10s")"#, |inner| text::duration("wait", inner).map(InFlight::Wait)),
            Choice::marked("accepted", |word| InFlight::Accepted(word.clone())),
        ];
        args.in_flight.set(from.key, from.choice(&choices))
    }),
    // client_errors = release, client_errors = keep("30s"), client_errors = store
    argument("client_errors", r#"client_errors = keep("30s")"#, |args, from| {
        let choices = [
            Choice::word("release", || ClientErrors::Release),
            Choice::with(r#"keep("30s")"#, |inner| text::duration("keep", inner).map(ClientErrors::Keep)),
            Choice::word("store", || ClientErrors::Store),
        ];
        args.client_errors.set(from.key, from.choice(&choices))
    }),
    // in_doubt = hold, in_doubt = rerun_deduped
    argument("in_doubt", "in_doubt = rerun_deduped", |args, from| {
        let choices = [Choice::word("hold", || InDoubt::Hold), Choice::word("rerun_deduped", || InDoubt::RerunDeduped)];
        args.in_doubt.set(from.key, from.choice(&choices))
    }),
    // input = "signup"
    argument("input", r#"input = "signup""#, |args, from| args.input.set(from.key, from.string())),
    // timeout = "30s"
    argument("timeout", r#"timeout = "30s""#, |args, from| args.timeout.set(from.key, from.duration())),
    // foreign_scope = reject
    argument("foreign_scope", "foreign_scope = reject", |args, from| {
        args.foreign_scope.set(from.key, from.choice(&[Choice::word("reject", || ForeignScope::Reject)]))
    }),
    // webhook
    argument("webhook", "webhook", |args, from| args.webhook.set(from.key, from.flag())),
    // order = ("/data/object/id", "/created")
    argument("order", r#"order = ("/data/object/id", "/created")"#, |args, from| {
        args.order.set(from.key, from.order())
    }),
    // state = App
    argument("state", "state = App", |args, from| args.state.set(from.key, from.ty())),
    // function
    argument("function", "function", |args, from| args.function.set(from.key, from.flag())),
    // runtime = ctx.idem
    argument("runtime", "runtime = ctx.idem", |args, from| args.runtime.set(from.key, from.expr())),
    // crate = ::platform::idem
    argument("crate", "crate = ::platform::idem", |args, from| args.krate.set(from.key, from.absolute_path())),
];

const fn argument(
    name: &'static str,
    example: &'static str,
    read: fn(&mut Args, &Source<'_>) -> syn::Result<()>,
) -> Argument {
    Argument { name, example, read }
}

/// Reads all arguments. What is wrong is in `cx`, and missing from the result.
pub(crate) fn parse(cx: &Ctxt, attr: TokenStream) -> Args {
    let mut args = Args::default();
    let all = |input: ParseStream<'_>| {
        while !input.is_empty() {
            if let Err(error) = next(&mut args, input) {
                cx.syn_error(error);
                skip_to_comma(input)?;
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    };
    if let Err(error) = all.parse2(attr) {
        cx.syn_error(error);
    }
    args
}

fn next(args: &mut Args, input: ParseStream<'_>) -> syn::Result<()> {
    let Ok(key) = input.call(Ident::parse_any) else {
        return Err(value::at_next(input, "expected the name of an argument"));
    };
    let name = key.to_string();
    let Some(argument) = ARGUMENTS.iter().find(|argument| argument.name == name) else {
        value::skip(input); // all of it: its type arguments can hold commas too
        return Err(syn::Error::new_spanned(&key, unknown(&name)));
    };
    (argument.read)(args, &Source { key: &key, example: argument.example, input })?;
    if input.is_empty() || input.peek(Token![,]) {
        Ok(())
    } else {
        Err(value::at_next(input, format_args!("expected `,` after `{name}`")))
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<_> = ARGUMENTS.iter().map(|argument| argument.name).collect();
    let help = similar::closest(name, &names).map(|known| format!("\nhelp: did you mean `{known}`?"));
    let expected = names.join("`, `");
    format!("unknown `#[idempotent]` argument `{name}`, expected one of `{expected}`{}", help.unwrap_or_default())
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}
