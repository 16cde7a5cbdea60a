//! The attribute of `idem-runtime`: use it, and read its documentation, through that crate.
//!
//! The stages, in order: `args` and `item` read the two inputs and recover after every error, `check` holds the
//! rules between them, `operation` is what remains when nothing is wrong, `expand` writes it as Rust and decides
//! nothing.

use proc_macro2::TokenStream;

use crate::{ctxt::Ctxt, item::HandlerFn, operation::Operation};

mod args;
mod check;
mod ctxt;
mod duration;
mod expand;
mod item;
mod mention;
mod operation;
#[cfg(test)]
mod tests;

/// Makes an `async fn` idempotent. Documented where it is re-exported: `idem_runtime::idempotent`.
#[proc_macro_attribute]
pub fn idempotent(attr: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    annotate(attr.into(), item.into()).into()
}

fn annotate(attr: TokenStream, item: TokenStream) -> TokenStream {
    match operation(attr, item.clone()) {
        Ok(operation) => expand::expand(&operation),
        Err(errors) => {
            // The user's item stays, so that nothing else in the crate complains about a missing function.
            let mut output = recovered(item);
            output.extend(errors.into_compile_error());
            output
        }
    }
}

fn recovered(item: TokenStream) -> TokenStream {
    let cx = Ctxt::new();
    let func = HandlerFn::parse(&cx, item.clone());
    match cx.check(func) {
        Ok(func) => expand::recover(&func),
        Err(_) => item::without_helper_attributes(item), // reported already
    }
}

fn operation(attr: TokenStream, item: TokenStream) -> syn::Result<Operation> {
    let cx = Ctxt::new();
    let args = args::parse(&cx, attr);
    let operation = HandlerFn::parse(&cx, item).and_then(|func| {
        check::check(&cx, &args, &func);
        Operation::new(&cx, args, func)
    });
    cx.check(operation)
}
