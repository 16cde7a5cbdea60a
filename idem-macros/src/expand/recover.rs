//! What is left of the user's function when its annotation is wrong.

use proc_macro2::{Group, TokenStream};
use quote::{quote, quote_spanned};

use super::here;
use crate::item::{HandlerFn, Param, Source};

/// The function with the parameters that its callers know, so that nothing else in the crate complains about it. What
/// the runtime would have supplied is in the body still, under its name and with its type, but never there.
pub(crate) fn recover(func: &HandlerFn) -> TokenStream {
    let (supplied, given): (Vec<&Param>, Vec<&Param>) =
        func.params.iter().partition(|param| param.source == Source::Runtime);
    let mut signature = func.sig.clone();
    signature.inputs.extend(func.receiver.clone().map(syn::FnArg::Receiver));
    signature.inputs.extend(
        given.into_iter().map(|Param { attrs, pat, ty, .. }| -> syn::FnArg { syn::parse_quote!(#(#attrs)* #pat: #ty) }),
    );
    let (attrs, vis, body) = (&func.attrs, &func.vis, &func.body);
    if supplied.is_empty() {
        return quote!(#(#attrs)* #vis #signature #body);
    }
    let absent = supplied.into_iter().map(|Param { pat, ty, .. }| quote_spanned!(here()=> let #pat: #ty = loop {};));
    let inner = body.stream();
    let mut body = Group::new(body.delimiter(), quote!(#(#absent)* #inner));
    body.set_span(func.body.span());
    let quiet = quote_spanned!(here()=> #[allow(unreachable_code, unused_mut, unused_variables, clippy::all)]);
    quote!(#(#attrs)* #quiet #vis #signature #body)
}
