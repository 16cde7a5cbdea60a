//! Writes an [`Operation`] as Rust. Only this file and its modules quote, and they decide nothing.
//!
//! Hygiene: every path is absolute, every name of ours has the span [`here`], so that it neither sees nor is seen by
//! the user's code. Tokens of the user keep their spans, so that rustc's errors and lints land on them.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;

use crate::operation::{Kind, Operation};

mod binding;
mod facts;
mod function;
mod handler;
mod parts;
mod recover;

pub(crate) use recover::recover;

pub(crate) fn expand(operation: &Operation) -> TokenStream {
    match &operation.kind {
        Kind::Handler { key, state } => handler::expand(operation, key.as_ref(), state.as_ref()),
        Kind::Function { key, runtime, input } => function::expand(operation, key, runtime, input.as_ref()),
    }
}

/// The module of the runtime that generated code may call.
fn private(operation: &Operation) -> TokenStream {
    private_at(operation, here())
}

/// As [`private`], for a call that rustc is to show at `place`, all of it.
fn private_at(operation: &Operation, place: Span) -> TokenStream {
    let path = &operation.krate;
    let krate = path.to_token_stream().into_iter().map(|mut token| {
        token.set_span(place.resolved_at(token.span())); // `$crate` resolves by its span
        token
    });
    quote_spanned!(place=> #(#krate)*::private)
}

/// The span of names that belong to the macro.
fn here() -> Span {
    Span::mixed_site()
}

/// As [`here`], but an error about these tokens is shown at `tokens`.
fn here_at(tokens: &impl ToTokens) -> Span {
    here().located_at(tokens.span())
}
