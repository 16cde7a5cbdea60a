//! A plain function or method: the signature stays, without what the runtime supplies.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::{Expr, FnArg, parse_quote};

use super::{binding::Binding, facts, here, here_at, parts, private, private_at};
use crate::{
    item::{HandlerFn, Param},
    operation::Operation,
};

pub(super) fn expand(operation: &Operation, key: &Expr, runtime: &Expr, input: Option<&Expr>) -> TokenStream {
    let p = private(operation);
    let func = &operation.func;
    let (attrs, vis, signature) = (&func.attrs, &func.vis, signature(func));
    let facts = facts::operation(operation);
    let (ty, place) = parts::return_type(operation);
    let at = private_at(operation, place);
    let recorder = quote_spanned!(place=> #at::recordable::<#ty>());
    let (at, borrowed) = (private_at(operation, here_at(runtime)), parts::borrowed(runtime));
    let runtime = quote_spanned!(here_at(runtime)=> #at::runtime(#borrowed));
    let scope = parts::scope(operation, &TokenStream::new());
    let key = parts::key(operation, key, &TokenStream::new());
    let input = input.map(|input| {
        let (at, borrowed) = (private_at(operation, here_at(input)), parts::borrowed(input));
        quote_spanned!(here_at(input)=> #at::input(#borrowed))
    });
    let (_, supplied) = Binding::all(func);
    let takes = supplied.iter().map(Binding::take).collect();
    let body = parts::body(operation, &supplied, &takes);
    let call = match &input {
        Some(_) => quote_spanned!(here()=> function_of),
        None => quote_spanned!(here()=> function),
    };
    let input = input.into_iter();
    let (kept, kept_as) = (input.clone(), input.map(|_| quote_spanned!(here()=> __idem_input,)));
    let statements = quote_spanned! {here()=>
        let __idem_operation = #facts;
        let __idem_recorder = #recorder;
        let __idem_runtime = #runtime;
        let __idem_scope = #scope;
        let __idem_key = #key;
        #(let __idem_input = #kept;)*
        let __idem_body = #body;
        #p::#call(
            __idem_operation, __idem_runtime, __idem_scope, __idem_key, #(#kept_as)* __idem_recorder, __idem_body
        ).await
    };
    let block = parts::outer_block(operation, statements);
    quote_spanned!(here()=> #(#attrs)* #vis #signature #block)
}

fn signature(func: &HandlerFn) -> syn::Signature {
    let mut signature = func.sig.clone();
    signature.inputs.extend(func.receiver.clone().map(FnArg::Receiver));
    signature.inputs.extend(
        func.caller_params().map(|Param { attrs, pat, ty, .. }| -> FnArg { parse_quote!(#(#attrs)* #pat: #ty) }),
    );
    signature
}
