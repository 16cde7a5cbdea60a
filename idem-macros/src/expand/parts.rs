//! What handlers and plain functions have in common.

use proc_macro2::{Delimiter, Group, Span, TokenStream};
use quote::quote_spanned;
use syn::{Expr, ReturnType, Type, parse_quote};

use super::{binding::Binding, here, here_at, private, private_at};
use crate::{item::pattern, operation::Operation};

/// `scope`, each part written on its own. `bindings` are in reach of the expressions.
pub(super) fn scope(operation: &Operation, bindings: &TokenStream) -> TokenStream {
    let p = private(operation);
    if operation.scope.is_empty() {
        return quote_spanned!(here()=> #p::scope(|_| {}));
    }
    let writes = operation.scope.iter().map(|part| {
        let (p, borrowed) = (private_at(operation, here_at(part)), borrowed(part));
        quote_spanned!(here_at(part)=> #p::scope_part(#borrowed, __idem_out);)
    });
    quote_spanned!(here()=> #p::scope(|__idem_out| { #bindings #(#writes)* }))
}

/// `key = expr`.
pub(super) fn key(operation: &Operation, expr: &Expr, bindings: &TokenStream) -> TokenStream {
    let p = private(operation);
    let (at, borrowed) = (private_at(operation, here_at(expr)), borrowed(expr));
    let part = quote_spanned!(here_at(expr)=> #at::key_part(#borrowed));
    quote_spanned!(here()=> #p::key(|| { #bindings #part }))
}

/// A reference to the value of `expr`.
pub(super) fn borrowed(expr: &Expr) -> TokenStream {
    quote_spanned!(here_at(expr)=> &(#expr))
}

/// The user's body behind what the runtime supplies: the closure that the runtime calls if, and only if, it runs.
/// `takes` are the statements before the body.
pub(super) fn body(operation: &Operation, supplied: &[Binding<'_>], takes: &TokenStream) -> TokenStream {
    let p = private(operation);
    let supplies = supplied.iter().map(|binding| {
        let (name, ty, cfgs) = (&binding.name, &binding.param.ty, binding.cfgs());
        let p = private_at(operation, here_at(ty));
        let call = quote_spanned!(here_at(ty)=> #p::supply::<#ty>(__idem_supply)?);
        quote_spanned!(here()=> #(#cfgs)* let #name = #call;)
    });
    let edge = return_edge(operation);
    let body = inner_block(operation);
    let future = quote_spanned! {here_at(operation.func.name())=>
        async move { #edge #takes #body }
    };
    quote_spanned! {here()=>
        move |__idem_supply: &mut #p::Supply| {
            #(#supplies)*
            ::core::result::Result::Ok(#future)
        }
    }
}

/// The return type as far as it can be named, and the place where it is written.
pub(super) fn return_type(operation: &Operation) -> (Type, Span) {
    match &operation.func.sig.output {
        ReturnType::Default => (parse_quote!(()), here()),
        ReturnType::Type(_, ty) => (pattern::erase_impl_trait(ty).0, here_at(ty)),
    }
}

/// Names the traits of an `impl Trait` in the return type, which the outer signature no longer has: without that, the
/// user's import of the trait counts as unused.
pub(super) fn named_bounds(operation: &Operation) -> TokenStream {
    let ReturnType::Type(_, ty) = &operation.func.sig.output else { return TokenStream::new() };
    let traits = pattern::traits_of_impl(ty);
    if traits.is_empty() {
        return TokenStream::new();
    }
    quote_spanned!(here()=> { #(#[allow(unused_imports)] use #traits as _;)* })
}

/// A `return` that is never reached. It tells inference the declared type, which an async block cannot do, so that a
/// wrong value is an error on that value. A type that is `impl Trait` as a whole says nothing.
fn return_edge(operation: &Operation) -> TokenStream {
    let (ty, at) = return_type(operation);
    if matches!(ty, Type::Infer(_)) {
        return TokenStream::new();
    }
    quote_spanned! {at=>
        #[allow(unreachable_code, clippy::diverging_sub_expression, clippy::empty_loop, clippy::let_unit_value)]
        if false {
            let __idem_return: #ty = loop {};
            return __idem_return;
        }
    }
}

/// The braces of the outer function. rustc takes an item that ends in a span of ours for the macro's own, and never
/// tells the user that it is unused.
pub(super) fn outer_block(operation: &Operation, statements: TokenStream) -> Group {
    let mut block = Group::new(Delimiter::Brace, statements);
    block.set_span(operation.func.body.span());
    block
}

/// The user's body, once. Its braces are ours here, since lints would ask the user to remove a pair around a single
/// expression.
fn inner_block(operation: &Operation) -> Group {
    let mut block = operation.func.body.clone();
    block.set_span(here_at(&operation.func.body));
    block
}
