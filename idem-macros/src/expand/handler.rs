//! An axum handler: the last parameter becomes the door through which the runtime sees the request.

use proc_macro2::{Ident, TokenStream};
use quote::quote_spanned;
use syn::{Expr, FnArg, Type, parse_quote};

use super::{
    binding::{Binding, mentions},
    facts, here, here_at, parts, private, private_at,
};
use crate::{item::pattern, mention::Mentions, operation::Operation};

pub(super) fn expand(operation: &Operation, key: Option<&Expr>, state: Option<&Type>) -> TokenStream {
    let p = private(operation);
    let (mut head, supplied) = Binding::all(&operation.func);
    let last = head.pop().map(|last| last.called("value"));
    let mentioned = Mentioned::by(operation, key, last.as_ref());
    let signature = signature(operation, &head, last.as_ref());
    let (attrs, vis) = (&operation.func.attrs, &operation.func.vis);

    let facts = facts::operation(operation);
    let assertions = assertions(operation, state, &head, last.as_ref());
    let witness = witness(operation);
    let bounds = parts::named_bounds(operation);
    let scope = parts::scope(operation, &borrowed(&mentioned.scope, &head, last.as_ref()));
    let key = match (key, &mentioned.key) {
        (Some(expr), Some(mentions)) => parts::key(operation, expr, &borrowed(mentions, &head, last.as_ref())),
        _ => quote_spanned!(here()=> #p::header_key()),
    };
    let identity = quote_spanned!(here()=> let __idem_scope = #scope; let __idem_key = #key;);
    let extracted = extracted(&p, &identity, last.as_ref(), mentioned.last);
    let mut all: Vec<_> = head.iter().chain(&last).chain(&supplied).collect();
    all.sort_by_key(|binding| binding.position);
    let takes = all.into_iter().map(|binding| mentioned.take(binding)).collect();
    let at_name = here_at(operation.func.name());
    let at = private_at(operation, at_name);
    let body = parts::body(operation, &supplied, &takes);
    let body = quote_spanned!(at_name=> #at::body_runs_on_its_own_task(__idem_witness, #body));
    let statements = quote_spanned! {here()=>
        let __idem_operation = #facts;
        #assertions
        #bounds
        let __idem_witness = #witness;
        let (__idem_incoming, __idem_value) = __idem_last.open();
        #extracted
        let __idem_body = #body;
        #p::handle(__idem_operation, __idem_incoming, __idem_scope, __idem_key, __idem_body).await
    };
    let block = parts::outer_block(operation, statements);
    quote_spanned!(here()=> #(#attrs)* #vis #signature #block)
}

fn signature(operation: &Operation, head: &[Binding<'_>], last: Option<&Binding<'_>>) -> syn::Signature {
    let p = private(operation);
    let mut signature = operation.func.sig.clone();
    for binding in head {
        let (name, ty, attrs) = (&binding.name, &binding.param.ty, binding.outer_attrs());
        let input: FnArg = parse_quote!(#(#attrs)* #name: #ty);
        signature.inputs.push(input);
    }
    let ty = last.map_or_else(|| parse_quote!(()), |binding| binding.param.ty.clone());
    let attrs = last.into_iter().flat_map(Binding::outer_attrs);
    let door = quote_spanned!(here()=> #(#attrs)* __idem_last: #p::Payload<#ty>);
    signature.inputs.push(parse_quote!(#door));
    let response = quote_spanned!(here()=> -> #p::Response);
    signature.output = parse_quote!(#response);
    signature
}

/// Names the type that must be replayable, at the place where the user wrote it.
fn witness(operation: &Operation) -> TokenStream {
    let (ty, at) = parts::return_type(operation);
    let p = private_at(operation, at);
    quote_spanned!(at=> #p::replayable::<#ty>())
}

/// The requirements of axum's `Handler`, one by one, in our words: all of them with `state = App`, else those that show
/// in a parameter's type alone. Never called.
fn assertions(
    operation: &Operation,
    state: Option<&Type>,
    head: &[Binding<'_>],
    last: Option<&Binding<'_>>,
) -> TokenStream {
    let at = |ty: &Type| (here_at(ty), private_at(operation, here_at(ty)));
    let runtime = state.map(|state| {
        let (place, p) = at(state);
        quote_spanned!(place=> #p::state_must_hold_the_runtime::<#state>();)
    });
    let params = head.iter().map(|binding| (binding, true)).chain(last.map(|binding| (binding, false)));
    // There is no type to name behind an `impl Trait`.
    let params = params.filter(|(binding, _)| pattern::erase_impl_trait(&binding.param.ty).1.is_none());
    let params = params.map(|(binding, is_head)| {
        let (ty, cfgs) = (&binding.param.ty, binding.cfgs());
        let (place, p) = at(ty);
        match (state, is_head) {
            (Some(state), true) => quote_spanned!(place=> #(#cfgs)* #p::must_be_a_head_extractor::<#state, #ty>();),
            (Some(state), false) => quote_spanned!(place=> #(#cfgs)* #p::must_be_an_extractor::<#state, #ty, _>();),
            (None, true) => {
                let cfgs: Vec<_> = cfgs.collect();
                quote_spanned! {place=>
                    #(#cfgs)* #p::parameter::<#ty>().comes_from_the_request();
                    #(#cfgs)* #p::parameter::<#ty>().leaves_the_body_to_the_last();
                }
            }
            (None, false) => quote_spanned!(place=> #p::parameter::<#ty>().comes_from_the_request();),
        }
    });
    let all: TokenStream = runtime.into_iter().chain(params).collect();
    if all.is_empty() { all } else { quote_spanned!(here()=> let _ = || { #all };) }
}

/// What the expressions of the attribute mention.
struct Mentioned {
    scope: Mentions,
    key: Option<Mentions>,
    /// One of them mentions the last parameter.
    last: bool,
}

impl Mentioned {
    fn by(operation: &Operation, key: Option<&Expr>, last: Option<&Binding<'_>>) -> Self {
        let parts = &operation.scope;
        let scope = mentions(&quote_spanned!(here()=> #(#parts),*));
        let mut mentioned = Self { scope, key: key.map(mentions), last: false };
        let names = last.map(|last| pattern::names(&last.param.pat)).unwrap_or_default();
        mentioned.last = names.iter().any(|name| mentioned.contains(name));
        mentioned
    }

    fn contains(&self, name: &Ident) -> bool {
        self.scope.contains(name) || self.key.as_ref().is_some_and(|key| key.contains(name))
    }

    /// Takes a parameter into the body.
    fn take(&self, binding: &Binding<'_>) -> TokenStream {
        let mut take = binding.take();
        take.extend(binding.mark_used(|name| self.contains(name)));
        take
    }
}

fn borrowed(mentions: &Mentions, head: &[Binding<'_>], last: Option<&Binding<'_>>) -> TokenStream {
    head.iter().chain(last).map(|binding| binding.borrowed_for(mentions)).collect()
}

/// Scope, key and the extracted value. A request whose last extractor refused it can still be a retry of one that was
/// answered: that is looked up, unless the identity needs the value.
fn extracted(
    p: &TokenStream,
    identity: &TokenStream,
    last: Option<&Binding<'_>>,
    identity_needs_it: bool,
) -> TokenStream {
    let refused = if identity_needs_it {
        quote_spanned!(here()=> #p::unidentified(__idem_operation, &__idem_incoming, __idem_rejection))
    } else {
        quote_spanned! {here()=>
            #p::rejected(__idem_operation, __idem_incoming, __idem_scope, __idem_key, __idem_rejection).await
        }
    };
    let value = match last {
        Some(Binding { name, .. }) => quote_spanned! {here()=>
            let #name = match __idem_value {
                ::core::result::Result::Ok(__idem_value) => __idem_value,
                ::core::result::Result::Err(__idem_rejection) => return #refused,
            };
        },
        None => quote_spanned! {here()=>
            if let ::core::result::Result::Err(__idem_rejection) = __idem_value {
                return #refused;
            }
        },
    };
    if identity_needs_it {
        quote_spanned!(here()=> #value #identity)
    } else {
        quote_spanned!(here()=> #identity #value)
    }
}
